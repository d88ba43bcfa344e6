"""Whether a loss may be split: the gradient of a batch must be the sum over its parts, each times its weight.

Tried in float64, where a sum over samples splits to some 1e-13 and nothing else does, on samples from anywhere in the data set and on such
as are unlike these, on batches up to a whole one as far as the time goes, in uneven parts, at the weights as they are and at others near
by. Normalisation over a batch is left out, since ranges are cut in groups for its sake; random numbers are the same for every sample.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from motley._errors import Error
from motley._machines import _devices
from motley._trials import _disturbed, _steady, _wide
from motley._trials._trial import Found, Pass, Trial

BUDGET_S = 1.0
SIZES = (6, 13, 40)  # and a whole batch
APART = 31  # positions between the beginnings of batches
EXACT = 1e-9
# Where an operation has no float64: a multiple of what the same samples in another order differ by.
ROUNDING, ROUNDING_MAX = 20, 1e-3
NUDGE = 0.05  # of a parameter's root mean square
LARGER = 1024.0  # times a gradient, which must not change its direction
REPEATS = 4  # of a pass that should give the same each time
TRAINING_MODE = "in training mode"


def check(trial: Trial, found: Found) -> str:
    """What was tried, in a line. Errors: a loss that cannot be split, with what was found."""
    if trial.whole < 2:
        return ""
    return _Check(trial, found).run()


class _Check:
    def __init__(self, trial: Trial, found: Found):
        self._trial, self._found = trial, found
        self._narrow = ""  # why not in float64
        self._calls: list[str] = []  # that drew
        self._flat = False
        self._worst = 0.0
        self._known = False  # some gradient was not zero
        self._last: Pass | None = None  # of a whole, that was compared

    def run(self) -> str:
        begun = time.perf_counter()
        order = self._trial.positions
        self._trial.positions = self._with_unlike(order)
        try:
            return self._tries(begun)
        finally:
            self._trial.positions = order

    def _with_unlike(self, order: list[int]) -> list[int]:
        """The order with samples that have what its first ones lack, some in the last part of each batch."""
        mixed, size = list(order), min(SIZES[0], self._trial.whole)
        for number, position in enumerate(self._trial.train.unlike(order[:size])):
            batch, place = divmod(number, size // 2)
            if batch * APART + size > len(mixed):
                break
            mixed[batch * APART + size - size // 2 + place] = position
        return mixed

    def _tries(self, begun: float) -> str:
        sizes = [min(SIZES[0], self._trial.whole)]
        tried = 0
        while sizes:
            size = sizes.pop(0)
            at = time.perf_counter()
            self._try(size, offset=APART * tried, nudged=tried % 2 == 1)
            tried += 1
            spent = time.perf_counter() - at
            left = BUDGET_S - (time.perf_counter() - begun)
            following = [next_size for next_size in (*SIZES, self._trial.whole) if size < next_size <= self._trial.whole]
            if following and spent * following[0] / size < left and self._fits(following[0] / size):
                sizes = [following[0]]
            elif tried < 3 and spent < left:
                sizes = [size]
        return self._line(tried, time.perf_counter() - begun)

    def _fits(self, times: float) -> bool:
        """Whether half of the memory is enough for so many times what the last batch took."""
        used, peak, budget, _ = _devices.memory(self._trial.device, 1)
        return budget == 0 or used + times * max(0, peak - used) < budget / 2

    def _line(self, tried: int, seconds: float) -> str:
        precision = f"float32, for want of float64 ({self._narrow})" if self._narrow else "float64"
        known = f"it splits to {self._worst:.0e}" if self._known else "its gradient is zero there, so it is looked at again while it trains"
        return f"tried the loss on {self._trial.device}, {tried} batches in {precision}, {seconds:.1f} s: {known}"

    def _parts(self, size: int) -> list[int]:
        if size < 4:
            return [1, size - 1]
        return [2, size - 2] if self._found.mixes else [1, (size - 1) // 3, size - 1 - (size - 1) // 3]

    def _try(self, size: int, offset: int, nudged: bool) -> None:
        bounds = [offset]
        for part in self._parts(size):
            bounds.append(bounds[-1] + part)
        error, largest = self._error(bounds, nudged)
        self._known |= largest > 0
        tolerance = EXACT
        if error > EXACT and self._narrow:
            tolerance = min(ROUNDING_MAX, ROUNDING * max(1e-7, self._reordered(bounds[0], bounds[-1])))
        if error > tolerance and self._found.draws and not self._flat:
            self._flat = True
            error, _ = self._error(bounds, nudged)
        if largest > 0 and (error > tolerance or offset == 0):
            self._check_proportion(bounds, nudged)
        if error > tolerance:
            self._check_repeats(bounds, nudged)
            raise self._refusal(bounds, error)
        self._worst = max(self._worst, error)

    def _check_proportion(self, bounds: list[int], nudged: bool) -> None:
        """Errors: something on the way backward (a hook, a function of one's own) looks at how large a gradient is, and that of a part of
        the batch has another size than the whole."""
        assert self._last is not None
        whole = self._last.gradients
        larger = self._pass(bounds[0], bounds[-1], nudged, scale=LARGER).gradients
        largest = max(float(g.abs().max()) for g in whole.values() if g.numel())
        for name, gradient in whole.items():
            if not gradient.numel() or name not in larger or not bool(larger[name].isfinite().all()):
                continue
            error = float((larger[name] / LARGER - gradient).abs().max()) / largest
            if error > (ROUNDING_MAX if self._narrow else EXACT):
                self._check_repeats(bounds, nudged)
                hooked = "a register_hook" if self._trial.parameters[name]._backward_hooks else "a hook or a backward() of the script"
                raise Error(f"{hooked} changes the gradient of {name} depending on its size (clamping or normalising). Each machine has "
                            "only a part of the batch, whose gradient has another size, so the result would differ",
                            "clip_norm= for the norm of the whole; to clamp or normalise it, a subclass of the optimizer whose step() does")

    def _check_repeats(self, bounds: list[int], nudged: bool) -> None:
        """Errors: the gradient is another one each time, so that comparing it tells nothing."""
        first, *others = [self._pass(bounds[0], bounds[-1], nudged) for _ in range(1 + REPEATS)]
        if not all(_disturbed.same(other, first, ROUNDING_MAX if self._narrow else EXACT) for other in others):
            raise Error(f"the loss {_disturbed.UNSEEDED[0]}", _disturbed.UNSEEDED[1])

    # --- one comparison ----------------------------------------------------------------------------------------------------------

    def _error(self, bounds: list[int], nudged: bool = False, scaled: bool = True, evaluating: bool = False) -> tuple[float, float]:
        """How far the gradient of the whole is from the sum over the parts, as a share of its largest element, and that. Not `scaled`: of
        the loss itself, whatever its weight."""
        ranges = [(bounds[0], bounds[-1]), *zip(bounds, bounds[1:], strict=False)]
        whole, *parts = [self._pass(first, last, nudged, evaluating) for first, last in ranges]
        self._last = whole
        if scaled:
            self._look_at_rows(whole, parts, ranges)
        total: dict[str, torch.Tensor] = {}
        for part in parts:
            for name, gradient in part.gradients.items():
                share = gradient if scaled else gradient / part.weight
                total[name] = total[name] + share if name in total else share
        weight = sum(part.weight for part in parts)
        if whole.weight == 0 or weight == 0:
            return 0.0, 0.0
        factor = weight / whole.weight if scaled else 1 / whole.weight
        largest = max((float(g.abs().max()) for g in whole.gradients.values() if g.numel()), default=0.0) * factor
        worst = 0.0
        for name in whole.gradients.keys() | total.keys():
            a, b = whole.gradients.get(name), total.get(name)
            difference = (torch.zeros(()) if a is None else factor * a) - (torch.zeros(()) if b is None else b)
            if b is not None and not bool(b.isfinite().all()) and (a is None or bool(a.isfinite().all())):
                return math.inf, largest  # some part gives no number where the whole does
            worst = max(worst, float(difference.abs().max()) if difference.numel() else 0.0)
        if largest > 0:
            return worst / largest, largest
        means = [each.mean * each.weight / weight for each in parts if each.weight]
        scale = max(abs(whole.mean), *map(abs, means))
        return (abs(whole.mean - sum(means)) / scale if scaled and scale > 0 else 0.0), 0.0

    def _look_at_rows(self, whole: Pass, parts: list[Pass], ranges: list[tuple[int, int]]) -> None:
        """Errors: samples that vanish between the data set and the loss, which gives no weight."""
        if whole.given or not self._found.rows:
            return
        for each, (first, last) in zip((whole, *parts), ranges, strict=True):
            if each.rows is not None and each.rows != last - first:
                raise Error(f"the loss is not a mean over the samples of a batch: of {last - first} samples collate_fn left {each.rows}",
                            "return (mean, weight): the number of samples that are in it; or leave bad samples out of the data set")

    def _pass(self, first: int, last: int, nudged: bool = False, evaluating: bool = False, scale: float = 1.0) -> Pass:
        with self._drawing():
            batch = self._trial.fetch(first, last)
        if not self._narrow:
            try:
                with _wide.wide(self._trial.root):
                    return self._gradient(_wide.widened(batch), last - first, nudged, evaluating, scale)
            except Error:
                raise
            except Exception as error:  # most often "not implemented for 'Double'", in many wordings
                self._narrow = f"{type(error).__name__}: {str(error).splitlines()[0][:80] if str(error) else ''}"
        kept = [(p, p.data) for p in self._trial.parameters.values()]
        try:
            return self._gradient(batch, last - first, nudged, evaluating, scale)
        finally:
            for parameter, data in kept:
                parameter.data = data

    def _gradient(self, batch: Any, samples: int, nudged: bool, evaluating: bool, scale: float) -> Pass:
        if nudged:
            _nudge(self._trial.root)
        with self._drawing(), _without_batch_statistics(self._trial.root), _modes(self._trial.root, evaluating), _seen(self._trial.root):
            return self._trial.gradient(batch, samples, autocast=False, scale=scale)

    @contextlib.contextmanager
    def _drawing(self) -> Iterator[None]:
        if not self._found.draws:
            yield
            return
        with _steady.steady(self._flat) as mode:
            yield
        self._calls = list(dict.fromkeys([*self._calls, *mode.calls]))

    def _reordered(self, first: int, last: int) -> float:
        """How far the gradient of the same samples in another order is: rounding alone, if the loss is a sum."""
        plain = self._pass(first, last)
        order = self._trial.positions
        try:
            backwards = (*range(first), *reversed(range(first, last)))
            self._trial.positions = [order[i % len(order)] for i in backwards]
            other = self._pass(first, last)
        finally:
            self._trial.positions = order
        largest = max((float(g.abs().max()) for g in plain.gradients.values() if g.numel()), default=0.0)
        worst = max((float((g - other.gradients[name]).abs().max()) for name, g in plain.gradients.items()
                     if g.numel() and name in other.gradients), default=0.0)
        return worst / largest if largest > 0 else 0.0

    # --- what it is instead ------------------------------------------------------------------------------------------------------

    def _refusal(self, bounds: list[int], error: float) -> Error:
        parts = " and ".join(str(last - first) for first, last in zip(bounds, bounds[1:], strict=False))
        differs = f"is no number for {parts}"
        if error < math.inf:
            differs = f"differs from that of {parts} by {100 * error:.2g} % of its largest element"
        found = f"the gradient of {bounds[-1] - bounds[0]} samples {differs}"
        if self._splits(bounds, scaled=False):
            return Error(f"the loss is a sum over the samples, expected their mean: {found}",
                         "return the mean (reduction='mean'), or (sum / weight, weight)")
        if self._splits(bounds, evaluating=True):
            return Error(f"{TRAINING_MODE} the samples of a batch see each other, in other layers than torch's BatchNorm: {found}",
                         "use torch.nn.BatchNorm, which acts on groups of 32 samples here, or LayerNorm or GroupNorm")
        if self._calls or self._found.draws:
            drawn = ", ".join(self._calls) or ", ".join(self._found.draws)
            return Error("the loss is not a mean over the samples of a batch, or what it draws at random "
                         f"({drawn}) depends on the whole batch: {found}",
                         "draw for each sample, with the number of samples as the first dimension; where it is a mean over tokens or "
                         "weighted samples, return (mean, weight)")
        return Error(f"the loss is not a mean over the samples of a batch: {found}",
                     "where it is a mean over tokens or weighted samples, return (mean, weight): the number of tokens or the sum of "
                     "weights; a loss in which samples of a batch see each other (contrastive, dice over the batch) cannot be split")

    def _splits(self, bounds: list[int], **how: Any) -> bool:
        try:
            return self._error(bounds, **how)[0] <= (ROUNDING_MAX if self._narrow else EXACT)
        except Exception:  # a model that computes no loss so
            return False


def _nudge(root: nn.Module) -> None:
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in dict.fromkeys(root.parameters()):
            if p.requires_grad and p.numel():
                size = NUDGE * float(p.detach().float().square().mean().sqrt()) + 1e-3
                noise = torch.randn(p.shape, generator=generator, dtype=torch.float32).to(device=p.device, dtype=p.dtype)
                p.data = p.data + size * noise


@contextlib.contextmanager
def _modes(root: nn.Module, evaluating: bool) -> Iterator[None]:
    modes = [(module, module.training) for module in root.modules()]
    for module, mode in modes:
        module.training = mode and not evaluating
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextlib.contextmanager
def _seen(root: nn.Module) -> Iterator[None]:
    """What draws is an operator of its own: cuDNN's recurrent layers drop out within one kernel."""
    before = torch.backends.cudnn.enabled
    if any(isinstance(module, nn.RNNBase) and module.dropout for module in root.modules()):
        torch.backends.cudnn.enabled = False
    try:
        yield
    finally:
        torch.backends.cudnn.enabled = before


@contextlib.contextmanager
def _without_batch_statistics(root: nn.Module) -> Iterator[None]:
    """BatchNorm by its running statistics, in whatever mode it is."""
    layers = [module for module in root.modules() if isinstance(module, _BatchNorm)]
    for layer in layers:
        layer.__dict__["forward"] = _by_running_statistics(layer)
    try:
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop("forward", None)


def _by_running_statistics(layer: _BatchNorm) -> Callable[[torch.Tensor], torch.Tensor]:
    def forward(x: torch.Tensor) -> torch.Tensor:
        mean, var = layer.running_mean, layer.running_var
        if mean is None or var is None:
            mean, var = x.new_zeros(x.shape[1]), x.new_ones(x.shape[1])
        return functional.batch_norm(x, mean, var, layer.weight, layer.bias, False, 0.0, layer.eps)

    return forward
