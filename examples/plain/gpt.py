"""A small GPT that learns a text byte by byte: AdamW with decay for matrices alone, warm-up and cosine, clipping."""

import argparse
import math
import pathlib

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--text", type=pathlib.Path, default=pathlib.Path("README.md"), help="what to learn")
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--layers", type=int, default=4)
args = parser.parse_args()
BLOCK, WIDTH, HEADS = 128, 128, 4


class Text(Dataset):
    """Overlapping pieces of the text, each with the same piece one byte on."""

    def __init__(self):
        self.bytes = torch.frombuffer(bytearray(args.text.read_bytes()), dtype=torch.uint8).long()

    def __len__(self):
        return (len(self.bytes) - BLOCK - 1) // 8

    def __getitem__(self, index):
        piece = self.bytes[index * 8 : index * 8 + BLOCK + 1]
        return piece[:-1], piece[1:]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        q, k, v = (part.unflatten(2, (HEADS, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, dim=2))
        x = x + self.out(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.layers = nn.Sequential(*(Layer() for _ in range(args.layers)), nn.LayerNorm(WIDTH))
        self.head = nn.Linear(WIDTH, 256, bias=False)
        self.head.weight = self.bytes.weight

    def forward(self, x):
        return self.head(self.layers(self.bytes(x) + self.places.weight[: x.shape[1]]))


def loss(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


torch.manual_seed(1)
loader = DataLoader(Text(), batch_size=64, shuffle=True)
model = Gpt()
matrices = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99))
steps, warmup = args.epochs * len(loader), 20
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda step: min((step + 1) / warmup, 0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, step / steps)))))
for epoch in range(1, args.epochs + 1):
    total = 0.0
    for batch in loader:
        optimizer.zero_grad()
        value = loss(model, batch)
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        total += value.item()
    print(epoch, total / len(loader))
