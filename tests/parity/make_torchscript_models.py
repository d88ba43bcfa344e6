"""Writes TorchScript files as people make them, for the tests: DIRECTORY/{convnet,tied,frozen}.pt.

With --check FILE it loads an exported file instead and prints its state_dict names and an output.
"""

import sys
from pathlib import Path

import torch
from torch import nn


class Convnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.25), nn.Linear(4 * 3 * 3, 5))

    def forward(self, x):
        return self.head(self.features(x))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.second.weight = self.first.weight
        self.out = nn.Linear(6, 3)

    def forward(self, x):
        return self.out(torch.relu(self.second(torch.relu(self.first(x)))))


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(6, 4)
        self.base.requires_grad_(False)
        self.unused = nn.Linear(2, 2)
        self.register_buffer("scale", torch.tensor([2.0]))
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(torch.relu(self.base(x)) * self.scale)


def main():
    if sys.argv[1] == "--check":
        model = torch.jit.load(sys.argv[2])
        print(" ".join(model.state_dict()))
        print(tuple(model(torch.zeros(3, 1, 28, 28)).shape))
        return
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    for name, model in (("convnet", Convnet()), ("tied", Tied()), ("frozen", Frozen())):
        torch.jit.script(model).save(str(directory / f"{name}.pt"))


if __name__ == "__main__":
    main()
