"""A small training, copies of which a test changes in one place each."""

import motley
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

WEIGHT = 0.5


def loss(model, batch, epoch):
    out = model(batch[0])
    extra = out.pow(2).mean() if model.training and epoch > 1 else 0
    return functional.cross_entropy(out, batch[1]) + WEIGHT * extra


def score(model, batch):
    return {"accuracy": (model(batch[0]).argmax(1) == batch[1]).sum()}


if __name__ == "__main__":
    torch.manual_seed(1)
    x = torch.randn(240, 8)
    data = TensorDataset(x, x[:, :3].argmax(1))
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
    run = motley.Run(model, loss, DataLoader(data, 48, shuffle=True), torch.optim.SGD(model.parameters(), lr=0.1),
                     test=DataLoader(data, 48), score=score)
    for epoch in run.epochs(3):
        pass
