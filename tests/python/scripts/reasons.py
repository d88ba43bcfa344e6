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


def begun(loss, batch, epochs):
    torch.manual_seed(2)
    model = cases.mlp()
    run = motley.Run(model, loss, DataLoader(cases.classes(192, 1), batch), torch.optim.SGD(model.parameters(), lr=0.1))
    return run.epochs(epochs)


if sys.argv[1] == "everywhere":
    list(begun(everywhere, 48, 1000))
else:
    for size in (512, 48):
        epochs = begun(cases.cross_entropy, size, 2)
        try:
            list(epochs)
            break
        except motley.Error as error:
            print("refused:", error, file=sys.stderr)
