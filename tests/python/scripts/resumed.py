"""resumed.py CASE: trains one of the cases below and leaves what its script saw in out.json. Where a file `die` names a step, the process
kills itself after that; what a run that is resumed leaves must be what a run leaves that nobody interrupted."""

import hashlib
import json
import os
import random
import signal
import sys
import types

import numpy
import torch
from torch import nn
from torch.nn import functional
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

import motley
from motley._runs import _eval_points

torch.manual_seed(1)
numpy.random.seed(2)
random.seed(3)
X, Y = torch.randn(300, 8), torch.randint(0, 3, (300,))
WORK = torch.ones(700, 700)  # a step takes so long that a checkpoint is due after each


class Killer:
    """Of a run."""

    def on_step(self, step):
        if os.path.exists("die") and step.number == int(open("die").read()):
            os.kill(os.getpid(), signal.SIGKILL)


class Stopper:
    """Patience by hand, as people write it."""

    __slots__ = ("best", "bad")

    def __init__(self):
        self.best, self.bad = None, 0

    def over(self, loss):
        if self.best is None or loss < self.best * 0.5:
            self.best, self.bad = loss, 0
        else:
            self.bad += 1
        return self.bad >= 6


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


def loss(model, batch):
    torch.mm(WORK, WORK)
    return functional.cross_entropy(model(batch[0]), batch[1])


def run_of(model, optimizer, dies=True, loss=loss, **options):
    data = TensorDataset(X, Y)
    if "test" in options:
        options["test"] = DataLoader(data, 100)
    return motley.Run(model, loss, DataLoader(data, 60, shuffle=True), optimizer, callbacks=[Killer()] if dies else [], **options)


def sgd(model, lr=0.1):
    return torch.optim.SGD(model.parameters(), lr)


def digest(model):
    return hashlib.sha256(b"".join(bytes(tensor.contiguous().numpy()) for tensor in model.state_dict().values())).hexdigest()[:12]


def of(run):
    return [[each.number, each.step, each.loss, each.learning_rate, each.test_loss] for each in run.history]


def patience():
    model = net()
    run = run_of(model, sgd(model, 0.0), test=True, keep_best="test_loss", patience=5)
    for _ in run.epochs(12):
        pass
    return of(run), digest(model)


def nan_first():
    model = net()
    run = run_of(model, sgd(model), test=True, keep_best="f1", patience=3, state={"first": True},
                 score=lambda model, batch: {"f1": torch.tensor(float("nan")) if run.state["first"]
                                             else (model(batch[0]).argmax(1) == batch[1]).sum()},
                 loss=lambda model, batch, state: loss(model, batch))
    for epoch in run.epochs(8):
        run.state["first"] = epoch.number < 3
    return [str(each.f1) for each in run.history], digest(model)


def plateau():
    model = net()
    optimizer = sgd(model, 1.0)
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, cooldown=1, threshold=0.5)
    run, seen = run_of(model, optimizer, test=True, schedule=schedule), []
    for _ in run.epochs(9):
        seen.append([schedule.num_bad_epochs, schedule.cooldown_counter, optimizer.param_groups[0]["lr"]])
    return of(run), seen, schedule.last_epoch


def plateau_in_body():
    model = net()
    optimizer = sgd(model, 1.0)
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, cooldown=1, threshold=0.5)
    run = run_of(model, optimizer)
    for epoch in run.epochs(9):
        schedule.step(epoch.loss)
    return of(run), digest(model), schedule.num_bad_epochs


class Schedules:
    def __init__(self, optimizer):
        warm = lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3)
        self.both = [lr_scheduler.SequentialLR(optimizer, [warm, lr_scheduler.ExponentialLR(optimizer, 0.8)], [3])]

    def step(self):
        for each in self.both:
            each.step()


def schedulers_of_an_object():
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), 0.02)
    schedules = Schedules(optimizer)
    run = run_of(model, optimizer)
    for _ in run.epochs(8):
        schedules.step()
    return of(run), digest(model)


def rates_by_hand():
    model = net()
    optimizer = sgd(model)
    run, rate = run_of(model, optimizer), 0.1
    for epoch in run.epochs(8):
        if epoch.number % 2:
            optimizer.param_groups[0]["lr"] *= 0.9
        else:
            rate *= 0.7
            run.set_lr(rate)
    return of(run), digest(model)


def scheduled_by_step():
    model = net()
    optimizer = sgd(model)
    schedule = lr_scheduler.OneCycleLR(optimizer, 0.3, total_steps=40)
    run, seen = run_of(model, optimizer, schedule=schedule, schedule_every="step"), []
    for _ in run.epochs(8):
        seen.append([schedule.last_epoch, optimizer.param_groups[0]["lr"]])
    return of(run), seen


def generators():
    model = net()
    mine = {"torch": torch.Generator().manual_seed(3), "numpy": [numpy.random.default_rng(4), numpy.random.RandomState(5)]}
    python, seen = random.Random(6), []
    run = run_of(model, sgd(model), loss=lambda model, batch: loss(model, [functional.dropout(batch[0], 0.1), batch[1]]))
    for _ in run.epochs(8):
        seen.append([float(torch.rand(())), float(numpy.random.rand()), random.random(), float(torch.rand((), generator=mine["torch"])),
                     float(mine["numpy"][0].random()), float(mine["numpy"][1].rand()), python.random()])
    return seen, digest(model)


def variables():
    model, stopper, seen, curve, best, last = net(), Stopper(), [], {"loss": []}, None, numpy.zeros(2)
    run, count, known, average = run_of(model, sgd(model)), 0, set(), net()

    def counted():
        nonlocal count
        count += 1
        return count

    for epoch in run.epochs(20):
        curve["loss"].append(epoch.loss)
        seen.append((epoch.number, counted()))
        known.add(epoch.number // 2)
        last[:] = epoch.number
        with torch.no_grad():
            for kept, now in zip(average.parameters(), model.parameters()):
                kept.lerp_(now, 0.5)
        if epoch.number % 3 == 0:
            best = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        if stopper.over(epoch.loss):
            break
    whole = float(sum(tensor.sum() for tensor in best.values()))
    return seen, curve, float(last.sum()), sorted(known), digest(model), digest(average), stopper.bad, whole


def second_optimizer():
    """Of another model, which the body alone trains."""
    model, probe = net(), nn.Linear(3, 3)
    optimizer, seen = torch.optim.Adam(probe.parameters(), 0.05), []
    schedule = lr_scheduler.StepLR(optimizer, 3, 0.5)
    for _ in run_of(model, sgd(model)).epochs(8):
        optimizer.zero_grad()
        value = functional.cross_entropy(probe(model(X).detach()), Y)
        value.backward()
        optimizer.step()
        schedule.step()
        seen.append(value.item())
    return seen, digest(probe), optimizer.param_groups[0]["lr"]


def state():
    model, episodes = net(), motley.HeadTensors(X[:60], Y[:60])
    weighed = lambda model, batch, state: loss(model, batch) * state["weight"]  # noqa: E731
    run = motley.Run(model, weighed, DataLoader(episodes, 30), sgd(model), state={"weight": 1.0, "pair": (1, 2)}, callbacks=[Killer()])
    for _ in run.epochs(10):
        run.state["weight"] *= 0.8
        episodes.replace(episodes.tensors[0] * 0.9, episodes.tensors[1])
    return of(run), digest(model), run.state["weight"], str(run.state["pair"]), float(episodes.tensors[0].sum())


def sampled():
    model, mine = net(), torch.Generator().manual_seed(3)
    sampler = torch.utils.data.WeightedRandomSampler(torch.arange(1.0, 301.0), 300, generator=mine)
    run = motley.Run(model, loss, DataLoader(TensorDataset(X, Y), 60, sampler=sampler), sgd(model), callbacks=[Killer()])
    for _ in run.epochs(8):
        pass
    return of(run), digest(model)


def two_runs():
    model, seen, mine = net(), [], torch.Generator().manual_seed(3)
    first = run_of(model, sgd(model), dies=False)
    for epoch in first.epochs(2):
        seen.append([epoch.loss, float(torch.rand((), generator=mine))])
    second = run_of(model, torch.optim.Adam(model.parameters(), lr=0.01))
    for epoch in second.epochs(6):
        seen.append([epoch.loss, float(torch.rand((), generator=mine))])
    return of(first), of(second), seen, digest(model)


def leases():
    model = net()
    run, killer = run_of(model, sgd(model), dies=False), Killer()
    for lease in run.leases(epochs=8):
        killer.on_step(types.SimpleNamespace(number=lease.step))
        for x, y in lease:
            torch.mm(WORK, WORK)
            losses = functional.cross_entropy(model(x), y, reduction="none")
            losses.sum().backward()
            lease.add(losses.sum(), len(losses))
    return of(run), digest(model)


def interrupted():
    """Where a file `interrupt` is, between what the third body left and the steps that follow it."""
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), 0.02)
    schedules, after_body = Schedules(optimizer), _eval_points.EvalPoints.after_body

    def stop(points, version, ended):
        after_body(points, version, ended)
        if ended.number == 3 and os.path.exists("interrupt"):
            raise KeyboardInterrupt

    _eval_points.EvalPoints.after_body = stop
    run = run_of(model, optimizer)
    for _ in run.epochs(8):
        schedules.step()
    return of(run), digest(model)


if __name__ == "__main__":
    found = globals()[sys.argv[1]]()
    with open("out.json", "w") as out:
        json.dump(found, out)
