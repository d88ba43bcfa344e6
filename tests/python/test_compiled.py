"""Models under torch.compile: two programs for all sizes of a micro-batch, one that trains and one that evaluates, and the plain loop's
losses. The compiler's own count of programs is asked; what it makes of them does not matter, so its plainest back end is used."""

import sys

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import motley

SAMPLES, BATCH, EPOCHS = 121, 40, 3  # steps of 40 samples and of one


def model():
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 5))


def data():
    generator = torch.Generator().manual_seed(9)
    return TensorDataset(torch.randn(SAMPLES, 12, generator=generator), torch.randint(0, 5, (SAMPLES,), generator=generator))


def loss(network, batch):
    return functional.cross_entropy(network(batch[0]), batch[1])


@pytest.fixture
def programs_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.compiler.reset()
    counters = sys.modules["torch._dynamo.utils"].counters
    counters.clear()
    yield lambda: counters["stats"]["unique_graphs"]
    torch.compiler.reset()
    counters.clear()


def test_one_program_trains_and_one_evaluates(programs_made):
    losses = []
    for compiled in (False, True):
        made = torch.compile(model(), backend="eager") if compiled else model()
        optimizer = torch.optim.SGD(made.parameters(), lr=0.05)
        test = DataLoader(data(), 32)
        run = motley.Run(made, loss, DataLoader(data(), BATCH, shuffle=True), optimizer, test=test, seed=3)
        losses.append([(epoch.loss, epoch.test_loss) for epoch in run.epochs(EPOCHS)])
        assert programs_made() == (2 if compiled else 0)
    for (a, tested), (b, tested_too) in zip(*losses, strict=True):
        assert a == pytest.approx(b, rel=1e-5) and tested == pytest.approx(tested_too, rel=1e-5)
