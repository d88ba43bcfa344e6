"""What a script's model, loss and data are like, found by trying them on a few samples at the start.

Some of it cannot be read from the code: which buffers a forward pass changes, whether it draws random numbers, whether samples of
a batch see each other, and whether the loss is the mean over the samples that the arithmetic of a split batch needs.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from motley import _core, _data, _model
from motley._computation import PRECISIONS, Work, measure_loss
from motley._errors import Error
from motley._optimizer import ReadOptimizer

Loss = Callable[[nn.Module, Any], Any]
SAMPLES, PART = 8, 3
SCORES_MAX = 64
# Float32 sums in another order differ by some 1e-6 of the largest gradient; a loss that is no mean differs by a good part of it.
TOLERANCE = 1e-3
TOLERANCE_BF16 = 3e-2


@dataclass
class Found:
    """What the trial passes showed."""

    changing: set[str] = field(default_factory=set)  # buffers
    unused: set[str] = field(default_factory=set)  # parameters without a gradient
    draws: bool = False
    mixes: bool = False  # in training mode samples of a batch see each other


class Trial:
    """Runs the user's loss on the first samples of the training set. Puts buffers, gradients and random numbers back."""

    def __init__(self, model: nn.Module, loss: Loss, train: _data.Recipe, precision: str):
        self.model, self.loss, self.train, self.precision = model, loss, train, precision
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not self.parameters:
            raise Error("no parameter of the model has requires_grad, so there is nothing to train", "look at what was frozen")
        self.device = next(iter(self.parameters.values())).device
        self.samples = min(SAMPLES, train.size)

    def batch(self, first: int, last: int) -> Any:
        seeds = list(range(first, last)) if self.train.draws else None
        return _data.move(self.train.fetch(list(range(first, last)), seeds), self.device)

    def gradient(self, first: int, last: int, scaled: bool = True) -> tuple[dict[str, torch.Tensor], float]:
        """The gradient of the sum (or, not `scaled`, of the loss itself) over these samples, and the loss's mean."""
        torch.manual_seed(0)
        dtype = PRECISIONS[self.precision]
        batch = self.batch(first, last)
        with torch.autocast(self.device.type, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            mean, weight = measure_loss(self.loss(self.model, batch), last - first)
        if not mean.requires_grad:
            raise Error("the loss has no gradient: it does not depend on the model's parameters, or was detached",
                        "compute it from the model's output, without detach() or item()")
        grads = torch.autograd.grad(mean * (weight if scaled else 1), list(self.parameters.values()), allow_unused=True)
        return {name: g for name, g in zip(self.parameters, grads, strict=True) if g is not None}, mean.item()

    def split_error(self, scaled: bool = True) -> float:
        """How far the gradient of all samples is from the sum over two parts, as a share of its largest element."""
        whole, _ = self.gradient(0, self.samples, scaled)
        first, _ = self.gradient(0, PART, scaled)
        rest, _ = self.gradient(PART, self.samples, scaled)
        largest = max((g.abs().max().item() for g in whole.values() if g.numel()), default=0.0)
        worst = 0.0
        for name, g in whole.items():
            parts = first.get(name, torch.zeros_like(g)) + rest.get(name, torch.zeros_like(g))
            worst = max(worst, (g - parts).abs().max().item() if g.numel() else 0.0)
        return worst / largest if largest > 0 else 0.0

    def in_evaluation_mode(self) -> float | None:
        """The split error where layers that act on groups rest; None where the loss cannot be had in that mode."""
        self.model.eval()
        try:
            return self.split_error()
        except Error:
            raise
        except Exception:  # a model that computes no loss in this mode
            return None


def inspect(model: nn.Module, loss: Loss, train: _data.Recipe, precision: str, check: bool) -> Found:
    """Tries the loss. `check`: also whether it may be split. Errors: a loss that is no mean over samples, samples that cannot be read."""
    with _data.RandomWatch() as watch:
        train.fetch([0])
    train.draws = watch.draws
    training = {module: module.training for module in model.modules()}
    buffers = {name: tensor.detach().clone() for name, tensor in model.named_buffers()}
    gradients = {parameter: parameter.grad for parameter in model.parameters()}
    threads = torch.get_num_threads()
    found = Found()
    with _data.RandomWatch(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # On one thread: the helpers of a team of this thread's would stay, and keep the computing thread's from their processors.
        torch.set_num_threads(1)
        try:
            _try(Trial(model, loss, train, precision), found, buffers, check)
        finally:
            torch.set_num_threads(threads)
            with torch.no_grad():
                for name, tensor in model.named_buffers():
                    tensor.copy_(buffers[name])
            for module, mode in training.items():
                module.training = mode
            for parameter, gradient in gradients.items():
                parameter.grad = gradient
    return found


def _try(trial: Trial, found: Found, buffers: dict[str, torch.Tensor], check: bool) -> None:
    model = trial.model
    model.train()
    whole, _ = trial.gradient(0, trial.samples)
    found.changing = {name for name, tensor in model.named_buffers() if not torch.equal(tensor, buffers[name])}
    found.unused = set(trial.parameters) - set(whole)
    batch = trial.batch(0, trial.samples)
    with _data.RandomWatch() as watch, torch.no_grad():
        trial.loss(model, batch)
    found.draws = bool(watch.draws)
    if trial.samples < SAMPLES:
        found.mixes = bool(found.changing)
        return
    tolerance = TOLERANCE if trial.precision == "fp32" else TOLERANCE_BF16
    found.mixes = found.draws or bool(found.changing) or trial.split_error() > tolerance
    if not check:
        return
    error = trial.in_evaluation_mode()
    if error is None:
        model.train()
        error = 0.0 if found.draws or found.changing else trial.split_error()
    if error > tolerance:
        raise _no_mean(trial, error)


def _no_mean(trial: Trial, error: float) -> Error:
    parts = f"{PART} and {SAMPLES - PART}"
    found = f"the gradient of {SAMPLES} samples differs from that of {parts} by {100 * error:.2g} % of its largest element"
    if trial.split_error(scaled=False) <= TOLERANCE:
        return Error(f"the loss is a sum over the samples, expected their mean: {found}",
                     "return the mean (reduction='mean'), or (sum / weight, weight)")
    return Error(f"the loss is not a mean over the samples of a batch: {found}",
                 "where it is a mean over tokens or weighted samples, return (mean, weight): the number of tokens or the sum of weights; "
                 "a loss in which samples of a batch see each other (contrastive) cannot be split")


def guess(model: nn.Module, train: _data.Recipe) -> Found:
    """What inspect() finds by trying the loss, from the classes of the layers alone: where the script computes, there is nothing to try."""
    with _data.RandomWatch() as watch:
        train.fetch([0])
    train.draws = watch.draws
    statistics = _model.statistics_of(model)
    dropout = any(isinstance(module, _DropoutNd) for module in model.modules())
    return Found(changing={name for each in statistics for name in (each.mean, each.var, each.counter)}, draws=True,
                 mixes=dropout or bool(statistics))


def make_work(model: nn.Module, loss: Loss | None, score: Callable[[nn.Module, Any], Any] | None, train: _data.Recipe,
              test: _data.Recipe | None, read: ReadOptimizer, precision: str, check: bool) -> Work:
    """Puts together what the workers need. The layout is the same on every machine with the same script."""
    found = inspect(model, loss, train, precision, check) if loss is not None else guess(model, train)
    if test is not None:
        with _data.RandomWatch() as watch:
            test.fetch([0])
        test.draws = watch.draws
    names = _model.named_tensors(model, read.numbers, read.left_alone, found.changing)
    for named in names:
        if named.name in found.unused:
            named.group = read.left_alone
    layout = _core.Layout([named.entry() for named in names])
    return Work(model=model, loss=loss, score=score, train=train, test=test, precision=precision, names=names, layout=layout,
                acts_on_groups=found.mixes, draws=found.draws, scores=_score_names(model, score, test), unused=found.unused)


def _score_names(model: nn.Module, score: Callable[[nn.Module, Any], Any] | None, test: _data.Recipe | None) -> list[str]:
    """The names that `score` gives, tried on one sample. Errors: what it gives is no mapping of names to sums."""
    if score is None or test is None:
        return []
    training = {module: module.training for module in model.modules()}
    device = next(model.parameters()).device
    model.eval()
    with _data.RandomWatch(), torch.no_grad():
        found = score(model, _data.move(test.fetch([0]), device))
    for module, mode in training.items():
        module.training = mode
    if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found) or len(found) > SCORES_MAX:
        raise Error(f"score: expected a dictionary of at most {SCORES_MAX} sums by name, found {type(found).__name__}",
                    'return {"accuracy": (model(x).argmax(1) == y).sum()}')
    return list(found)
