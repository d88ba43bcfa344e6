"""sized.py MODEL WIDTH LAYERS BATCH: a model that takes as much memory as these say; a global batch of so many samples."""

import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import motley

SAMPLES, CLASSES = 512, 10


def perceptron(width, layers):
    hidden = [part for _ in range(layers - 1) for part in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(nn.Flatten(), nn.Linear(784, width), nn.ReLU(), *hidden, nn.Linear(width, CLASSES))


def convolutions(width, layers):
    hidden = [part for _ in range(layers - 1) for part in (nn.Conv2d(width, width, 3, padding=1), nn.ReLU())]
    return nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), *hidden, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(width, CLASSES))


def attention(width, layers):
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Flatten(1), nn.Unflatten(1, (196, 4)), nn.Linear(4, width), nn.TransformerEncoder(layer, layers),
                         nn.Flatten(), nn.Linear(196 * width, CLASSES))


def loss(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x), y)


if __name__ == "__main__":
    width, layers, batch = map(int, sys.argv[2:5])
    model = {function.__name__: function for function in (perceptron, convolutions, attention)}[sys.argv[1]](width, layers)
    data = TensorDataset(torch.rand(SAMPLES, 1, 28, 28), torch.randint(CLASSES, (SAMPLES,)))
    run = motley.Run(model, loss, DataLoader(data, batch, shuffle=True), torch.optim.Adam(model.parameters()))
    for epoch in run.epochs(1):
        pass
