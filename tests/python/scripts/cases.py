"""Small trainings of every kind: what a script gives to motley.Run, and what a plain loop is made of."""

import os
import random
from dataclasses import dataclass, replace
from typing import Any, Callable

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

SIZE, TEST, FEATURES, CLASSES = 300, 100, 12, 5
SEED = 5


@dataclass
class Case:
    model: nn.Module
    optimizer: Any
    loss: Callable
    train: Dataset
    test: Dataset
    batch: int = 48
    epochs: int = 6
    score: Callable | None = None
    schedule: Any = None
    schedule_every: str = "epoch"
    clip_norm: float = 0.0
    clip_norm_of: str = "own"
    precision: str = "fp32"


def classes(size, seed):
    """Points whose class is the largest of some linear functions, nearly."""
    generator = torch.Generator().manual_seed(seed)
    truth = torch.randn(FEATURES, CLASSES, generator=torch.Generator().manual_seed(1))
    x = torch.randn(size, FEATURES, generator=generator)
    return TensorDataset(x, (x @ truth + 0.3 * torch.randn(size, CLASSES, generator=generator)).argmax(1))


def cross_entropy(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x), y)


def score(model, batch):
    x, y = batch
    output = model(x)
    return {"accuracy": (output.argmax(1) == y).sum(), "confidence": output.softmax(1).max(1).values.sum()}


def mlp():
    return nn.Sequential(nn.Linear(FEATURES, 24), nn.Tanh(), nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, CLASSES))


def groups():
    """AdamW with a group of its own for the biases, one learning rate a step, clipping; one parameter is left out, one frozen."""
    model = mlp()
    model.register_parameter("unused", nn.Parameter(torch.ones(3)))
    model[0].bias.requires_grad_(False)
    biases = [p for name, p in model.named_parameters() if name.endswith("bias") and p.requires_grad]
    weights = [model[0].weight, model[4].weight]  # model[2].weight is in no group
    optimizer = torch.optim.AdamW([{"params": biases, "lr": 0.02, "weight_decay": 0.0, "betas": (0.8, 0.9)},
                                   {"params": weights}], lr=0.01, weight_decay=0.2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=[0.02, 0.01], total_steps=60)
    return Case(model, optimizer, cross_entropy, classes(SIZE, 2), classes(TEST, 3), score=score, schedule=schedule, schedule_every="step",
                clip_norm=0.5)


def wide():
    """A million parameters: steps that take some milliseconds."""
    model = nn.Sequential(nn.Linear(FEATURES, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, CLASSES))
    return Case(model, torch.optim.SGD(model.parameters(), lr=0.01), cross_entropy, classes(SIZE, 2), classes(TEST, 3))


def epochs():
    """SGD with Nesterov's momentum, a learning rate for each epoch, regression."""
    model = nn.Sequential(nn.Linear(FEATURES, 20), nn.Tanh(), nn.Linear(20, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    x = torch.randn(SIZE + TEST, FEATURES, generator=torch.Generator().manual_seed(4))
    data = x, x @ torch.randn(FEATURES, 3, generator=torch.Generator().manual_seed(5))
    parts = [TensorDataset(*(part[first:last] for part in data)) for first, last in ((0, SIZE), (SIZE, SIZE + TEST))]

    def loss(model, batch):
        return functional.mse_loss(model(batch[0]), batch[1])

    return Case(model, optimizer, loss, *parts, schedule=schedule)


def clipped():
    """The same, clipped by the norm of the step before."""
    return replace(epochs(), clip_norm=2.0, clip_norm_of="previous")


class Sentences(Dataset):
    """Sequences of 1 to 9 tokens; the collate function pads them."""

    def __init__(self, size, seed):
        generator = torch.Generator().manual_seed(seed)
        self.items = [torch.randint(1, 20, (int(n),), generator=generator) for n in torch.randint(1, 10, (size,), generator=generator)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


class NextToken(nn.Module):
    """Ties the embedding to the output."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.mix = nn.Linear(8, 8)
        self.out = nn.Linear(8, 20, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens):
        return self.out(torch.tanh(self.mix(self.embed(tokens))))


def pad(items):
    return nn.utils.rnn.pad_sequence(items, batch_first=True)


def token_loss(model, batch):
    target = (batch * 3 + 1) % 20 * (batch > 0)
    losses = functional.cross_entropy(model(batch).flatten(0, 1), target.flatten(), reduction="none") * (batch > 0).flatten()
    tokens = (batch > 0).sum()
    return losses.sum() / tokens, tokens


def tokens():
    """The mean over tokens: every batch has another number of them. Tied weights."""
    model = NextToken()
    return Case(model, torch.optim.Adam(model.parameters(), lr=0.02), token_loss, Sentences(SIZE, 6), Sentences(TEST, 7))


class Normed(nn.Module):
    """BatchNorm over features and over channels, with different momentum."""

    def __init__(self, dropout):
        super().__init__()
        self.conv = nn.Conv1d(1, 4, 3)
        self.norm1 = nn.BatchNorm1d(4)
        self.fc = nn.Linear(40, 16, bias=False)
        self.norm2 = nn.BatchNorm1d(16, momentum=0.25)
        self.head = nn.Linear(16, CLASSES)
        self.dropout = dropout

    def forward(self, x):
        h = torch.relu(self.norm1(self.conv(x.unsqueeze(1))))
        h = torch.relu(self.norm2(self.fc(h.flatten(1))))
        return self.head(functional.dropout(h, self.dropout, self.training))


def normed(dropout=0.0):
    model = Normed(dropout)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return Case(model, optimizer, cross_entropy, classes(SIZE, 2), classes(TEST, 3), batch=112, epochs=10, score=score)


def dropout():
    return normed(0.3)


class Augmented(Dataset):
    """Draws from three generators for every sample."""

    def __init__(self, plain):
        self.plain = plain

    def __len__(self):
        return len(self.plain)

    def __getitem__(self, index):
        x, y = self.plain[index]
        return x * (1 + 0.1 * random.random()) + 0.1 * torch.rand(()) + 0.1 * float(np.random.rand()), y


def augmented():
    model = mlp()
    return Case(model, torch.optim.Adam(model.parameters(), lr=0.01), cross_entropy, Augmented(classes(SIZE, 2)), classes(TEST, 3))


class Counted(Dataset):
    """Writes down who reads what."""

    def __init__(self, plain):
        self.plain = plain

    def __len__(self):
        return len(self.plain)

    def __getitem__(self, index):
        with open("read", "a") as lines:
            lines.write(f"{os.getppid()} {os.getpid()} {index}\n")
        return self.plain[index]


def counted():
    case = epochs()
    case.train = Counted(case.train)
    return case


def rmsprop():
    """An optimizer that only torch knows, with groups, a schedule for each step and clipping."""
    case = groups()
    parameters = [group["params"] for group in case.optimizer.param_groups]
    case.optimizer = torch.optim.RMSprop([{"params": parameters[0], "lr": 0.01, "momentum": 0.5}, {"params": parameters[1]}], lr=0.003,
                                         centered=True, momentum=0.9)
    case.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(case.optimizer, 60)
    return case


def adagrad():
    """State that is made beforehand, on layers that act on groups."""
    case = normed()
    case.optimizer = torch.optim.Adagrad(case.model.parameters(), lr=0.05, initial_accumulator_value=0.1)
    return case


def plateau():
    """A learning rate that follows the loss on the test set."""
    case = epochs()
    case.schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(case.optimizer, factor=0.3, patience=0, threshold=0.4)
    return case


def nadam():
    """State of several shapes, and a learning rate that follows a score."""
    case = groups()
    case.optimizer = torch.optim.NAdam([{"params": group["params"]} for group in case.optimizer.param_groups], lr=0.01)
    case.schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(case.optimizer, mode="max", factor=0.3, patience=0, threshold=0.1)
    return case


class Lookahead(torch.optim.Optimizer):
    """An optimizer inside, a counter of its own, one in its groups, and tensors that come with the third step only."""

    def __init__(self, base, every=3, part=0.5):
        self.base, self.every, self.part, self.made = base, every, part, 0
        super().__init__([{**group} for group in base.param_groups], {"turns": 0})
        self.param_groups = base.param_groups
        for group in self.param_groups:
            group["turns"] = 0

    @torch.no_grad()
    def step(self):
        self.base.step()
        self.made += 1
        if self.made % self.every:
            return
        for group in self.param_groups:
            group["turns"] += 1
            for p in group["params"]:
                slow = self.state[p].setdefault("slow", p.detach().clone())
                slow.lerp_(p, self.part / group["turns"])
                p.copy_(slow)


def lookahead():
    case = groups()
    case.optimizer = Lookahead(torch.optim.RMSprop([{"params": group["params"]} for group in case.optimizer.param_groups], lr=0.003))
    case.schedule = None
    return case


CASES = {function.__name__: function for function in (groups, wide, epochs, clipped, tokens, normed, dropout, augmented, counted,
                                                      rmsprop, adagrad, plateau, nadam, lookahead)}


def make(name):
    torch.manual_seed(SEED)
    return CASES[name]()
