"""What a script's model, loss and data are like, found by trying them on a few samples at the start. The trial leaves nothing behind.

Some of it cannot be read from the code: which buffers a forward pass changes, what else it writes, whether it draws random numbers, and
whether the loss is the mean over the samples that the arithmetic of a split batch needs (_split.py).
"""

import contextlib
import inspect as inspection
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from motley._errors import Error
from motley._models import _model
from motley._samples import _data
from motley._trials import _disturbed, _grouping, _own, _split, _spots, _traces
from motley._trials._loss import GROUP, PRECISIONS, any_size
from motley._trials._trial import Found, Pass, Trial

EQUAL = 1e-5  # of the largest element of a gradient: float32 computed twice, not always in the same order


def inspect(call: Callable[[Any], Any], root: nn.Module, train: _data.BatchSource, precision: str, check: bool,
            roots: dict[str, Any]) -> Found:
    """Tries the loss. `check`: also whether it may be split. `roots`: what a step calls, see Traces. Errors: a loss that is no mean over
    samples, steps that leave something behind which other machines would not see."""
    train.contents()  # looks whose random numbers the samples are made with
    steps = {name: value for name, value in roots.items() if not isinstance(value, _data.BatchSource)}
    traces = _traces.Traces(steps, root)
    threads = torch.get_num_threads()
    found = Found()
    with _data.GENERATORS, _data.RandomWatch(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trial = Trial(call, root, train, precision)
        # On one thread: the helpers of a team of this thread's would stay, and keep the computing thread's from their processors.
        torch.set_num_threads(1)
        before: list[_traces.Seen] = []
        try:
            with _left_alone(root), _put_back(before), any_size("loss", trial.batch, trial.takes_whole):
                _try(trial, traces, found, check, before)
                if check:
                    found.line = _split.check(trial, found)
                if found.mixes and train.batch_size > GROUP:
                    _grouping.look(trial, found)
                found.samples = trial.few()
        finally:
            torch.set_num_threads(threads)
    return found


@contextlib.contextmanager
def _put_back(before: list[_traces.Seen]) -> Iterator[None]:
    """Afterwards all is as it was seen."""
    try:
        yield
    finally:
        for change in [change for seen in before for change in reversed(seen.changes())]:
            change.put_back()


def _fill(trial: Trial, traces: _traces.Traces) -> None:
    """What the first pass fills once, such as a table of angles, is there for the passes that follow; what these write is undone."""
    trial.gradient(trial.fetch(0, trial.samples), trial.samples)
    filled = traces.take(keep=True)

    def settle() -> None:
        for change in reversed(filled.changes()):
            change.put_back()

    trial.settle = settle


@contextlib.contextmanager
def _left_alone(root: nn.Module) -> Iterator[None]:
    """Afterwards parameters, buffers, gradients, modes and attributes of the model are what they were."""
    parameters = [(p, p.grad, p.detach().clone()) for p in dict.fromkeys(root.parameters())]
    buffers = _buffers(root)
    kept = {id(buffer): buffer.detach().clone() for _, _, buffer in buffers if buffer is not None}
    modes = [(module, module.training) for module in root.modules()]
    for parameter, *_ in parameters:
        parameter.grad = None
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, gradient, values in parameters:
                if not torch.equal(parameter, values):
                    parameter.data.copy_(values)
                parameter.grad = gradient
            for module, name, buffer in buffers:
                module._buffers[name] = buffer
                if buffer is not None:
                    buffer.copy_(kept[id(buffer)])
        for module, mode in modes:
            module.training = mode


def _buffers(root: nn.Module) -> list[tuple[nn.Module, str, torch.Tensor | None]]:
    return [(module, name, buffer) for module in root.modules() for name, buffer in module._buffers.items()]


def _try(trial: Trial, traces: _traces.Traces, found: Found, check: bool, before: list[_traces.Seen]) -> None:
    batches = [trial.fetch(0, trial.samples), trial.fetch(trial.samples, 2 * trial.samples)]
    with _data.RandomWatch() as collating:
        trial.fetch(0, trial.samples)
    seen = traces.take(keep=True)
    before.append(seen)
    if seen.iterators:
        raise Error(f"the loss reads from the iterator {seen.iterators[0]}, which would be at another position on each machine",
                    "let samples come from train_loader: a data set that returns all that a step needs, e.g. pairs")
    model = _Model(trial.root)
    try:
        with _data.RandomWatch() as drawing, _own_precision(trial.precision):
            first = trial.gradient(batches[0], trial.samples)
        written, changed = model.changes(), seen.changes()
        found.draws = tuple(name for name in _data.GENERATED if name in {*collating.draws, *drawing.draws})
        found.changing = _statistics(trial.root, model, written)
        # Samples that weigh nothing, such as texts without a token that counts, say nothing of gradients.
        telling = first if first.weight else trial.gradient(trial.fetch(0, trial.whole), trial.whole)
        found.unused = set(trial.parameters) - set(telling.gradients) if telling.weight else set()
        found.rows = first.rows == trial.samples
        found.mixes = bool(found.draws) or any(isinstance(module, _BatchNorm) and (module.training or module.running_mean is None)
                                               for module in trial.root.modules())
        others = {name: value for name, value in written.items() if name not in found.changing}
        if others or changed:
            _look_closer(trial, batches, first, seen, model, others, changed)
        if check:
            for change in reversed(seen.changes()):
                change.put_back()
            model.put_back()
            _disturbed.check(trial, first)
        if found.mixes:
            _check_groups_of_one(trial)
        found.needs_grad = _needs_grad(trial, batches[0])
    finally:
        for change in reversed(seen.changes()):
            change.put_back()
        model.put_back()
    if others or changed:
        _fill(trial, traces)


class _Model:
    """Parameters and buffers of a model as they were."""

    def __init__(self, root: nn.Module):
        self._root = root
        self._buffers = _buffers(root)
        self.before = {name: tensor.detach().clone() for name, tensor in self._named()}

    def _named(self) -> Iterator[tuple[str, torch.Tensor]]:
        yield from self._root.named_parameters()
        yield from self._root.named_buffers()

    def changes(self) -> dict[str, torch.Tensor]:
        """By name, what is there now."""
        return {name: tensor.detach().clone() for name, tensor in self._named()
                if name not in self.before or not _spots.same(self.before[name], tensor.detach())}

    def put_back(self) -> None:
        for module, name, buffer in self._buffers:
            module._buffers[name] = buffer
        with torch.no_grad():
            for name, tensor in self._named():
                if name in self.before and not torch.equal(tensor, self.before[name]):
                    tensor.data.copy_(self.before[name])

    def owner(self, name: str) -> str:
        module = self._root.get_submodule(name.rpartition(".")[0]) if "." in name else self._root
        return type(module).__name__


def _statistics(root: nn.Module, model: _Model, written: dict[str, torch.Tensor]) -> dict[str, int]:
    """Of the buffers that were written, those of normalisation layers, and how often the layer ran."""
    found = {}
    for each in _model.statistics_of(root):
        if each.mean not in written and each.var not in written and each.counter not in written:
            continue
        times = int(written[each.counter] - model.before[each.counter]) if each.counter in written else 1
        found.update(dict.fromkeys(each.moving, max(1, times)))
    return found


def _look_closer(trial: Trial, batches: list[Any], first: Pass, seen: _traces.Seen, model: _Model, written: dict[str, torch.Tensor],
                 changed: list[_spots.Change]) -> None:
    """A step wrote something. What has the same value after another step came between, or is looked at by nobody (an attention that is kept
    for the user), is harmless. Errors: the rest, by name."""
    for change in reversed(seen.changes()):
        change.put_back()
    model.put_back()
    for name in written:
        if name in trial.parameters or name in dict(trial.root.named_parameters()):
            raise Error(f"{model.owner(name)} writes into its parameter {name} while it computes, which the other machines would not see",
                        "give it its values before motley.Run; to constrain weights: torch.nn.utils.parametrize; for an average of them: "
                        "motley.Run(..., ema=0.999), which the loss gets as `teacher`")
    trial.gradient(batches[1], trial.samples)
    again = trial.gradient(batches[0], trial.samples)
    written_again, changed_again = model.changes(), {change.key: change for change in seen.changes()}
    told = "a step changes {}, which the other machines would not see"
    differs = not _equal(first, again)
    for name, value in written.items():
        if differs or name not in written_again or not _spots.same(value, written_again[name]):
            raise Error(told.format(f"the buffer {name} (of {model.owner(name)})"),
                        "running statistics are merged for torch's BatchNorm alone; an average of the weights: motley.Run(..., ema=0.999); "
                        "what follows from the steps: motley.Run(..., on_step=lambda model, step: ...)")
    for change in changed:
        later = changed_again.get(change.key)
        kept = _spots.holds_tensors(change.now) and later is not None and _spots.holds_tensors(later.now)
        if differs or not kept and (later is None or not _spots.same(change.now, later.now)):
            raise Error(told.format(change.what),
                        "the loss gets `step`, `epoch` and `state` where it asks for them by name; what is only for looking at: "
                        "motley.Run(..., callbacks=[...]) or on_step=; random numbers: torch's, numpy's and Python's own generators")


def _check_groups_of_one(trial: Trial) -> None:
    """Errors: a batch leaves a group of a single sample, and BatchNorm has no statistics of that."""
    train = trial.train
    for batch in sorted(each for each in train.batch_sizes if each % GROUP == 1):
        try:
            trial.gradient(trial.fetch(0, 1), 1)
        except ValueError as error:
            if "more than 1 value per channel" in str(error):
                raise Error(f"a batch of {batch} leaves a sample alone in its group, of which BatchNorm has no statistics: it acts on "
                            f"groups of {GROUP}",
                            f"batch_size={train.batch_size - 1}" if batch == train.batch_size else "drop_last=True, or another batch_size",
                            ) from error
            raise


def _equal(a: Pass, b: Pass) -> bool:
    if a.gradients.keys() != b.gradients.keys():
        return False
    largest = max((float(g.abs().max()) for g in a.gradients.values() if g.numel()), default=0.0)
    return all(float((g - b.gradients[name]).abs().max()) <= EQUAL * largest for name, g in a.gradients.items() if g.numel())


def _needs_grad(trial: Trial, batch: Any) -> bool:
    try:
        with torch.no_grad():
            trial.call(batch)
    except RuntimeError as error:
        return "require grad" in str(error) or "grad_fn" in str(error)
    return False


@contextlib.contextmanager
def _own_precision(precision: str) -> Iterator[None]:
    """Errors: the loss chooses another precision than the run's."""
    enter, scale = torch.autocast.__enter__, torch.amp.GradScaler.scale

    def entered(context: torch.autocast) -> Any:
        if context._enabled and context.fast_dtype != PRECISIONS[precision] and _own.is_own(_file_that_enters(sys._getframe(1))):
            raise Error("the loss enters torch.autocast by itself, in another precision than the run's",
                        'motley.Run(..., precision="bf16"), and no autocast in the script')
        return enter(context)

    def scaled(*_: Any) -> Any:
        raise Error("the loss is scaled by a GradScaler, whose steps nobody would make",
                    'motley.Run(..., precision="bf16"), which needs no scaling')

    torch.autocast.__enter__, torch.amp.GradScaler.scale = entered, scaled  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        torch.autocast.__enter__, torch.amp.GradScaler.scale = enter, scale  # type: ignore[method-assign]


def _file_that_enters(frame: Any) -> str:
    """Of the code that enters torch.autocast: in a with, or of the function that it decorates."""
    while frame is not None and f"{os.sep}amp{os.sep}" in frame.f_code.co_filename:  # also of a subclass of torch's own
        decorated = frame.f_locals.get("func") if frame.f_code.co_name == "decorate_autocast" else None
        if decorated is not None:
            return getattr(getattr(inspection.unwrap(decorated), "__code__", None), "co_filename", "")
        frame = frame.f_back
    return frame.f_code.co_filename if frame is not None else ""


def guess(root: nn.Module, train: _data.BatchSource) -> Found:
    """What inspect() finds by trying the loss, from the classes of the layers alone: where the script computes, there is nothing to try."""
    train.contents()
    statistics = _model.statistics_of(root)
    training = {name for name, module in root.named_modules() if module.training}
    moving = [each for each in statistics if each.mean.rpartition(".")[0] in training]
    drops = any(isinstance(module, _DropoutNd) and module.training for module in root.modules())
    return Found(changing={name: 1 for each in moving for name in each.moving}, draws=("torch",),
                 mixes=drops or bool(moving))
