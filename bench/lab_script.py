"""The training of lab.py as a Python script, on the models and data of its peer. Under `motley`: lab_script.py RECIPE DATA BATCH STEPS."""

import pathlib
import sys

import torch
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from ddp_gloo import BLOCK, Cnn, Gpt, Images, Text  # noqa: E402


class Windows(Dataset):
    """Pieces of a text, spread over it, each with the same piece one byte on."""

    def __init__(self, text, size):
        self.bytes, self.size = text.bytes, size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        first = index * 997 % (len(self.bytes) - BLOCK - 1)
        return self.bytes[first:first + BLOCK], self.bytes[first + 1:first + BLOCK + 1]


def loss(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x), y.flatten())


if __name__ == "__main__":
    import motley

    torch.manual_seed(1)
    recipe, path = sys.argv[1], pathlib.Path(sys.argv[2])
    batch, steps = map(int, sys.argv[3:])
    if recipe == "fashion-cnn":
        images = Images(path)
        data, trained, clip_norm = TensorDataset(images.x[:batch * steps], images.y[:batch * steps]), Cnn(), 0.0
    else:
        data, trained, clip_norm = Windows(Text(path), batch * steps), Gpt(), 1.0
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.01, momentum=0.9)
    for epoch in motley.Run(trained, loss, DataLoader(data, batch), optimizer, clip_norm=clip_norm).epochs(1):
        pass
