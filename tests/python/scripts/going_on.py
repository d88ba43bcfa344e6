"""going_on.py KIND DIRECTION [LATEST]: a training with a schedule is cut in two, one half in plain torch and the other here, and compared
with the uncut plain loop (result.json). DIRECTION: "here" (the second half is this run), "back" (the first half is, which
test_going_on.py exports) or "twice" (both are, two runs). LATEST: a file that the body saves to, and that the script takes instead of the
cut when it is there, as scripts do that look after themselves."""

import copy
import json
import os
import pathlib
import sys

import torch
from torch.nn import functional
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

import motley

STEPS_PER_EPOCH, CUT, END, BATCH = 20, 100, 160, 30  # steps
KINDS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.3, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "adafactor": lambda p: torch.optim.Adafactor(p, lr=0.01),
    "muon": lambda p: torch.optim.Muon(p, lr=0.01),
}


def loss(model, batch):
    return functional.cross_entropy(model(batch[0]), batch[1])


def loader():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    x = torch.randn(STEPS_PER_EPOCH * BATCH, 12)
    return DataLoader(TensorDataset(x, (x @ torch.randn(12, 4)).argmax(1)), BATCH)


def parts(kind):
    torch.manual_seed(2)
    model = torch.nn.Sequential(torch.nn.Linear(12, 16, bias=False), torch.nn.Tanh(), torch.nn.Linear(16, 4, bias=False))
    optimizer = KINDS[kind](model.parameters())
    momentum = {"cycle_momentum": False} if kind in ("adafactor", "muon") else {}
    return model, optimizer, lr_scheduler.OneCycleLR(optimizer, 2 * optimizer.param_groups[0]["lr"], total_steps=END, **momentum)


def plainly(kind, first, last, start=None, pieces=1):
    """The loop that everybody writes; `pieces`: each gradient is added up from so many, as rounding knows it."""
    model, optimizer, schedule = parts(kind)
    if start is not None:
        take(start, model, optimizer, schedule)
    for _ in range(first // STEPS_PER_EPOCH, last // STEPS_PER_EPOCH):
        for batch in loader():
            optimizer.zero_grad()
            for some in zip(*(values.chunk(pieces) for values in batch)):
                (loss(model, some) * len(some[0]) / len(batch[0])).backward()
            optimizer.step()
            schedule.step()
    return give(model, optimizer, schedule)


def give(model, optimizer, schedule):
    return copy.deepcopy({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()})


def take(start, model, optimizer, schedule):
    model.load_state_dict(start["model"])
    optimizer.load_state_dict(start["optimizer"])
    if "schedule" in start:
        schedule.load_state_dict(start["schedule"])


def apart(one, other):
    """The largest difference of a tensor, relative to its norm, by what it is of."""
    found = {}
    for name, value in other["model"].items():
        found["model"] = max(found.get("model", 0), relative(one["model"][name], value))
    for number, state in other["optimizer"]["state"].items():
        mine = one["optimizer"]["state"][number]
        assert mine.keys() == state.keys(), (mine.keys(), state.keys())
        for name, value in state.items():
            found[name] = max(found.get(name, 0), relative(torch.as_tensor(mine[name]), torch.as_tensor(value)))
    rates = [[group["lr"] for group in each["optimizer"]["param_groups"]] for each in (one, other)]
    found["lr"] = max(abs(a - b) / b for a, b in zip(*rates))
    return found


def relative(a, b):
    return ((a.double() - b.double()).norm() / b.double().norm().clamp(min=1e-6)).item()


def main():
    kind, direction, *latest = sys.argv[1:]
    first, last = {"here": (CUT, END), "back": (0, CUT), "twice": (0, END)}[direction]
    model, optimizer, schedule = parts(kind)
    if latest and os.path.exists(latest[0]):
        take(torch.load(latest[0]), model, optimizer, schedule)
    elif direction == "here":
        take(plainly(kind, 0, CUT), model, optimizer, schedule)
    for steps in (CUT, END - CUT) if direction == "twice" else (last - first,):
        for _ in motley.Run(model, loss, loader(), optimizer, schedule=schedule, schedule_every="step").steps(steps):
            if latest:
                torch.save(give(model, optimizer, schedule), latest[0] + ".new")
                os.replace(latest[0] + ".new", latest[0])
    pathlib.Path("result.json").write_text(json.dumps(apart(give(model, optimizer, schedule), plainly(kind, 0, last))))


if __name__ == "__main__":
    main()
