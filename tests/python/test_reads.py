"""What the loss reads, whatever it is: what the body changes of it is refused, or holds on all machines."""

import contextvars
import ctypes
import functools
import json
import logging
import mmap
import multiprocessing
import os
import pathlib
import sqlite3
import types

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, default_collate

import cases
import motley
import state_read
from conftest import SCRIPTS
from program import settings
from test_body import EPOCHS, in_its_own_directory, parts, plainly, run_of, same  # noqa: F401

SCRIPT = str(SCRIPTS / "state_read.py")


class Slotted:
    __slots__ = ("scale",)

    def __init__(self):
        self.scale = 1.0


class Described:
    """Reads and writes where nobody looks."""

    def __get__(self, owner, kind):
        return WEAKLY[id(owner)]

    def __set__(self, owner, value):
        WEAKLY[id(owner)] = value


class WithDescriptor:
    scale = Described()


WEAKLY = {}


def slots():
    held = Slotted()
    return lambda: held.scale, lambda value: setattr(held, "scale", value)


def descriptor():
    held = WithDescriptor()
    held.scale = 1.0
    return lambda: held.scale, lambda value: setattr(held, "scale", value)


def shared_value():
    held = multiprocessing.Value("d", 1.0)
    return lambda: held.value, lambda value: setattr(held, "value", value)


def context_variable():
    held = contextvars.ContextVar("held", default=1.0)
    return held.get, held.set


def numbers_of_c():
    held = (ctypes.c_double * 2)(1.0, 1.0)
    return lambda: held[0], lambda value: held.__setitem__(0, value)


def level_of_a_logger():
    log = logging.getLogger("motley.test")
    log.setLevel(10)
    return lambda: 2.0 if log.isEnabledFor(10) else 1.0, lambda value: log.setLevel(int(20 * value))


def environment():
    os.environ["MOTLEY_TEST_SCALE"] = "1"
    return lambda: float(os.environ["MOTLEY_TEST_SCALE"]), lambda value: os.environ.__setitem__("MOTLEY_TEST_SCALE", str(value))


def file():
    path = pathlib.Path("scale.txt")
    path.write_text("1")
    return lambda: float(path.read_text()), lambda value: path.write_text(str(value))


def mapped_memory():
    held = mmap.mmap(-1, 8)
    held[0] = 1
    return lambda: float(held[0]), lambda value: held.__setitem__(0, int(value))


def database():
    held = sqlite3.connect(":memory:", check_same_thread=False)
    held.execute("create table scales (scale real)")
    held.execute("insert into scales values (1)")
    read = "select scale from scales"
    return lambda: held.execute(read).fetchone()[0], lambda value: held.execute("update scales set scale = ?", (value,))


def of_another_module():
    held = types.ModuleType("held")
    held.settings = {"scale": 1.0}
    return lambda: held.settings["scale"], lambda value: held.settings.update(scale=value)


def partial():
    held = functools.partial(lambda scale: scale, 1.0)
    return held, lambda value: held.__setstate__((held.func, (value,), {}, {}))


KINDS = [slots, descriptor, shared_value, context_variable, numbers_of_c, level_of_a_logger, environment, file, mapped_memory, database,
         of_another_module, partial]
NAMED = {slots: "Slotted.scale", shared_value: "Synchronized", context_variable: "ContextVar", environment: "MOTLEY_TEST_SCALE of the env",
         file: "the file .*scale.txt", level_of_a_logger: "Logger", numbers_of_c: "c_double_Array"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_body_changes_of_it_is_refused(kind):
    read, write = kind()
    model, optimizer, train = parts()
    bodies = 0
    with pytest.raises(motley.Error, match="the body of the epoch changed .*" + NAMED.get(kind, "")) as raised:
        for _ in run_of(model, optimizer, train, loss=lambda *both: cases.cross_entropy(*both) * read()).epochs(EPOCHS):
            bodies += 1
            write(2.0)
    assert bodies == 1 and "state=" in raised.value.hint


class Reversed(torch.autograd.Function):
    """As domain-adversarial training has it: seen in the gradient alone."""

    @staticmethod
    def forward(context, x, scale):
        context.scale = scale
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        return -context.scale * gradient, None


def test_what_only_the_gradient_shows_is_refused():
    read, write = shared_value()
    model, optimizer, train = parts()

    def loss(model, batch):
        return nn.functional.cross_entropy(Reversed.apply(model(batch[0]), read()), batch[1])

    with pytest.raises(motley.Error, match="Synchronized.*gradient"):
        for _ in run_of(model, optimizer, train, loss=loss).epochs(EPOCHS):
            write(2.0)


def test_what_the_score_reads_is_refused():
    read, write = shared_value()
    model, optimizer, train = parts()
    run = run_of(model, optimizer, train, test=DataLoader(cases.classes(100, 9), 50),
                 score=lambda model, batch: {"right": read() * (model(batch[0]).argmax(1) == batch[1]).sum()})
    with pytest.raises(motley.Error, match="Synchronized"):
        for _ in run.epochs(EPOCHS):
            write(2.0)


def test_what_nothing_reads_may_change():
    model, optimizer, train = parts()
    plain_model, plain_optimizer, _ = parts()
    plainly(plain_model, plain_optimizer, train)
    changes = [kind()[1] for kind in KINDS]
    for epoch in run_of(model, optimizer, train).epochs(EPOCHS):
        for write in changes:
            write(1.0 + epoch.number)
    same(model, plain_model)


# --- run.state, read by the run itself -----------------------------------------------------------------------------------------


def plainly_read(where):
    """(losses by epoch, weights) where it is read at one place, by a plain loop."""
    torch.manual_seed(3)
    model = cases.mlp()
    values = iter([1.0, 2.0, 3.0])
    scale = [next(values)]

    def loss(model, batch):
        x, y = batch
        seen = x * scale[0] if where in ("data", "collate") else x
        return cases.cross_entropy(model, (seen, y)) * (scale[0] if where == "loss" else 1.0)

    losses = plainly(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), state_read.SAMPLES, loss=loss, epochs=3,
                     after_epoch=lambda _: scale.__setitem__(0, next(values, 0.0)))
    return losses, model.state_dict()


@pytest.mark.parametrize("where", ["loss", "collate", "data", "score"])
def test_state_that_is_read_by_the_run_holds_on_all_machines(motley, where):
    both = settings(train_min_workers=2, train_shares=[0.5, 0.5], train_verify=0)
    head = motley.start("train", SCRIPT, "--run", "run", "--listen", "127.0.0.1:0", "--token-file", "token", "--threads", "1", "--device",
                        "cpu", *both, where)
    other = motley.start("join", "--token-file", "token", SCRIPT, "--threads", "1", "--device", "cpu", "--name", "other", where)
    assert head.end() == 0, head.story()
    assert other.end() == 0, other.story()
    found = json.loads((motley.directory / "trained.json").read_text())
    losses, weights = plainly_read(where)
    assert found["losses"] == pytest.approx(losses, rel=1e-5)
    for name, value in weights.items():
        torch.testing.assert_close(torch.tensor(found["weights"][name]), value, rtol=1e-5, atol=1e-6)
    if where == "score":
        assert found["scores"][-1] > 1


def test_state_that_the_loss_changes_is_refused():
    model, optimizer, train = parts()

    def loss(model, batch):
        run.state["calls"] += 1
        return cases.cross_entropy(model, batch)

    run = run_of(model, optimizer, train, loss=loss, state={"calls": 0})
    with pytest.raises(motley.Error, match="a step changes run.state"):
        list(run.epochs(1))


class Scaled(torch.utils.data.Dataset):
    def __init__(self, data, scale):
        self.data, self.scale = data, scale

    def __len__(self):
        return len(self.data)

    def __getitem__(self, number):
        return self.data[number][0] * self.scale(), self.data[number][1]


def test_state_that_other_processes_read_is_refused():
    model, optimizer, train = parts()
    loader = DataLoader(Scaled(train, lambda: run.state["scale"]), 60, num_workers=1)
    run = motley.Run(model, cases.cross_entropy, loader, optimizer, state={"scale": 1.0})
    with pytest.raises(motley.Error, match="its samples follow from run.state") as raised:
        for _ in run.epochs(EPOCHS):
            run.state["scale"] = 2.0
    assert "num_workers=0" in raised.value.hint


def test_a_batch_that_was_made_beside_another_state_is_made_anew():
    model, optimizer, train = parts()
    plain_model, plain_optimizer, _ = parts()
    steps, scale = iter(range(1, 100)), [1.0]

    def every_third():
        if (number := next(steps)) % 3 == 0:
            scale[0] = 1.0 + number

    plainly(plain_model, plain_optimizer, train, loss=lambda model, batch: cases.cross_entropy(model, (batch[0] * scale[0], batch[1])),
            after_step=every_third, epochs=2)

    def collate(samples):
        x, y = default_collate(samples)
        return x * run.state["scale"], y

    loader = DataLoader(train, 60, shuffle=True, collate_fn=collate)
    run = motley.Run(model, cases.cross_entropy, loader, optimizer, seed=cases.SEED, state={"scale": 1.0}, evaluate_every=3)
    for epoch in run.steps(10):
        run.state["scale"] = 1.0 + epoch.step
    same(model, plain_model)
