"""The script's loss on a few samples of its training set, as a run would compute it."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from motley._errors import Error
from motley._machines import _devices
from motley._models import _groups, _model
from motley._samples import _data
from motley._samples._batches import rows_of
from motley._trials._loss import PRECISIONS, measure_loss

# In a trial, by parameters; the same on every machine, since the layout follows from it.
SAMPLES = ((4 << 20, 8), (32 << 20, 4), (1 << 62, 2))
BATCH_MAX = 256


@dataclass
class Found:
    """What the trial passes showed."""

    changing: dict[str, int] = field(default_factory=dict)  # buffers of normalisation layers; how often in a forward pass
    unused: set[str] = field(default_factory=set)  # parameters without a gradient
    draws: tuple[str, ...] = ()  # whose random numbers the loss and collate_fn draw
    mixes: bool = False  # in training mode samples of a batch see each other, or share random numbers
    needs_grad: bool = False  # the loss differentiates by itself, also where it is only evaluated
    rows: bool = False  # a batch of n samples has n rows
    line: str = ""  # what was tried, for the user
    samples: dict[int, Any] = field(default_factory=dict)  # the first ones that were tried, by number
    fused: _groups.Fused | None = None  # several groups go in one pass
    alone: str = ""  # why not, where the user can do something about it


@dataclass
class Pass:
    """gradients: by parameter, of the sum: the mean times its weight.  rows: of the batch."""

    gradients: dict[str, torch.Tensor]
    mean: float
    weight: float
    given: bool  # the weight, by the loss
    rows: int | None


class Trial:
    """Runs the script's loss on samples of the training set, by position in a keyed order."""

    def __init__(self, call: Callable[[Any], Any], root: nn.Module, train: _data.BatchSource, precision: str,
                 samples: dict[int, Any] | None = None):
        """samples: that were read before, by number."""
        self.call, self.root, self.train, self.precision = call, root, train, precision
        self.parameters = {name: p for name, p in root.named_parameters() if p.requires_grad}
        for name, parameter in self.parameters.items():
            _model.check_trained(name, parameter)
        if not self.parameters:
            raise Error("no parameter of the model has requires_grad, so there is nothing to train", "look at what was frozen")
        self.device = next(iter(self.parameters.values())).device
        self.batch = min(train.samples, train.batch_size)
        self.whole = min(self.batch, BATCH_MAX)
        elements = sum(p.numel() for p in root.parameters())
        self.samples = min(self.whole, next(samples for limit, samples in SAMPLES if elements <= limit))
        self.positions = train.some(max(_data.COMPARED, self.whole))
        self.settle: Callable[[], None] = lambda: None  # after each pass
        self._modes = [(module, module.training) for module in root.modules()]
        self._samples: dict[int, Any] = dict(samples or {})
        self._newest = (0, 0)  # positions that were fetched
        self._raised: Exception | None = None  # by the loss, of these

    def fetch(self, first: int, last: int) -> Any:
        """The batch of these positions of the keyed order, which is a ring."""
        self._newest = first, last
        numbers = [self.positions[i % len(self.positions)] for i in range(first, last)]
        missing = [number for number in dict.fromkeys(numbers) if number not in self._samples]
        if missing:
            self._samples.update(zip(missing, self.train.read(missing, missing if self.train.draws else None), strict=True))
        _data.seed_host(0, _data.GENERATED)
        return _data.move(self.train.collate([self._samples[number] for number in numbers]), self.device)

    def few(self) -> dict[int, Any]:
        """Samples that were fetched, by number: as many as are tried at once."""
        return {number: self._samples[number] for number in self.positions[: self.samples] if number in self._samples}

    def gradient(self, batch: Any, samples: int, autocast: bool = True, scale: float = 1.0, seed: int = 0,
                 groups: _groups.Groups | None = None, backward: bool = True) -> Pass:
        """As a run computes it: by backward(), from the weight. `scale`: of what goes backward. `groups`: of the batch, in one pass. Not
        `backward`: without gradients."""
        _data.seed_host(0, _data.GENERATED)
        _devices.seed(seed)
        forward = groups.going_on() if groups else contextlib.nullcontext()
        dtype = PRECISIONS[self.precision] if autocast else None
        own = contextlib.nullcontext() if autocast or self.precision == "fp32" else _without_autocast()
        for p in self.parameters.values():
            p.grad = None
        try:
            with torch.set_grad_enabled(backward):
                with forward, own, torch.autocast(self.device.type, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
                    found = self.call(batch)
                    mean, weight = measure_loss(found, samples)
                if any(p.grad is not None for p in self.parameters.values()):
                    raise Error("the loss makes a backward pass itself, and so does the run", "return the loss alone, without backward()")
                if backward and not mean.requires_grad:
                    raise Error("the loss has no gradient: it does not depend on the model's parameters, or was detached",
                                "compute it from the model's output, without detach() or item()")
                if weight != 0 and groups:
                    groups.backward(mean, torch.full_like(mean, weight * scale))
                elif weight != 0 and backward:
                    mean.backward(torch.full_like(mean, weight * scale))
        except Exception as error:
            self._raised = error
            raise
        finally:
            for module, mode in self._modes:
                if module.training is not mode:  # writing takes ten times as long
                    module.training = mode
            self.settle()
        gradients = {}
        for name, p in self.parameters.items():
            if p.grad is not None:
                gradients[name] = p.grad.to_dense() if p.grad.layout != torch.strided else p.grad
                p.grad = None
        return Pass(gradients, mean.item(), weight, isinstance(found, tuple), rows_of(batch))

    def takes_whole(self, error: Exception) -> bool:
        """Whether the loss raised this of a part of a batch, and computes the whole one that begins there."""
        first, last = self._newest
        if error is not self._raised or last - first >= self.batch:
            return False
        try:
            self.gradient(self.fetch(first, first + self.batch), self.batch)
        except Exception:
            return False
        return True


@contextlib.contextmanager
def _without_autocast() -> Iterator[None]:
    """Where the script enters it, too, in the run's own precision."""
    enter = torch.autocast.__enter__

    def entered(context: torch.autocast) -> Any:
        enabled, context._enabled = context._enabled, False
        try:
            return enter(context)
        finally:
            context._enabled = enabled

    torch.autocast.__enter__ = entered  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        torch.autocast.__enter__ = enter  # type: ignore[method-assign]
