"""Trains for a while, then holds the weights where they are, so that estimates can be compared with what they are of."""

from torch import nn, optim
from torch.utils.data import DataLoader

import cases
import motley

MOVING, HELD, BATCH, SIZE = 40, 600, 64, 2000


def model():
    return nn.Sequential(nn.Linear(cases.FEATURES, 16), nn.Tanh(), nn.Linear(16, cases.CLASSES))


def data():
    return cases.classes(SIZE, 2)


if __name__ == "__main__":
    trained = model()
    run = motley.Run(trained, cases.cross_entropy, DataLoader(data(), BATCH, shuffle=True), optim.SGD(trained.parameters(), lr=0.1),
                     schedule=lambda step: 0.1 if step < MOVING else 0.0)
    for _ in run.steps(MOVING + HELD):
        pass
