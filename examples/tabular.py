"""A table with numbers and categories, samples of unequal weight, and a loss of its own."""

import argparse

import motley
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset, random_split

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--samples", type=int, default=20000)
args = parser.parse_args()
NUMBERS, CATEGORIES = 12, 30


def table():
    """Numbers, a category, what to predict, and how much each row counts."""
    random = torch.Generator().manual_seed(1)
    numbers = torch.randn(args.samples, NUMBERS, generator=random)
    category = torch.randint(CATEGORIES, (args.samples,), generator=random)
    effect = torch.randn(CATEGORIES, generator=random)
    target = numbers[:, 0] * numbers[:, 1] + numbers[:, 2].abs() + effect[category] + 0.1 * torch.randn(args.samples, generator=random)
    return TensorDataset(numbers, category, target, torch.rand(args.samples, generator=random) + 0.1)


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.category = nn.Embedding(CATEGORIES, 8)
        self.body = nn.Sequential(nn.Linear(NUMBERS + 8, 128), nn.SiLU(), nn.Dropout(0.1), nn.Linear(128, 1))

    def forward(self, numbers, category):
        return self.body(torch.cat([numbers, self.category(category)], dim=1)).squeeze(1)


def loss(model, batch):
    """Huber's, as a mean over the weights of the rows."""
    numbers, category, target, weight = batch
    losses = functional.huber_loss(model(numbers, category), target, reduction="none")
    return (losses * weight).sum() / weight.sum(), weight.sum()


def score(model, batch):
    numbers, category, target, _ = batch
    return {"absolute_error": (model(numbers, category) - target).abs().sum()}


torch.manual_seed(1)
rows, held_out = random_split(table(), [0.9, 0.1])
train, test = DataLoader(rows, batch_size=512, shuffle=True), DataLoader(held_out, batch_size=512)
model = Regressor()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)
for epoch in motley.Run(model, loss, train, optimizer, schedule=schedule, test=test, score=score).epochs(args.epochs):
    print(epoch.number, epoch.absolute_error)
