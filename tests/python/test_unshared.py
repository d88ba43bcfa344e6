"""What no machine shares with another is refused at the start; what only looks like that is right."""

import contextvars
import datetime
import os
import random
import threading
import time
from collections.abc import Mapping

import numpy
import pytest
import torch
from torch import nn

import cases
import motley
from test_body import EPOCHS, in_its_own_directory, parts, plainly, run_of, same  # noqa: F401


BEGUN = time.time() - 3600


class Viewing(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(12, 8), nn.Linear(8, 5)
        self.view = self.first.weight.detach()

    def forward(self, x):
        return self.last(self.first(x).relu())


LOCAL = threading.local()
LOCAL.scale = 2.0
VARIABLE = contextvars.ContextVar("VARIABLE", default=1.0)


def pulled(model, batch):
    return cases.cross_entropy(model, batch) + (batch[0] @ model.view.t()).square().mean() * model.last.bias.sum()


REFUSED = [
    (lambda model, batch: cases.cross_entropy(model, batch) * (1 + min(1e6, time.time() - BEGUN)), "reads a clock", "`step`"),
    (lambda model, batch: cases.cross_entropy(model, batch) * (1 + time.monotonic_ns() / 1e18), "reads a clock", "`step`"),
    (lambda model, batch: cases.cross_entropy(model, batch) * datetime.datetime.now().microsecond, "is another one each time", "seeded"),
    (lambda model, batch: cases.cross_entropy(model, batch) * numpy.random.default_rng().random(), "is another one each time", "seeded"),
    (lambda model, batch: cases.cross_entropy(model, batch) * int.from_bytes(os.urandom(4), "big"), "is another one each time", "seeded"),
    (lambda model, batch: cases.cross_entropy(model, batch) * LOCAL.scale, "only the script's own thread has", "global"),
    (lambda model, batch: cases.cross_entropy(model, batch) * VARIABLE.get(), "only the script's own thread has", "global"),
    (pulled, "a view of a weight that the script kept", r"model.layer.weight.detach\(\)"),
]


@pytest.mark.parametrize("loss, what, remedy", REFUSED)
def test_what_differs_from_machine_to_machine_is_refused_at_the_start(loss, what, remedy):
    VARIABLE.set(2.0)
    torch.manual_seed(3)
    model = Viewing()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    run = run_of(model, torch.optim.SGD(model.parameters(), 0.1), cases.classes(300, 2), loss=loss)
    with pytest.raises(motley.Error, match=what) as raised:
        list(run.epochs(1))
    assert remedy.replace("\\", "") in raised.value.hint and not run.history
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_draws_are_called_as_their_libraries_have_them():
    def loss(model, batch):
        drawn = numpy.random.choice(numpy.int64(8)) + numpy.random.permutation(numpy.int64(8))[0] + random.choice(seq=[1.0, 2.0])
        random.shuffle(x=[1, 2])
        return cases.cross_entropy(model, batch) * (1 + float(drawn))

    model, optimizer, train = parts()
    assert len(list(run_of(model, optimizer, train, loss=loss).epochs(1))) == 1


def test_a_clock_for_looking_at_is_no_part_of_the_loss():
    model, optimizer, train = parts()

    def loss(model, batch):
        begun = time.perf_counter()
        found = cases.cross_entropy(model, batch)
        loss.seconds = torch.tensor(time.perf_counter() - begun)
        return found

    assert len(list(run_of(model, optimizer, train, loss=loss).epochs(2))) == 2


def test_who_waits_for_a_clock_gets_there():
    """Also where the clock is tried ahead and standing, and where the time to wait for was set before the run."""
    model, optimizer, train = parts()
    soon = time.monotonic() + 0.05

    def loss(model, batch):
        until = time.thread_time() + 0.001
        while time.thread_time() < until or time.monotonic() < soon:
            pass
        return cases.cross_entropy(model, batch)

    assert len(list(run_of(model, optimizer, train, loss=loss).epochs(1))) == 1


def test_views_of_weights_that_nobody_reads_follow_them():
    """Also all weights as views of one flat tensor."""
    model, optimizer, train = parts()
    plain_model, plain_optimizer, _ = parts()
    plainly(plain_model, plain_optimizer, train)
    flat, at = torch.cat([p.detach().flatten() for p in model.parameters()]), 0
    for p in model.parameters():
        p.data = flat[at : at + p.numel()].view_as(p)
        at += p.numel()
    model.flat, model.views = [flat], model[0].weight.detach()
    for _ in run_of(model, optimizer, train).epochs(EPOCHS):
        assert torch.equal(flat, torch.cat([p.detach().flatten() for p in model.parameters()]))
    same(model, plain_model)


# --- what was wrongly refused --------------------------------------------------------------------------------------------------


class Angles(nn.Module):
    """A table as rotary embeddings have it, filled by the first pass."""

    def __init__(self, how):
        super().__init__()
        self.how, self.filled = how, False
        self.first, self.last = nn.Linear(12, 8), nn.Linear(8, 5)
        self.register_buffer("table", None if how == "none" else torch.zeros(8))

    def forward(self, x):
        angles = torch.arange(8.0) / 8
        if self.how == "flag" and not self.filled:
            self.table.copy_(angles)
            self.filled = True
        elif self.how == "none" and self.table is None or self.how == "each":
            self.table = angles
        elif self.how == "zeros" and not self.table.any():
            self.table.copy_(angles)
        return self.last((self.first(x) * self.table.cos()).relu())


@pytest.mark.parametrize("how", ["flag", "none", "zeros", "each"])
def test_a_buffer_that_the_first_pass_fills(how):
    models = []
    for _ in range(2):
        torch.manual_seed(3)
        models.append(Angles(how))
    model, plain = models
    train = cases.classes(300, 2)
    plainly(plain, torch.optim.SGD(plain.parameters(), 0.1), train)
    for _ in run_of(model, torch.optim.SGD(model.parameters(), 0.1), train).epochs(EPOCHS):
        assert torch.equal(model.table, plain.table)
    same(model, plain)


def test_autocast_in_the_runs_own_precision():
    def loss(model, batch):
        with torch.autocast("cpu", torch.bfloat16):
            return nn.functional.cross_entropy(model(batch[0]).float(), batch[1])

    trained = []
    for each in (loss, cases.cross_entropy):
        model, optimizer, train = parts()
        trained.append([epoch.loss for epoch in run_of(model, optimizer, train, loss=each, precision="bf16").epochs(2)])
    assert trained[0] == pytest.approx(trained[1], rel=1e-2)
    model, optimizer, train = parts()
    with pytest.raises(motley.Error, match="enters torch.autocast by itself"):
        list(run_of(model, optimizer, train, loss=loss).epochs(1))


# --- what is around it ---------------------------------------------------------------------------------------------------------


def test_modes_that_the_body_leaves_are_refused():
    model, optimizer, train = parts()
    with pytest.raises(motley.Error, match=r"left Sequential in eval\(\)") as raised:
        for _ in run_of(model, optimizer, train).epochs(EPOCHS):
            model.eval()
    assert "train() of it at the end of the body" in raised.value.hint
    model, optimizer, train = parts()
    for epoch in run_of(model, optimizer, train).epochs(2):
        model.eval()
        if epoch.number < 2:
            model.train()
    assert not model.training


class Closed(Mapping):
    """As a file of h5py is, once it was closed."""

    __module__ = "numpy"

    def __getitem__(self, key):
        raise ValueError("Invalid file id")

    def __len__(self):
        raise ValueError("Invalid file id")

    __iter__ = __len__


FILE = Closed()


def test_a_closed_file_in_a_global_is_nobodys_affair():
    class Read:
        def __init__(self):
            self.FILE = 1.0

    read = Read()

    def loss(model, batch):
        return cases.cross_entropy(model, batch) * read.FILE if read.FILE else FILE[0]

    model, optimizer, train = parts()
    assert len(list(run_of(model, optimizer, train, loss=loss).epochs(2))) == 2
