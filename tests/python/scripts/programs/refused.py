"""Programs that no number of machines could train as one would: (model, loss), and more of motley.Run where it is to be seen there."""

import argparse
import itertools

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from programs.others import by_class, cross_entropy, points_model


def class_weights():
    return points_model(), by_class


class Recurrent(nn.Module):
    """Goes on from where the batch before ended."""

    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(6, 8), nn.Linear(8, 4)
        self.hidden = torch.zeros(8)

    def forward(self, x):
        h = self.cell(x, self.hidden.to(x.device).expand(len(x), -1))
        self.hidden = h.mean(0).detach()
        return self.head(h)


def hidden_state():
    return Recurrent(), cross_entropy


class ActNorm(nn.Module):
    """Gets scale and offset from the first batch that it sees."""

    def __init__(self):
        super().__init__()
        self.scale, self.offset = nn.Parameter(torch.ones(6)), nn.Parameter(torch.zeros(6))
        self.initialised = False

    def forward(self, x):
        if not self.initialised:
            with torch.no_grad():
                self.offset.copy_(-x.mean(0))
                self.scale.copy_(1 / x.std(0))
            self.initialised = True
        return (x + self.offset) * self.scale


def act_norm():
    return nn.Sequential(ActNorm(), points_model()), cross_entropy


class Warmed:
    """A loss that counts its calls to find its weight."""

    def __init__(self):
        self.calls = 0

    def __call__(self, model, batch):
        self.calls += 1
        return cross_entropy(model, batch) * min(1.0, self.calls / 10)


def counter():
    return points_model(), Warmed()


QUEUE = []


def queue():
    """A memory bank in a global."""
    def loss(model, batch):
        x, _ = batch
        found = model(x)
        QUEUE.append(found.detach().mean(0))
        return cross_entropy(model, batch) + (found * torch.stack(QUEUE).mean(0)).sum(1).mean()

    QUEUE.clear()
    return points_model(), loss


class Centred(nn.Module):
    """Keeps a mean of its outputs in a buffer, as DINO does."""

    def __init__(self):
        super().__init__()
        self.inner = points_model()
        self.register_buffer("centre", torch.zeros(4))

    def forward(self, x):
        found = self.inner(x) - self.centre
        self.centre.mul_(0.9).add_(found.detach().mean(0), alpha=0.1)
        return found


def centred():
    return Centred(), cross_entropy


def iterator():
    unlabelled = iter(torch.utils.data.DataLoader(torch.randn(64, 6), 8))

    def loss(model, batch):
        return cross_entropy(model, batch) + model(next(unlabelled)).square().mean()

    return points_model(), loss


def cycled():
    unlabelled = itertools.cycle([torch.randn(8, 6)])
    return points_model(), lambda model, batch: cross_entropy(model, batch) + model(next(unlabelled)).square().mean()


def generator():
    own = torch.Generator().manual_seed(1)

    def loss(model, batch):
        x, y = batch
        return functional.cross_entropy(model(x + 0.1 * torch.randn(x.shape, generator=own).to(x.device)), y)

    return points_model(), loss


def numpy_generator():
    own = np.random.default_rng(1)

    def loss(model, batch):
        x, y = batch
        return functional.cross_entropy(model(x * float(own.uniform(0.9, 1.1))), y)

    return points_model(), loss


def logits_too():
    def loss(model, batch):
        x, y = batch
        logits = model(x)
        return functional.cross_entropy(logits, y), logits

    return points_model(), loss


def own_autocast():
    def loss(model, batch):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return cross_entropy(model, batch)

    return points_model(), loss


def decorated():
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def loss(model, batch):
        return cross_entropy(model, batch)

    return points_model(), loss


class MaxNorm(nn.Linear):
    """Keeps the rows of its weight short."""

    def forward(self, x):
        with torch.no_grad():
            self.weight.copy_(torch.renorm(self.weight, 2, 0, 0.3))
        return super().forward(x)


def max_norm():
    return nn.Sequential(MaxNorm(6, 16), nn.Tanh(), nn.Linear(16, 4)), cross_entropy


class Student(nn.Module):
    """Moves its teacher in every pass, as MoCo and BYOL do."""

    def __init__(self):
        super().__init__()
        self.online, self.target = points_model(), points_model()
        self.target.requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            for average, weight in zip(self.target.parameters(), self.online.parameters(), strict=True):
                average.mul_(0.99).add_(weight, alpha=0.01)
        return self.online(x) + 0 * self.target(x)


def moved_teacher():
    return Student(), cross_entropy


class Settings:
    warmth = 0.0


def class_attribute():
    def loss(model, batch):
        Settings.warmth += 0.1
        return cross_entropy(model, batch) * Settings.warmth

    return points_model(), loss


ARGUMENTS = argparse.Namespace(warmth=0.0)


def arguments():
    def loss(model, batch):
        ARGUMENTS.warmth += 0.1
        return cross_entropy(model, batch) * ARGUMENTS.warmth

    return points_model(), loss


def clamped_weight():
    """A hook that clamps what it seldom has to."""
    model = points_model()
    model[0].weight.register_hook(lambda gradient: gradient.clamp(-100, 100))
    return model, cross_entropy


class Clamped(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.view_as(x)

    @staticmethod
    def backward(context, gradient):
        return gradient.clamp(-1, 1)


def clamped_output():
    """Each sample for itself, so that a batch splits exactly."""
    return points_model(), lambda model, batch: functional.cross_entropy(Clamped.apply(model(batch[0])) / 2, batch[1])


def instance_statistics():
    layers = nn.Unflatten(1, (2, 3)), nn.InstanceNorm1d(2, track_running_stats=True), nn.Flatten()
    return nn.Sequential(*layers, points_model()), cross_entropy


def scaled():
    scaler = torch.amp.GradScaler("cpu")
    return points_model(), lambda model, batch: scaler.scale(cross_entropy(model, batch))


def in_bfloat16():
    return points_model().bfloat16(), lambda model, batch: functional.cross_entropy(model(batch[0].bfloat16()).float(), batch[1])


def spectral():
    return nn.Sequential(torch.nn.utils.parametrizations.spectral_norm(nn.Linear(6, 6)), points_model()), cross_entropy


def lazy():
    return nn.Sequential(nn.LazyLinear(4)), cross_entropy


class Phases(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(6, 4, dtype=torch.complex64))

    def forward(self, x):
        return (x.to(torch.complex64) @ self.w).abs()


def complex_weights():
    return Phases(), cross_entropy


REFUSED = {
    class_weights: ("not a mean over the samples", "(mean, weight)"),
    hidden_state: ("Recurrent.hidden", "state"),
    act_norm: ("ActNorm writes into its parameter 0.(offset|scale)", "before motley.Run"),
    counter: ("Warmed.calls", "`step`"),
    queue: ("changes QUEUE", "`state`"),
    centred: (r"the buffer centre \(of Centred\)", "ema=0.999"),
    iterator: ("the iterator unlabelled", "train_loader"),
    cycled: ("the iterator unlabelled", "train_loader"),
    generator: ("the generator own", "torch's"),
    numpy_generator: ("the generator own", "numpy's"),
    logits_too: ("returned a number and a tensor", "return the loss alone"),
    own_autocast: ("enters torch.autocast by itself", 'precision="bf16"'),
    decorated: ("enters torch.autocast by itself", 'precision="bf16"'),
    max_norm: ("MaxNorm writes into its parameter 0.weight", "parametrize"),
    moved_teacher: ("writes into its parameter target.0.weight", "ema=0.999"),
    class_attribute: ("changes Settings.warmth", "`step`"),
    arguments: ("changes Namespace.warmth", "`step`"),
    clamped_weight: ("a register_hook changes the gradient of 0.weight", "subclass of the optimizer"),
    clamped_output: (r"a hook or a backward\(\) of the script changes the gradient", "subclass of the optimizer"),
    instance_statistics: ("InstanceNorm with track_running_stats", "track_running_stats=False"),
    scaled: ("GradScaler", 'precision="bf16"'),
    in_bfloat16: ("trained in torch.bfloat16", 'precision="bf16"'),
    lazy: ("0.weight has no shape yet", "with a batch before motley.Run"),
    complex_weights: ("w is trained in torch.complex64", "torch.view_as_real"),
    spectral: ("the buffer 0.parametrizations.weight.0._u", "on_step="),
}
