"""The model of examples/cpp as a script, which reads its data by itself."""

import argparse
import gzip
import pathlib

import motley
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", type=pathlib.Path)
parser.add_argument("--epochs", type=int)
parser.add_argument("--batch-size", type=int)
args = parser.parse_args()


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.fc1, self.fc2 = nn.Linear(1600, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = (x.float() / 255 - 0.2860) / 0.3530
        x = functional.max_pool2d(self.conv1(x), 2).relu()
        x = functional.max_pool2d(self.conv2(x), 2).relu()
        return self.fc2(self.fc1(x.flatten(1)).relu())


def read(part):
    images, labels = (sorted(args.data.glob(f"{part}-{kind}*"))[0].read_bytes() for kind in ("images", "labels"))
    images, labels = (bytearray(gzip.decompress(each) if each[:2] == b"\x1f\x8b" else each) for each in (images, labels))
    return TensorDataset(torch.frombuffer(images[16:], dtype=torch.uint8).view(-1, 1, 28, 28),
                         torch.frombuffer(labels[8:], dtype=torch.uint8).long())


def loss(model, batch):
    images, labels = batch
    return functional.cross_entropy(model(images), labels)


def score(model, batch):
    images, labels = batch
    return {"accuracy": (model(images).argmax(1) == labels).sum()}


torch.manual_seed(1)
model = Cnn()
train = DataLoader(read("train"), batch_size=args.batch_size, shuffle=True)
test = DataLoader(read("t10k"), batch_size=args.batch_size)
run = motley.Run(model, loss, train, torch.optim.Adam(model.parameters(), lr=2e-3), test=test, score=score)
for _ in run.epochs(args.epochs):
    pass
