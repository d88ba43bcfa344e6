"""The training of ray_lab.py and its peer: a CNN on Fashion-MNIST. As a script, under `motley`: ray_script.py SAMPLES BATCH."""

import pathlib
import sys

import torch
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "python"))
from plain import Cnn, find_fashion, load_idx  # noqa: E402


def images():
    return load_idx(find_fashion())["train"]


def loss(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x), y)


def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


if __name__ == "__main__":
    import motley

    torch.manual_seed(1)
    samples, batch = map(int, sys.argv[1:])
    x, y = images()
    trained = Cnn()
    for epoch in motley.Run(trained, loss, DataLoader(TensorDataset(x[:samples], y[:samples]), batch), optimizer(trained)).epochs(1):
        pass
