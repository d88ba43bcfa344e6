"""The training of accelerator.py as a Python script: the network of fashion-cnn, ResNet-50 on images of 224 x 224 and a GPT of 124
million parameters.

  accelerator_script.py MODEL BATCH STEPS                 under `motley train`
  accelerator_script.py MODEL BATCH STEPS --plain DEVICE  the loop that everybody writes

Two epochs of so many steps; prints the speed of the second. Torch's switches are left as they are: TF32 in convolutions, not in
matrix products.
"""

import argparse
import json
import sys
import time

import torch
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

import resnet
from ddp_gloo import Gpt

CLASSES = 1000
VOCABULARY, BLOCK = 50257, 256
READERS = 4
POOL = 512


def gpt():
    """The shape of GPT-2's smallest."""
    model = Gpt(VOCABULARY, BLOCK, layers=12, heads=12, width=768)
    torch.nn.init.normal_(model.symbols.weight, std=0.02)
    return model


def cnn():
    from motley.recipes.fashion_cnn import NORMAL, Cnn

    return Cnn(*NORMAL["fashion-mnist"])


MODELS = {"cnn": cnn, "resnet50": lambda: resnet.make("resnet50", classes=CLASSES), "gpt": gpt}
PIXELS = {"cnn": (1, 28, 28), "resnet50": (3, 224, 224)}


class Pool(Dataset):
    """A few samples over and over, so that none takes long to read."""

    def __init__(self, model, size):
        drawn = torch.Generator().manual_seed(2)
        if model == "gpt":
            words = torch.randint(VOCABULARY, (POOL, BLOCK + 1), generator=drawn)
            self.x, self.y = words[:, :-1], words[:, 1:]
        else:
            self.x = torch.randint(256, (POOL, *PIXELS[model]), dtype=torch.uint8, generator=drawn)
            self.y = torch.randint(10 if model == "cnn" else CLASSES, (POOL,), generator=drawn)
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return self.x[index % POOL], self.y[index % POOL]


def loss(model, batch):
    x, y = batch
    if x.dtype == torch.uint8 and x.shape[1] == 3:  # the network of fashion-cnn takes bytes
        x = x.float() / 255
    return functional.cross_entropy(model(x), y.flatten())


def plain(model, loader, optimizer, device):
    """Samples a second of the second epoch."""
    model.to(device)
    for _ in range(2):
        samples, began = 0, time.perf_counter()
        for batch in loader:
            optimizer.zero_grad()
            value = loss(model, [part.to(device, non_blocking=True) for part in batch])
            value.backward()
            optimizer.step()
            samples += len(batch[0])
        value.item()
        seconds = time.perf_counter() - began
    return samples / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("batch", type=int)
    parser.add_argument("steps", type=int)
    parser.add_argument("--plain", metavar="DEVICE")
    args = parser.parse_args()
    torch.manual_seed(1)
    model = MODELS[args.model]()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    loader = DataLoader(Pool(args.model, args.batch * args.steps), args.batch, num_workers=READERS, persistent_workers=True,
                        pin_memory=torch.cuda.is_available())
    if args.plain:
        speed = plain(model, loader, optimizer, args.plain)
    else:
        import motley

        for epoch in motley.Run(model, loss, loader, optimizer).epochs(2):
            speed = epoch.samples / epoch.seconds
    print(json.dumps({"event": "speed", "samples_per_s": speed}), file=sys.__stdout__, flush=True)


if __name__ == "__main__":
    main()
