"""A worker's arithmetic: forward and backward over micro-batches, into one flat gradient that the core reads."""

import contextlib
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from motley import _ahead, _arriving, _core, _data, _devices, _model, _residence
from motley._errors import Error

GROUP = 32  # positions that normalisation layers and dropout act on together
MICRO_BATCH_CPU = 256
MICRO_BATCH_ACCELERATOR = 2048
PRECISIONS = {"fp32": None, "bf16": torch.bfloat16}


@dataclass
class Work:
    """What a script wants computed, and what was found out about it."""

    model: nn.Module
    loss: Callable[[nn.Module, Any], Any] | None  # None: the script computes, lease by lease
    score: Callable[[nn.Module, Any], Any] | None
    train: _data.Recipe
    test: _data.Recipe | None
    precision: str
    names: list[_model.Named]
    layout: _core.Layout
    acts_on_groups: bool
    draws: bool  # the forward pass draws random numbers
    scores: list[str]  # names of what `score` gives
    unused: set[str]  # parameters that had no gradient when that was tried


def measure_loss(found: Any, samples: int) -> tuple[torch.Tensor, float]:
    """What the user's loss gave as (mean, weight). Errors: neither a number nor (mean, weight)."""
    mean, weight = found if isinstance(found, tuple) and len(found) == 2 else (found, samples)
    if not isinstance(mean, torch.Tensor) or mean.numel() != 1:
        shape = f"a tensor of {list(mean.shape)}" if isinstance(mean, torch.Tensor) else type(mean).__name__
        raise Error(f"the loss returned {shape}, expected one number (a tensor with a gradient), or (mean, weight)",
                    "return the mean over the samples of the batch")
    return mean.reshape(()), float(weight)


def add_scores(sums: dict[str, float], found: Any) -> None:
    """Adds what the user's score gave to the sums. Errors: anything but a mapping of these names to numbers."""
    if not isinstance(found, Mapping) or list(found) != list(sums):
        names = list(found) if isinstance(found, Mapping) else type(found).__name__
        raise Error(f"score: expected {{{', '.join(sums)}}} as in the first batch, found {names}", "return the same names for every batch")
    for name, value in found.items():
        sums[name] += float(value)


class ModelComputation:
    """One device's worker. Everything but the constructor is called by the core, on the thread of that worker.

    staged: for tests: work on the CPU as on an accelerator, through copies.
    """

    begins_early = True  # the forward pass, before all weights are there

    def __init__(self, work: Work, model: nn.Module, names: list[_model.Named], device: str, threads: int, staged: bool = False):
        self._work, self._model = work, model
        self._torch_device = torch.device(device)
        self._threads = threads or _devices.usable_processors()
        self._cpu = self._torch_device.type == "cpu"
        self._staged = staged or not self._cpu  # the core sees copies, and the device may be behind the host
        self.device = device
        self.description = next((text for name, text, *_ in _devices.devices() if name == device), device)
        if self._cpu:
            self.description += f", {self._threads} thread{'s' if self._threads > 1 else ''}"
        most = MICRO_BATCH_CPU if self._cpu else MICRO_BATCH_ACCELERATOR
        self.micro_batch = GROUP if work.acts_on_groups else min(most, work.train.batch_size)
        if self._cpu:
            torch.set_num_threads(self._threads)
        model.to(self._torch_device)
        self._bind(names)
        self.resident = self._staged  # what python/core/python_residence.h asks for is there
        self._residence = _residence.Residence(work.layout, names, self._device_weights, self._device_gradients, self._statistics,
                                               self._momenta)
        self._ahead = {recipe.name: self._read_ahead(recipe) for recipe in (work.train, work.test) if recipe and recipe.readers}
        self._first: tuple[int, int, Any] | None = None  # where in the task, samples and batch that was read before it was claimed
        self._arriving: _arriving.Arriving | None = None  # for the first forward pass of the task
        self._task: Any = None  # whose chunks are handed out as the backward pass finishes them
        self._said: set[str] = set()

    def _bind(self, names: list[_model.Named]) -> None:
        work, elements = self._work, self._work.layout.flat_elements
        pinned = self._torch_device.type == "cuda"
        self._device_weights = torch.zeros(elements, device=self._torch_device)
        self._device_gradients = torch.zeros(elements, device=self._torch_device)
        self.weights = torch.zeros(elements, pin_memory=pinned) if self._staged else self._device_weights
        self.gradients = torch.zeros(elements, pin_memory=pinned) if self._staged else self._device_gradients
        self._bound: list[tuple[str, nn.Parameter, torch.Tensor]] = []
        self._statistics: list[tuple[torch.Tensor, ...]] = []
        self._momenta: list[float] = []
        weights = _model.pieces(work.layout, names, self._device_weights)
        gradients = _model.pieces(work.layout, names, self._device_gradients)
        for place, ((named, weight), (_, gradient)) in enumerate(zip(weights, gradients, strict=True)):
            if isinstance(named.tensor, nn.Parameter):
                named.tensor.data = weight
                named.tensor.grad = gradient
                self._bound.append((named.name, named.tensor, gradient))
                if not self._staged:
                    named.tensor.register_post_accumulate_grad_hook(self._hook(place))
            elif named.kind == _model.RUNNING_MEAN:
                (var, var_now), (_, var_sum) = weights[place + 1], gradients[place + 1]
                self._statistics.append((named.tensor, var.tensor, weight, var_now, gradient, var_sum))
                self._momenta.append(named.momentum)

    def _hook(self, place: int) -> Callable[[torch.Tensor], None]:
        def final(_: torch.Tensor) -> None:
            if self._task is not None:
                self._task.final(place)

        return final

    def settle(self, kind: str) -> None:
        self._device_weights.copy_(self.weights)
        self._residence.settle(kind)

    def set_state(self, name: str) -> None:
        self._residence.set_state(name, self.gradients)

    def get_weights(self) -> None:
        self.weights.copy_(self._device_weights)

    def get_state(self, name: str) -> None:
        self.gradients.copy_(self._residence.state(name))

    def reduce(self, weight: float, samples: int) -> float:
        return self._residence.reduce(weight, samples)

    def update(self, groups: list[tuple[float, ...]], factor: float) -> None:
        self._residence.update(groups, factor)

    def leave(self) -> None:
        self._residence.leave()

    def memory(self, for_others: int) -> tuple[int, int, int, int]:
        return _devices.memory(self._torch_device, self._threads)

    def run(self, task: _core.Task) -> tuple[Any, ...]:
        """(count, weight, loss_sum, sums of scores), or ("memory" | "internal", what happened)."""
        try:
            if self._cpu and torch.get_num_threads() != self._threads:
                torch.set_num_threads(self._threads)
            self._first = self._read_first(task)
            self._load(task)
            return self._evaluate(task) if task.kind == "evaluate" else self._train(task)
        except _arriving.Abandoned:
            return 0, 0.0, 0.0, []
        except BaseException as error:  # the core is no place for any of them
            return self._failure(error)
        finally:
            self._task = self._first = self._arriving = None

    def _load(self, task: _core.Task) -> None:
        if task.resident:
            return
        if task.kind == "train" and self.begins_early and not _arriving.is_compiled():
            arriving = _arriving.Arriving(task, self.weights, self._device_weights)
            self._arriving = arriving if arriving.missing else None
            return
        task.load()
        if self._staged:
            self._device_weights.copy_(self.weights)

    def _read_first(self, task: _core.Task) -> tuple[int, int, Any] | None:
        """The batch that is probably the first, while weights are on their way; an evaluation begins when they are there."""
        limit = self._limit(task)
        if task.kind == "evaluate" or limit == 0:
            return None
        self._expect(self._work.train, task, limit)
        size = self._next(task, 0, limit)
        at = task.at(0, size)
        return at, size, self._fetch(self._work.train, task, at, size)

    def _failure(self, error: BaseException) -> tuple[str, str]:
        if _devices.is_out_of_memory(error):
            return "memory", f"out of memory on {self.device}: {error}"
        text = "".join(traceback.format_exception(error)[-12:])
        if text in self._said:
            return "internal", f"{type(error).__name__} again: {error}"
        self._said.add(text)
        sys.stderr.write(text)
        return "internal", f"the script raised {type(error).__name__}: {error}\n{text[-3000:]}"

    def _limit(self, task: _core.Task) -> int:
        limit = task.limit()
        if not self._work.acts_on_groups or limit == task.count:
            return limit
        # Groups are never cut, so that of a limit inside of one the whole groups are left.
        partial = task.count % GROUP if task.from_end else 0
        return 0 if limit < partial else partial + (limit - partial) // GROUP * GROUP

    def _next(self, task: _core.Task, done: int, limit: int) -> int:
        """The odd part goes first: gradients leave during the last backward pass, and hide behind it the better the longer it is."""
        left = limit - done
        whole = GROUP if self._work.acts_on_groups else task.micro_batch
        if not self._work.acts_on_groups:
            odd = left % whole
            return odd if left > whole and odd else min(whole, left)
        partial = task.count % GROUP if task.from_end and done == 0 else 0
        return partial or min(whole, left)

    def _is_last(self, task: _core.Task, done: int) -> bool:
        """Asked after the forward pass: the limit may have been raised meanwhile."""
        return 0 < self._limit(task) <= done

    def _read_ahead(self, recipe: _data.Recipe) -> _ahead.Ahead:
        assert recipe.readers is not None

        def seeds(task: _core.Task, version: int, first: int, count: int) -> list[int] | None:
            return self._seeds(recipe, task, version, first, count)

        return _ahead.Ahead(recipe.readers, seeds, recipe is self._work.train, recipe.size, recipe.batch_size)

    def _seeds(self, recipe: _data.Recipe, task: _core.Task, version: int, first: int, count: int) -> list[int] | None:
        """One for each position [first, first + count), where samples are made with random numbers."""
        if not recipe.draws:
            return None
        return [_core.mixed_seed(task.seed, version if recipe is self._work.train else 0, first + i) for i in range(count)]

    def _expect(self, recipe: _data.Recipe, task: _core.Task, limit: int) -> None:
        """`limit` samples of the task will be fetched."""
        if recipe.name in self._ahead:
            self._ahead[recipe.name].expect(task, limit)

    def _fetch(self, recipe: _data.Recipe, task: _core.Task, at: int, count: int) -> Any:
        first, self._first = self._first, None
        if first is not None and first[:2] == (at, count):
            return first[2]
        if recipe.name in self._ahead:
            batch = recipe.collate(self._ahead[recipe.name].take(task, at, count))
        else:
            batch = recipe.fetch(task.indices(at, count), self._seeds(recipe, task, task.version, task.first + at, count))
        return _data.move(batch, self._torch_device, recipe.pinned)

    def _loss(self, model: nn.Module, batch: Any) -> Any:
        assert self._work.loss is not None
        return self._work.loss(model, batch)

    def _autocast(self) -> torch.autocast:
        dtype = PRECISIONS[self._work.precision]
        return torch.autocast(self._torch_device.type, dtype=dtype or torch.bfloat16, enabled=dtype is not None)

    def _train(self, task: _core.Task) -> tuple[Any, ...]:
        self._model.train()
        self._device_gradients.zero_()
        count, weight, loss_sum, begun = 0, 0.0, 0.0, False
        waiting: list[torch.Tensor] = []  # losses on the device: asking for them early would let it run dry

        def begin() -> None:
            nonlocal begun, loss_sum
            begun = True
            loss_sum += sum(value.item() for value in waiting)
            if task.contributes:
                task.begin(count, weight, loss_sum)

        while not begun:
            limit = self._limit(task)
            if limit == 0:
                return 0, 0.0, 0.0, []
            if limit <= count:
                break
            self._expect(self._work.train, task, limit)
            size = self._next(task, count, limit)
            if not task.claim(count + size):
                continue
            at = task.at(count, size)
            batch = self._fetch(self._work.train, task, at, size)
            mean, part = self._forward(task, batch, at, size)
            count, weight = count + size, weight + part
            if not self._staged:
                loss_sum += mean.item() * part
                if self._is_last(task, count):
                    begin()
                    self._task = task if task.contributes else None
                mean.backward(torch.full_like(mean, part))
            else:
                waiting.append(mean.detach().double() * part if self._torch_device.type != "mps" else mean.detach() * part)
                mean.backward(torch.full_like(mean, part))
                if self._is_last(task, count):
                    begin()
            if not begun:
                task.progress(count)
        reported = not begun
        if not begun:
            begin()
        self._check_gradients()
        if task.contributes and not task.resident:
            if self._staged:
                self.gradients.copy_(self._device_gradients)
            task.finish()
        if not reported:
            task.progress(count)
        return count, weight, loss_sum, []

    def _forward(self, task: _core.Task, batch: Any, at: int, size: int) -> tuple[torch.Tensor, float]:
        arriving, self._arriving = self._arriving, None
        found = self._forward_early(arriving, task, batch, at, size) if arriving else None
        if found is None:
            found = self._forward_whole(task, batch, at, size)
            if arriving and bool(found[0].isfinite()):
                self.begins_early = False
                sys.stderr.write("motley: weights are read unseen by torch's operators: from now on, passes wait for all of them\n")
        self.add_statistics(size)
        return found

    def _forward_early(self, arriving: _arriving.Arriving, *micro_batch: Any) -> tuple[torch.Tensor, float] | None:
        """None: it failed or gave no number, maybe for want of weights that are there now."""
        found = None
        try:
            with arriving:
                found = self._forward_whole(*micro_batch)
        except Exception as error:
            if _devices.is_out_of_memory(error):
                raise
        arriving.finish()
        return found if found is not None and bool(found[0].isfinite()) else None

    def _forward_whole(self, task: _core.Task, batch: Any, at: int, size: int) -> tuple[torch.Tensor, float]:
        self.start_statistics()
        with _data.GENERATORS if self._work.draws else contextlib.nullcontext():
            if self._work.draws:
                torch.manual_seed(_core.mixed_seed(task.seed, task.version, task.first + at))
            with self._autocast():
                return measure_loss(self._loss(self._model, batch), size)

    def start_statistics(self) -> None:
        """Before the forward pass of a micro-batch."""
        for mean, var, *_ in self._statistics:
            mean.zero_()
            var.zero_()

    def add_statistics(self, size: int) -> None:
        """After the forward pass of a micro-batch of `size` samples."""
        with torch.no_grad():
            for momentum, (mean, var, _, _, mean_sum, var_sum) in zip(self._momenta, self._statistics, strict=True):
                # From zero, one step of the moving average leaves momentum times the batch's own statistic.
                batch_mean = mean / momentum
                mean_sum.add_(batch_mean, alpha=size)
                var_sum.add_(var / momentum + batch_mean * batch_mean, alpha=size)

    def _check_gradients(self) -> None:
        for name, parameter, gradient in self._bound:
            if parameter.grad is None or parameter.grad.data_ptr() != gradient.data_ptr():
                parameter.grad = gradient
                raise Error(f"the gradient of {name} was replaced during the loss", "no zero_grad() or backward() in the loss")
            if name in self._work.unused and bool(gradient.any()):
                raise Error(f"{name} had no gradient at the start and has one now, so it was taken as unused",
                            "let every parameter take part in the loss of any batch, e.g. by adding 0 * parameter.sum()")

    def _evaluate(self, task: _core.Task) -> tuple[Any, ...]:
        recipe = self._work.test
        if recipe is None:
            raise Error("asked for an evaluation without a test set", "motley.Run(..., test=loader)")
        self._model.eval()
        count, weight, loss_sum = 0, 0.0, 0.0
        sums: dict[str, float] = dict.fromkeys(self._work.scores, 0.0)
        with torch.no_grad():
            for mean, var, mean_now, var_now, *_ in self._statistics:
                mean.copy_(mean_now)
                var.copy_(var_now)
            while count < task.count:
                limit = min(task.limit(), task.count)
                if limit == 0:
                    return 0, 0.0, 0.0, []
                if limit <= count:
                    break
                self._expect(recipe, task, limit)
                size = min(task.micro_batch, limit - count)
                if not task.claim(count + size):
                    continue
                batch = self._fetch(recipe, task, count, size)
                with self._autocast():
                    mean_loss, part = measure_loss(self._loss(self._model, batch), size)
                    scores = self._work.score(self._model, batch) if self._work.score else {}
                loss_sum += mean_loss.item() * part
                add_scores(sums, scores)
                weight += part
                count += size
                task.progress(count)
        return count, weight, loss_sum, list(sums.values())
