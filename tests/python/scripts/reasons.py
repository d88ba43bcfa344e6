"""reasons.py everywhere|probing: a loss that raises after some steps on every machine; a search for a batch size that works."""

import sys

import torch
from torch.utils.data import DataLoader

import cases
import motley


class Broken(Exception):
    def __init__(self, path, why):
        super().__init__(f"{path}: {why}")


def everywhere(model, batch, step):
    if step > 5:
        raise Broken("img7.png", "cut off")
    return cases.cross_entropy(model, batch)


def train(loss, batch, epochs):
    torch.manual_seed(2)
    model = cases.mlp()
    run = motley.Run(model, loss, DataLoader(cases.classes(192, 1), batch), torch.optim.SGD(model.parameters(), lr=0.1))
    for _ in run.epochs(epochs):
        pass


if sys.argv[1] == "everywhere":
    train(everywhere, 48, 1000)
else:
    for size in (512, 48):
        try:
            train(cases.cross_entropy, size, 2)
            break
        except motley.Error as error:
            print("refused:", error, file=sys.stderr)
