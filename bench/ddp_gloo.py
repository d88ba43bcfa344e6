#!/usr/bin/env python3
"""The peer of lab.py: PyTorch DistributedDataParallel over Gloo on the same model, data, batch and optimizer.

One process a host; prints one JSON object. With --world 1 the model is not wrapped: the host's own speed.

  GLOO_SOCKET_IFNAME=eth0 ddp_gloo.py --recipe fashion-cnn --data ~/.cache/motley/fashion-mnist --rank 0 --world 2
    --address 10.77.0.10 --batch 256
"""

import argparse
import gzip
import json
import pathlib
import time

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

LAYERS, HEADS, WIDTH, BLOCK = 6, 6, 384, 64  # of gpt-mini, with the windows that lab.py trains on


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(1600, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, x):
        return self.layers(x)


class Layer(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, dim=2))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, symbols=256, block=BLOCK, layers=LAYERS, heads=HEADS, width=WIDTH):
        super().__init__()
        self.symbols, self.places = nn.Embedding(symbols, width), nn.Embedding(block, width)
        self.layers = nn.Sequential(*(Layer(heads, width) for _ in range(layers)), nn.LayerNorm(width))
        self.head = nn.Linear(width, symbols, bias=False)
        self.head.weight = self.symbols.weight

    def forward(self, x):
        return self.head(self.layers(self.symbols(x) + self.places.weight)).flatten(0, 1)


class Images:
    def __init__(self, directory):
        self.x = (idx(directory, "images").view(-1, 1, 28, 28) / 255 - 0.2860) / 0.3530
        self.y = idx(directory, "labels").long()

    def draw(self, batch):
        index = torch.randint(len(self.y), (batch,))
        return self.x[index], self.y[index]


class Text:
    def __init__(self, file):
        self.bytes = torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.uint8).long()

    def draw(self, batch):
        windows = torch.randint(len(self.bytes) - BLOCK - 1, (batch, 1)) + torch.arange(BLOCK + 1)
        return self.bytes[windows[:, :-1]], self.bytes[windows[:, 1:]].flatten()


def idx(directory, kind):
    """The bytes of the elements in an IDX file: four bytes of type and rank, four for each extent, the elements."""
    file = next(directory.glob(f"train-{kind}*"))
    raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8, offset=4 + 4 * raw[3])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", choices=["fashion-cnn", "gpt-mini"], required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="directory with Fashion-MNIST as IDX files; a text")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--world", type=int, default=1)
    parser.add_argument("--address", default="127.0.0.1", help="of rank 0")
    parser.add_argument("--port", type=int, default=29500)
    parser.add_argument("--batch", type=int, default=256, help="samples of this host a step")
    parser.add_argument("--weight", type=float, default=1, help="of this host's mean gradient: batch * world / global batch")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--warm-up", type=int, default=10)
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.rank)
    data, model, clip_norm = (Images(args.data), Cnn(), 0) if args.recipe == "fashion-cnn" else (Text(args.data), Gpt(), 1)
    if args.world > 1:
        distributed.init_process_group("gloo", init_method=f"tcp://{args.address}:{args.port}", rank=args.rank, world_size=args.world)
        # As its own guide advises for speed: gradients are views of the buckets that travel.
        model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    started = 0.0
    for step in range(args.warm_up + args.steps):
        if step == args.warm_up:
            started = time.perf_counter()
        x, y = data.draw(args.batch)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y) * args.weight
        loss.backward()
        if clip_norm:
            nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        optimizer.step()
        loss.item()
    seconds = time.perf_counter() - started
    print(json.dumps({"event": "done", "rank": args.rank, "samples_per_s": args.steps * args.batch / seconds}), flush=True)
    if args.world > 1:
        distributed.barrier()
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
