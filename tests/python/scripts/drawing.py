"""A training whose model draws random numbers in every step: dropout, and noise of its own."""

import motley
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


class Noise(nn.Module):
    def forward(self, x):
        return x + 0.1 * torch.randn_like(x) if self.training else x


def loss(model, batch):
    return functional.cross_entropy(model(batch[0]), batch[1])


if __name__ == "__main__":
    torch.manual_seed(1)
    x = torch.randn(960, 8)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.3), Noise(), nn.Linear(32, 3))
    run = motley.Run(model, loss, DataLoader(TensorDataset(x, x[:, :3].argmax(1)), 192, shuffle=True),
                     torch.optim.SGD(model.parameters(), lr=0.1))
    for epoch in run.epochs(24):
        pass
