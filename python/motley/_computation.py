"""A worker's arithmetic: forward and backward over micro-batches, into one flat gradient that the core reads."""

import contextlib
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.utils.data import default_collate

from motley import (_ahead, _arriving, _batches, _binding, _compiled, _core, _cuts, _data, _devices, _groups, _halves, _model, _residence,
                    _state)
from motley._errors import Error
from motley._loss import GROUP, PRECISIONS, add_scores, measure_loss
from motley._parts import Parts
from motley._work import Work

MICRO_BATCH_CPU = 256
MICRO_BATCH_ACCELERATOR = 2048
COLLATE = 1  # added to the seed of what a collate function draws, so that it is not what the forward pass draws


class ModelComputation:
    """One device's worker. Everything but the constructor is called by the core, on the thread of that worker.

    staged: for tests: work on the CPU as on an accelerator, through copies.
    """

    begins_early = True  # the forward pass, before all weights are there

    def __init__(self, work: Work, parts: Parts, device: str, threads: int, looked_at: bool = True, staged: bool = False):
        self._work, self._parts = work, parts
        self._torch_device = torch.device(device)
        self._threads = threads or _devices.usable_processors()
        self._cpu = self._torch_device.type == "cpu"
        self._staged = staged or not self._cpu  # the core sees copies, and the device may be behind the host
        self.device = device
        self.description = next((text for name, text, *_ in _devices.devices() if name == device), device)
        if self._cpu:
            self.description += f", {self._threads} thread{'s' if self._threads > 1 else ''}"
        most = MICRO_BATCH_CPU if self._cpu else MICRO_BATCH_ACCELERATOR
        self._compiled = _compiled.uses((*parts.modules(), parts.loss))
        self._group = GROUP if work.acts_on_groups else 1
        self._fused = work.found.fused if not self._compiled else None
        self.micro_batch = min(most, -(-work.train.batch_size // self._group) * self._group) if self._group == 1 or self._fused else GROUP
        if self._cpu:
            torch.set_num_threads(self._threads)
        myself = weakref.ref(self)  # the model keeps its hooks, and should not keep this
        names = work.names if parts is work.parts else _model.of_copy(work.names, parts.root)
        self.bound = _binding.Binding(parts, work.layout, names, self._torch_device, self._staged, lambda place: _final(myself, place),
                                       looked_at)
        self.weights, self.gradients = self.bound.weights, self.bound.gradients
        self.resident = self._staged  # what python/core/python_residence.h asks for is there
        self._residence = _residence.Residence(work.layout, names, self.bound.device_weights, self.bound.device_gradients,
                                               self.bound.statistics, self.bound.momenta)
        self.turn = threading.Lock()  # of computing, or of looking at the model
        self._state = _state.Decoded()
        self._ahead = {recipe.name: self._read_ahead(recipe) for recipe in (work.train, work.test) if recipe and recipe.readers}
        self._first: tuple[int, int, Any] | None = None  # where in the task, samples and batch that was read before it was claimed
        self._arriving: _arriving.Arriving | None = None  # for the first forward pass of the task
        self._groups: _groups.Groups | None = None  # of the micro-batch, where it has several
        self._task: Any = None  # whose chunks are handed out as the backward pass finishes them
        self._failures = _devices.Failures(device)
        self._halves = _halves.Halves(work, self._torch_device)
        self._mode: bool | None = None  # that the modules are in: training
        self._draws_in_evaluation: bool | None = None

    @contextlib.contextmanager
    def resting(self, flat: torch.Tensor, version: int) -> Iterator[None]:
        """Meanwhile nothing computes, and the script finds the model with these weights where it left it."""
        with self.turn:
            self.bound.show(flat, version)
            self._parts.set_modes(True)
            try:
                yield
            finally:
                self.bound.resume()
                self._mode = None

    def differs(self, flat: torch.Tensor) -> str | None:
        """While it rests: a tensor that the script changed."""
        return self.bound.differs(flat)

    def settle(self, kind: str) -> None:
        self.bound.device_weights.copy_(self.weights)
        self._residence.settle(kind)

    def set_state(self, name: str) -> None:
        self._residence.set_state(name, self.gradients)

    def get_weights(self) -> None:
        self.weights.copy_(self.bound.device_weights)

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
        with self.turn:
            return self._run(task)

    def _run(self, task: _core.Task) -> tuple[Any, ...]:
        try:
            self._state.of(task)
            if self._cpu and torch.get_num_threads() != self._threads:
                torch.set_num_threads(self._threads)
            self._first = self._read_first(task)
            self._load(task)
            return self._evaluate(task) if task.kind == "evaluate" else self._train(task)
        except _arriving.Abandoned:
            return 0, 0.0, 0.0, []
        except BaseException as error:  # the core is no place for any of them
            return self._failures.told(error)
        finally:
            self._task = self._first = self._arriving = None

    def _load(self, task: _core.Task) -> None:
        if task.resident:
            return
        if task.kind == "train" and self.begins_early and not self._compiled and not _compiled.uses(()):
            arriving = _arriving.Arriving(task, self.weights, self.bound.device_weights)
            self._arriving = arriving if arriving.missing else None
            return
        task.load()
        if self._staged:
            self.bound.device_weights.copy_(self.weights)

    def _read_first(self, task: _core.Task) -> tuple[int, int, Any] | None:
        """The batch that is probably the first, while weights are on their way; an evaluation begins when they are there."""
        limit = self._limit(task)
        if task.kind == "evaluate" or limit == 0:
            return None
        self._expect(self._work.train, task, limit)
        while True:
            size = self._next(task, 0, limit)
            at = task.at(0, size)
            try:
                return at, size, self._fetch(self._work.train, task, at, size)
            except _cuts.Refused as refused:
                self._take_one_group(refused)

    def _limit(self, task: _core.Task) -> int:
        return _cuts.limit_of(task, self._group)

    def _next(self, task: _core.Task, done: int, limit: int) -> int:
        most = min(task.micro_batch, self.micro_batch) if self._group == 1 or self._fused else GROUP
        return _cuts.next_size(task, done, limit, self._group, most)

    def _take_one_group(self, refused: _cuts.Refused) -> None:
        """From here on, a micro-batch is one group."""
        self._fused = None
        if str(refused):
            sys.stderr.write(f"motley: computes {GROUP} samples at a time from now on, since {refused}\n")

    def _is_last(self, task: _core.Task, done: int) -> bool:
        """Asked after the forward pass: the limit may have been raised meanwhile."""
        return 0 < self._limit(task) <= done

    def _read_ahead(self, recipe: _data.Recipe) -> _ahead.Ahead:
        assert recipe.readers is not None

        def seeds(task: _core.Task, version: int, first: int, count: int) -> list[int] | None:
            return self._seeds(recipe, task, version, first, count)

        return _ahead.Ahead(recipe.readers, seeds, recipe is self._work.train, recipe.size, recipe.batch_size, recipe.shuffles,
                            recipe.drops_last)

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
            samples = self._ahead[recipe.name].take(task, at, count)
        else:
            samples = recipe.read(task.indices(at, count), self._seeds(recipe, task, task.version, task.first + at, count))
        sizes = [count] if recipe.collate is default_collate or recipe is not self._work.train else _cuts.sizes_of(count, self._group)
        batch = _batches.collate(recipe.collate, samples, sizes, lambda first: self._seeded(task, at + first, COLLATE))
        batch = _data.move(batch, self._torch_device, recipe.pinned)
        if self._compiled:
            _compiled.any_size(batch, count)
        return batch

    @contextlib.contextmanager
    def _seeded(self, task: _core.Task, at: int, salt: int = 0) -> Iterator[None]:
        """Meanwhile random numbers follow from the seed, the step and the position `at`, if anything of the script draws any."""
        if not self._work.found.draws:
            yield
            return
        with _data.GENERATORS:
            self.seed(task, at, salt)
            yield

    def seed(self, task: _core.Task, at: int, salt: int = 0) -> None:
        if self._work.found.draws:
            seed = _cuts.seed_of(task, at, salt)
            torch.manual_seed(seed)
            _data.seed_host(seed, tuple(name for name in self._work.found.draws if name != "torch"))

    def _loss(self, task: _core.Task, batch: Any) -> Any:
        step = task.version + (task.kind == "train")
        return self._parts.call(batch, task.kind == "evaluate" and self._parts.decay is not None, step=step, epoch=task.epoch + 1,
                                state=self._state.of(task))

    def _set_mode(self, training: bool) -> None:
        if self._mode is not training:
            self._parts.set_modes(training)
            self._mode = training

    def _autocast(self) -> torch.autocast:
        dtype = PRECISIONS[self._work.precision]
        return torch.autocast(self._torch_device.type, dtype=dtype or torch.bfloat16, enabled=dtype is not None)

    def _train(self, task: _core.Task) -> tuple[Any, ...]:
        self._set_mode(training=True)
        self.bound.device_gradients.zero_()
        self.bound.reached.clear()
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
            try:
                batch = self._fetch(self._work.train, task, at, size)
                mean, part = self._forward(task, batch, at, size)
            except _cuts.Refused as refused:
                self._take_one_group(refused)
                continue
            count, weight = count + size, weight + part
            if part == 0:  # a mean over nothing is no number
                if self._is_last(task, count):
                    begin()
            elif not self._staged:
                loss_sum += mean.item() * part
                if self._is_last(task, count):
                    begin()
                    self._task = task if task.contributes else None
                self._backward(mean, part)
            else:
                waiting.append(mean.detach().double() * part if self._torch_device.type != "mps" else mean.detach() * part)
                self._backward(mean, part)
                if self._is_last(task, count):
                    begin()
            self.bound.add_statistics(size, self._groups)
            self._halves.look(task, at, size, lambda each: self._loss(task, each), self._autocast)
            if not begun:
                task.progress(count)
        reported = not begun
        if not begun:
            begin()
        self.check_gradients(count if weight > 0 else 0)
        if task.contributes and not task.resident:
            if self._staged:
                self.gradients.copy_(self.bound.device_gradients)
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
        self.bound.start_statistics()
        with self._kept_apart(task, at, size), self._autocast(), _compiled.worth_it(size), self._halves.without_draws():
            found = self._loss(task, batch)
        self._halves.check_rows(found, batch, size)
        return measure_loss(found, size)

    @contextlib.contextmanager
    def _kept_apart(self, task: _core.Task, at: int, size: int) -> Iterator[None]:
        """In a forward pass of a micro-batch, whose groups see nothing of each other and draw what each would draw alone."""
        sizes, self._groups = _cuts.sizes_of(size, self._group), None
        with self._seeded(task, at):
            if len(sizes) == 1 or self._fused is None:
                yield
                return
            seeds = [_cuts.seed_of(task, at + first) for first, _ in _cuts.bounds(sizes)]
            self._groups = _groups.Groups(self._fused, sizes, seeds, self._torch_device)
            with self._groups.going_on():
                yield

    def _backward(self, mean: torch.Tensor, weight: float) -> None:
        gradient = torch.full_like(mean, weight)
        if self._groups is None or self._fused is None or not self._fused.recomputes:
            mean.backward(gradient)
            return
        with _data.GENERATORS:
            self._groups.backward(mean, gradient)

    def check_gradients(self, count: int) -> None:
        """After the backward passes of `count` samples. A small part of a batch may well leave out a parameter that the others use."""
        telling = self._work.unused_matter and 2 * count >= self._work.train.batch_size
        self.bound.check_gradients(self._work.unused, telling)

    def _evaluate(self, task: _core.Task) -> tuple[Any, ...]:
        recipe = self._work.test
        if recipe is None:
            raise Error("asked for an evaluation without a test set", "motley.Run(..., test=loader)")
        self._set_mode(training=False)
        count, weight, loss_sum = 0, 0.0, 0.0
        sums: dict[str, float] = dict.fromkeys(self._work.scores, 0.0)
        self.bound.show_statistics()
        while count < task.count:
            limit = min(task.limit(), task.count)
            if limit == 0:
                return 0, 0.0, 0.0, []
            if limit <= count:
                break
            self._expect(recipe, task, limit)
            # What draws random numbers does so group by group, whoever has the group; whether it does shows with the first.
            by_group = self._draws_in_evaluation is not False and self._work.found.draws
            size = min(GROUP if by_group else task.micro_batch, limit - count)
            if not task.claim(count + size):
                continue
            batch = self._fetch(recipe, task, count, size)
            mean_loss, part, scores = self._measured(task, batch, count, size)
            loss_sum += mean_loss * part if part != 0 else 0.0
            add_scores(sums, scores)
            weight += part
            count += size
            task.progress(count)
        return count, weight, loss_sum, list(sums.values())

    def _measured(self, task: _core.Task, batch: Any, at: int, size: int) -> tuple[float, float, Mapping[str, Any]]:
        watched = _data.RandomWatch() if self._draws_in_evaluation is None and self._work.found.draws else None
        grad = torch.enable_grad() if self._work.found.needs_grad else torch.no_grad()
        with self._seeded(task, at), grad, self._autocast(), _compiled.worth_it(size), watched or contextlib.nullcontext():
            mean, part = measure_loss(self._loss(task, batch), size)
            with torch.no_grad():
                given = self._parts.given if self._parts.decay is None else self._parts.teacher
                scores = self._parts.score(given, batch) if self._parts.score else {}
        if watched is not None:
            self._draws_in_evaluation = bool(watched.draws)
        return mean.item(), part, scores


def _final(computation: weakref.ref[Any], place: int) -> None:
    found = computation()
    if found is not None and found._task is not None:
        found._task.final(place)
