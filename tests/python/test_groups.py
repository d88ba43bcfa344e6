"""Several groups in one pass: the same loss, gradients and statistics as one group after the other, and where that cannot be, these."""

import random

import numpy
import pytest
import torch
import torch.utils.checkpoint
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset, default_collate

import conftest
from motley._computing import _compiled, _computation, _work
from motley._models import _model, _parts
from motley._optimizers import _optimizer
from motley._samples import _data
from driving import run
from test_computation import ArrivingTask, Task

BATCH, SAMPLES, CLASSES = 200, 260, 7


class Image(nn.Module):
    """What it is given, behind a convolution and before a linear layer."""

    def __init__(self, body, features):
        super().__init__()
        self.first, self.body, self.out = nn.Conv2d(3, 8, 3, padding=1), body, nn.Linear(features, CLASSES)

    def forward(self, x):
        return self.out(self.body(self.first(x)).flatten(1))


class Residual(nn.Module):
    def __init__(self, width, out, stride):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(width, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(),
                               nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out))
        self.b = nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return functional.relu(self.a(x) + self.b(x))


class Recomputed(nn.Module):
    def __init__(self, body, reentrant):
        super().__init__()
        self.body, self.reentrant = body, reentrant

    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.body, x, use_reentrant=self.reentrant)


class Twice(nn.Module):
    """One layer on two views."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        return self.norm(x) * self.norm(x.flip(3))


class Tokens(nn.Module):
    """Pixels as a sequence; of attention without weights, as torch's own encoder has it, or of a block of one's own."""

    def __init__(self, body, batch_first=True):
        super().__init__()
        self.first, self.body, self.out, self.batch_first = nn.Linear(3, 16), body, nn.Linear(16, CLASSES), batch_first

    def forward(self, x):
        x = self.first(x.flatten(2).transpose(1, 2)[:, :20])
        found = self.body(x if self.batch_first else x.transpose(0, 1))
        found = found[0] if isinstance(found, tuple) else found
        return self.out(found.mean(1 if self.batch_first else 0))


class Attention(nn.Module):
    def forward(self, x):
        return functional.scaled_dot_product_attention(x, x, x, dropout_p=0.3 if self.training else 0.0)


def dropping():
    return nn.Sequential(nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout2d(0.2), nn.Dropout(0.3))


def encoder(batch_first=True):
    return Tokens(nn.TransformerEncoderLayer(16, 2, 32, dropout=0.2, batch_first=batch_first), batch_first)


def classes(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x), y)


def channels_last(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x.contiguous(memory_format=torch.channels_last)), y)


def noisy(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x + 0.1 * torch.randn_like(x) * torch.rand(len(x), 1, 1, 1, device=x.device)), y)


def penalized(model, batch):
    x, y = batch[0].clone().requires_grad_(), batch[1]
    found = functional.cross_entropy(model(x), y, reduction="none")
    (slope,) = torch.autograd.grad(found.sum(), x, create_graph=True)
    return found.mean() + slope.square().flatten(1).sum(1).mean()


def mixed_before(samples):
    """A collate function that draws, for its group."""
    x, y = default_collate(samples)
    return torch.lerp(x, x[torch.randperm(len(x))], float(torch.rand(()))), y


KEPT_APART = {
    "normalised": lambda: (Image(nn.Sequential(nn.BatchNorm2d(8), nn.ReLU()), 512), classes),
    "dropping": lambda: (Image(dropping(), 512), classes),
    "without statistics": lambda: (Image(nn.BatchNorm2d(8, affine=False, track_running_stats=False), 512), classes),
    "residual": lambda: (Image(nn.Sequential(Residual(8, 8, 1), Residual(8, 16, 2), nn.AdaptiveAvgPool2d(1)), 16), classes),
    "channels last": lambda: (Image(dropping(), 512), channels_last),
    "siamese": lambda: (Image(Twice(), 512), classes),
    "encoder": lambda: (encoder(), classes),
    "encoder by time": lambda: (encoder(batch_first=False), classes),
    "attention": lambda: (Tokens(Attention()), classes),
    "recurrent": lambda: (Tokens(nn.LSTM(16, 16, 2, dropout=0.2, batch_first=True)), classes),
    "recomputed": lambda: (Image(Recomputed(dropping(), False), 512), classes),
    "recomputed by entering again": lambda: (Image(Recomputed(dropping(), True), 512), classes),
    "noise": lambda: (Image(nn.Identity(), 512), noisy),
    "penalized": lambda: (Image(nn.Sequential(dropping(), nn.Tanh()), 512), penalized),
    "mixed before": lambda: (Image(dropping(), 512), classes, mixed_before),
}


def make(model, loss, collate=None, samples=SAMPLES, batch=BATCH, precision="fp32"):
    generator = torch.Generator().manual_seed(3)
    data = TensorDataset(torch.randn(samples, 3, 8, 8, generator=generator), torch.randint(CLASSES, (samples,), generator=generator))
    train = _data.BatchSource(DataLoader(data, batch, collate_fn=collate), "loader")
    parts = _parts.together(model, loss)
    read = _optimizer.ReadOptimizer(torch.optim.SGD(model.parameters(), 0.1))
    work = _work.make_work(parts, train, None, read, precision, b"", {"step": 1, "epoch": 1, "state": {}}, None, check=True)
    flat = _model.flatten(work.layout, work.names)
    return work, _computation.ModelComputation(work, parts, conftest.device, 1), flat


def made(case):
    torch.manual_seed(1)
    return make(*case())


def compute(computation, flat, micro_batch, kind=Task, count=BATCH, **others):
    task = kind(computation, flat, count, **others)
    task.micro_batch = micro_batch
    outcome = run(computation, task)
    assert len(outcome) == 4, outcome
    return task, outcome


def assert_equal(found, expected, tolerance=1e-6):
    (task, outcome), (other, expected_outcome) = found, expected
    assert outcome[:2] == expected_outcome[:2]
    assert outcome[2] == pytest.approx(expected_outcome[2], rel=tolerance)
    work, sums = task.computation._work, {}  # of gradients, of statistics
    for each in (task, other):
        for named, values in _model.pieces(work.layout, work.names, each.gradients):
            sums.setdefault((each, named.kind == _model.TRAINED), []).append(values.flatten())
    for trained in {trained for _, trained in sums}:
        a, b = (torch.cat(sums[each, trained]).double() for each in (task, other))
        assert float((a - b).norm()) <= tolerance * float(b.norm())


@pytest.mark.parametrize("name", KEPT_APART)
def test_groups_in_one_pass_are_what_they_are_alone(name):
    work, computation, flat = made(KEPT_APART[name])
    assert work.acts_on_groups and work.found.fused and not work.found.alone
    assert computation.micro_batch == 224  # six groups and one of eight samples
    alone = compute(computation, flat, 32)
    for micro_batch, fetched in ((224, [(0, 200)]), (96, [(0, 32), (32, 96), (128, 72)])):
        together = compute(computation, flat, micro_batch)
        if name != "recurrent" or conftest.device == "cpu":  # cuDNN's drop out within one kernel: group by group, there
            assert together[0].fetched == fetched
        assert_equal(together, alone)
    if conftest.device == "cpu":  # kernels of cards may add in any order
        again = compute(computation, flat, 224)
        assert torch.equal(again[0].gradients, compute(computation, flat, 224)[0].gradients)


@pytest.mark.parametrize("name", ["dropping", "encoder"])
def test_from_the_end_and_with_weights_on_their_way(name):
    _, computation, flat = made(KEPT_APART[name])
    alone = compute(computation, flat, 32)
    ends = compute(computation, flat, 96, from_end=True)
    assert ends[0].fetched == [(192, 8), (96, 96), (0, 96)]
    assert_equal(ends, alone)
    assert_equal(compute(computation, flat, 96, ArrivingTask), alone)


def test_in_bfloat16():
    torch.manual_seed(1)
    work, computation, flat = make(*KEPT_APART["residual"](), precision="bf16")
    assert work.found.fused
    assert_equal(compute(computation, flat, 224), compute(computation, flat, 32), 2e-2)


# --- what is computed group by group ---------------------------------------------------------------------------------------------


def mixed(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x * torch.rand(1, device=x.device)), y)


def shuffled(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x + 0 * x[torch.randperm(len(x))]), y)


def by_numpy(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x + torch.from_numpy(numpy.random.rand(len(x), 1, 1, 1)).to(x)), y)


def by_python(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x * random.random()), y)


def padded(samples):
    """Rows of lengths of their own, as wide as the longest of a batch."""
    widths = [8 + int(1000 * abs(x[0, 0, 0])) % 37 for x, _ in samples]
    rows = [functional.pad(x, (0, max(widths) - 8)) for x, _ in samples]
    return torch.stack(rows), torch.stack([y for _, y in samples])


class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.drop, self.out = nn.Conv2d(3, 8, 1, bias=False), nn.Dropout(0.3), nn.Linear(8, CLASSES)

    def forward(self, x):
        return self.out(self.drop(self.first(x)).sum((2, 3)))


class OwnStatistics(nn.BatchNorm2d):
    """Normalises by itself."""

    def forward(self, x):
        if not self.training:
            return super().forward(x)
        var, mean = torch.var_mean(x, (0, 2, 3), correction=0, keepdim=True)
        return (x - mean) / (var + 1e-5).sqrt()


ONE_BY_ONE = {
    "a number for the batch": (lambda: (Image(nn.Identity(), 512), mixed), "numbers of the shape [1], which no sample has for itself"),
    "a permutation": (lambda: (Image(nn.Identity(), 512), shuffled), "a permutation"),
    "numpy": (lambda: (Image(nn.Identity(), 512), by_numpy), "random or numpy.random"),
    "random": (lambda: (Image(nn.Identity(), 512), by_python), "random or numpy.random"),
    "padding": (lambda: (Pooled(), classes, padded), "as long as its longest"),
    "statistics of one's own": (lambda: (Image(OwnStatistics(8), 512), classes), ""),
}


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_what_acts_on_the_whole_pass_is_computed_group_by_group(name):
    case, why = ONE_BY_ONE[name]
    work, computation, flat = made(case)
    assert work.acts_on_groups and work.found.fused is None
    assert why in work.found.alone if why else work.found.alone == ""
    assert computation.micro_batch == 32
    assert compute(computation, flat, 224)[0].fetched[:2] == [(0, 32), (32, 32)]


def test_compiled_models_are_computed_group_by_group(monkeypatch):
    monkeypatch.setattr(_compiled, "uses", lambda things: True)
    _, computation, flat = made(KEPT_APART["normalised"])
    assert computation.micro_batch == 32 and compute(computation, flat, 224)[0].fetched[0] == (0, 32)


def test_what_shows_later_ends_it(capfd):
    """Also where the first batch is read before the weights are there."""

    def loss(model, batch, step):
        return classes(model, batch) if step == 1 else mixed(model, batch)

    def narrowing(samples):
        x, y = default_collate(samples)
        return (x[:, :, :, :7] if float(x[0, 0, 0, 0]) == marked else x), y

    _, computation, flat = made(lambda: (Image(dropping(), 512), loss))
    found = compute(computation, flat, 224)
    assert found[0].fetched[:3] == [(0, 200), (0, 32), (32, 32)]
    assert "computes 32 samples at a time from now on, since the loss draws numbers" in capfd.readouterr().err
    assert_equal(found, compute(computation, flat, 32))

    marked = float("nan")
    work, computation, flat = made(lambda: (Pooled(), classes, narrowing))
    marked = float(work.train.dataset[64][0][0, 0, 0])
    found = compute(computation, flat, 224)
    assert found[0].fetched[:3] == [(0, 200), (0, 32), (32, 32)] and found[1][0] == BATCH
    assert "as long as its longest" in capfd.readouterr().err
