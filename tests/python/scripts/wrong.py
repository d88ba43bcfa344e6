"""wrong.py WHAT: a run with one thing wrong; the names are those of the functions below."""

import os
import signal
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, Subset

import cases
import motley

HERE = os.path.basename(sys.argv[2]) if len(sys.argv) > 2 else "head"  # a path, which may differ between machines


class Stream(IterableDataset):
    def __iter__(self):
        yield from ()


def iterable(case):
    case.loader = DataLoader(Stream(), 8)


def by_step(case):
    """Wrong in rounds alone."""
    plain, case.tested = case.loss, DataLoader(case.test, 64)
    case.loss = lambda model, batch, step: plain(model, batch) / step


def breaking(case):
    """An optimizer that fails with the gradients of a run, not with those that it is tried with."""
    class Breaking(torch.optim.SGD):
        def step(self, closure=None):
            gradient = self.param_groups[0]["params"][0].grad
            if float(gradient.abs().max()) < 1:
                raise ValueError("broke")
            super().step(closure)

    case.optimizer = Breaking(case.model.parameters(), lr=0.1)


def sampler(case):
    case.loader = DataLoader(case.train, 8, sampler=DistributedSampler(case.train, 2, 0))


def closure(case):
    case.optimizer = torch.optim.LBFGS(case.model.parameters())


def double_state(case):
    class Averages(torch.optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            for p in self.param_groups[0]["params"]:
                self.state[p]["average"] = p.detach().double()

    case.optimizer = Averages(list(case.model.parameters())[-1:], lr=0.1)


def plateau(case):
    case.schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(case.optimizer)


def vector_loss(case):
    case.loss = lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1], reduction="none")


def detached(case):
    case.loss = lambda model, batch: torch.tensor(1.0)


def raises(case):
    """On the machine that is told to, after some steps."""
    plain = case.loss

    def broken_loss(model, batch, step):
        if HERE == "broken" and step > 12:
            raise ValueError("no such token: 17")
        return plain(model, batch)

    case.loss, case.epochs = broken_loss, 100000


class Broken(torch.utils.data.Dataset):
    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        if index == 251:
            raise OSError("no such file: 251")
        return self.data[index]


def unreadable(case):
    case.loader = DataLoader(Broken(case.train), case.batch, num_workers=2)


def other_model(case):
    case.epochs = 100000
    if HERE == "other":
        case.model = nn.Sequential(nn.Linear(cases.FEATURES, 25), nn.ReLU(), nn.Linear(25, cases.CLASSES))
        case.optimizer = torch.optim.SGD(case.model.parameters(), lr=0.1)


def other_data(case):
    case.epochs = 100000
    if HERE == "other":
        case.loader = DataLoader(Subset(case.train, range(200)), case.batch)


def body_raises(case):
    case.body = lambda: 1 / 0


def body_exits(case):
    case.body = lambda: sys.exit(7)


def forks(case):
    """A child of the script that ends as Python does leaves the run alone."""
    def body():
        child = os.fork()
        if child == 0:
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0

    case.body = body


def leaves(case):
    """The body leaves the loop after the second epoch."""
    bodies = iter((False, True))
    case.epochs, case.body = 100000, lambda: next(bodies)


def interrupted(case):
    case.epochs = 100000
    case.body = lambda: os.kill(os.getpid(), signal.SIGINT)


def long(case):
    case.epochs = 100000


def nothing(case):
    pass


if __name__ == "__main__":
    torch.manual_seed(3)
    model = cases.mlp()
    case = cases.Case(model, torch.optim.SGD(model.parameters(), lr=0.1), cases.cross_entropy, cases.classes(300, 2), cases.classes(100, 3))
    case.loader, case.body, case.tested = DataLoader(case.train, case.batch, shuffle=True), lambda: None, None
    globals()[sys.argv[1]](case)
    run = motley.Run(case.model, case.loss, case.loader, case.optimizer, schedule=case.schedule, test=case.tested)
    for epoch in run.epochs(case.epochs):
        if case.body():
            break
