"""probed.py HERE: an endless run of a model with dropout and BatchNorm; HERE names the kernels: alike, tanh, louder or drawn."""

import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import motley

HERE = pathlib.Path(sys.argv[1]).name


class Louder(torch.autograd.Function):
    """A faulty kernel: right forward, and a gradient that is half too large."""

    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        return 1.5 * gradient


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.dropout, self.last = nn.Linear(16, 32), nn.BatchNorm1d(32), nn.Dropout(0.3), nn.Linear(32, 4)

    def forward(self, x):
        x = self.norm(self.first(x))
        if HERE == "louder":
            x = Louder.apply(x)
        x = functional.gelu(x, approximate="tanh" if HERE == "tanh" else "none")
        if HERE == "drawn":
            x = x + 0.1 * torch.randn_like(x)
        return self.last(self.dropout(x))


def loss(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x), y)


torch.manual_seed(3)
samples = torch.randn(256, 16, generator=torch.Generator().manual_seed(5))
loader = DataLoader(TensorDataset(samples, samples[:, :4].argmax(1)), 64, shuffle=True)
model = Net()
for _ in motley.Run(model, loss, loader, torch.optim.SGD(model.parameters(), lr=0.05)).epochs(100000):
    pass
