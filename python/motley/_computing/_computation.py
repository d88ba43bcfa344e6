"""A worker's arithmetic: forward and backward over micro-batches, into one flat gradient that the core reads."""

import contextlib
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.utils.data import default_collate

from motley import _core, _state
from motley._computing import _care, _compiled, _device_optimizer, _draws, _halves, _outflow, _server, _work
from motley._errors import Error
from motley._machines import _devices
from motley._models import _arriving, _binding, _cuts, _groups, _model, _parts
from motley._samples import _batches, _data, _seeds, _upcoming
from motley._trials._loss import GROUP, PRECISIONS, add_scores, measure_loss

MICRO_BATCH_CPU = 256
MICRO_BATCH_ACCELERATOR = 2048
COLLATE = 1  # added to the seed of what a collate function draws, so that it is not what the forward pass draws


class ModelComputation:
    """One device's worker. Everything but the constructor is called by the core, on the thread of that worker.

    staged: for tests: work on the CPU as on an accelerator, through copies.
    """

    begins_early = True  # the forward pass, before all weights are there
    fills_up = True  # passes, where the device is to see few sizes: with samples that go through several times, and count once

    def __init__(self, work: _work.Work, parts: _parts.Parts, device: str, threads: int, looked_at: bool = True, staged: bool = False):
        self._work, self._parts = work, parts
        self._torch_device = torch.device(device)
        self._threads = threads or _devices.usable_processors()
        self._cpu = self._torch_device.type == "cpu"
        self._staged = staged or not self._cpu  # the core sees copies, and the device may be behind the host
        self.device = device
        self.description = next((text for name, text, *_ in _devices.devices() if name == device), device)
        if self._cpu:
            self.description += f", {self._threads} thread{'s' if self._threads > 1 else ''}"
            torch.set_num_threads(self._threads)
        most = MICRO_BATCH_CPU if self._cpu else MICRO_BATCH_ACCELERATOR
        self._compiled = _compiled.uses((*parts.modules(), parts.loss))
        self._group = GROUP if work.acts_on_groups else 1
        self._fused = work.found.fused if not self._compiled else None
        self.micro_batch = min(most, -(-work.train.batch_size // self._group) * self._group) if self._group == 1 or self._fused else GROUP
        self.numbers = _draws.drawn(self._torch_device, parts.modules()) if work.found.draws and not self._compiled else 0
        myself = weakref.ref(self)  # the model keeps its hooks, and should not keep this
        names = work.names if parts is work.parts else _model.of_copy(work.names, parts.root)
        self.bound = _binding.Binding(parts, work.layout, names, self._torch_device, self._staged, lambda place: _final(myself, place),
                                       looked_at)
        self.weights, self.gradients = self.bound.weights, self.bound.gradients
        self._care = _care.of(self._torch_device)
        self.care, self.fault, self.empty_caches = self._care.asked(self.fills_up), self._care.fault, self._care.empty_caches
        behind = self._staged and self.care is None  # there nobody can say when a part is done, and one thread alone may ask
        self._outflow = _outflow.Outflow(work.layout, self.bound.device_gradients, self.gradients) if behind else None
        self.flow = "overlapped" if self._outflow or not (self._staged or self.care) else "behind"
        self.group = self._group if self._group > 1 else 0
        self.device_optimizer = _device_optimizer.DeviceOptimizer(work.layout, names, self.bound) if self._staged else None
        self.server = _server.Server(work.layout, names, self.bound) if behind else None
        self._repeats = 1  # of each sample of the micro-batch
        self.turn = threading.Lock()  # of computing, or of looking at the model
        self._state = _state.Decoded(work.train.orders.take if work.train.orders else None, work.followed, work.state)
        self._ahead = {source.name: _seeds.read_ahead(source, source is work.train) for source in (work.train, work.test)
                       if source and source.readers}
        self._task: Any = None  # that is open
        self._finals_wanted = False  # by the core: what the backward pass finishes is handed out meanwhile
        self._arriving: _arriving.Arriving | None = None  # for the first forward pass of the task
        self._groups: _groups.Groups | None = None  # of the micro-batch, where it has several
        read_ahead = work.train.name in self._ahead
        self._next = _upcoming.Next(work.train, read_ahead, read_ahead and behind and work.train.collate is default_collate)
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

    def memory(self, for_others: int) -> tuple[int, int, int, int]:
        return _devices.memory(self._torch_device, self._threads)

    @_devices.told
    def open(self, task: _core.Task) -> tuple[int, bool]:
        """(samples of the first micro-batch at most, whether it is computed while weights arrive)."""
        self.turn.acquire()
        self._task = task
        self._care.begin()
        self._first: tuple[tuple[int, int, int], Any] | None = None  # where, how many and how often; a batch that was read early
        self._newest: tuple[torch.Tensor, float, int, int] | None = None  # of the newest forward pass: mean, weight, place, samples
        self._weight, self._loss_sum = 0.0, 0.0
        if self.device_optimizer:
            self.device_optimizer.losses.clear()
        self._sums: dict[str, float] = dict.fromkeys(self._work.scores, 0.0) if task.kind == "evaluate" else {}
        self._state.of(task)
        if self._cpu and torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)
        if task.kind == "evaluate" and self._work.test is None:
            raise Error("asked for an evaluation without a test set", "motley.Run(..., test=loader)")
        self._early = (task.kind == "train" and self.begins_early and not task.resident and
                       not self._compiled and not _compiled.uses(()))
        return self._at_once(), self._early

    @_devices.told
    def read(self, at: int, size: int, wanted: int, repeats: int = 1) -> int:
        """The batch that is probably the first, while weights are on their way."""
        self._repeats = repeats
        try:
            self._first = (at, size, repeats), self._fetch(self._work.train, at, size, wanted)
        except _cuts.Refused as refused:
            self._take_one_group(refused)
        return self._at_once()

    @_devices.told
    def start(self, came: list[tuple[int, int]]) -> None:
        if self.server and self._task.kept and self._task.resident:
            self.server.show(self.bound.device_weights)
        elif self._staged:
            _arriving.copy(self.weights, self.bound.device_weights, came)
        arriving = _arriving.Arriving(self._task, self.weights, self.bound.device_weights) if self._early else None
        self._arriving = arriving if arriving and arriving.missing else None
        self._start()

    def _start(self) -> None:
        training = self._task.kind == "train"
        if self._task.probes:
            self._prepare_probe()
        else:
            self._set_mode(training)
        if training:
            self.bound.device_gradients.zero_()
            self.bound.reached.clear()
        else:
            self.bound.show_statistics()

    def _prepare_probe(self) -> None:
        if self._compiled or _compiled.uses(()):
            raise Error("a compiled model is not probed: it would be compiled anew for that")
        self._parts.set_still()
        self._mode = None

    @_devices.told
    def forward(self, at: int, size: int, wanted: int, repeats: int = 1) -> tuple[bool, int]:
        """(whether it was computed, samples of the next micro-batch at most). `repeats`: how often each goes through."""
        self._repeats = repeats
        try:
            if self._task.kind == "evaluate":
                self._evaluate(at, size, wanted)
            else:
                self._train(at, size, wanted)
        except _cuts.Refused as refused:
            self._take_one_group(refused)
            return False, self._at_once()
        return True, self._at_once()

    @_devices.told
    def backward(self, last: bool) -> None:
        self._finals_wanted = last
        if last and self._outflow:
            self._outflow.begin(self._task)
        try:
            self._add_gradient()
        finally:
            self._finals_wanted = False

    @_devices.told
    def sums(self) -> tuple[float, float, list[float]]:
        if self.device_optimizer and (self._task.kept or not self._task.resident):
            self._loss_sum += sum(value.item() for value in self.device_optimizer.losses)
            self.device_optimizer.losses.clear()
        return self._weight, self._loss_sum, list(self._sums.values())

    @_devices.told
    def finish(self, count: int) -> None:
        self._next.make(self._task, self._upcoming_batch)
        self.check_gradients(count if self._weight > 0 else 0)
        if self._task.contributes and not self._task.resident and not self._task.kept and self._staged:
            if self._outflow:
                self._outflow.finish()
            else:
                self.gradients.copy_(self.bound.device_gradients)

    def close(self) -> None:
        if self._outflow:
            self._outflow.drop()
        if self._torch_device.type == "cuda" and not self._task.resident:  # it reads arrays that are the core's from here on
            torch.cuda.current_stream(self._torch_device).synchronize()
        self._task = self._first = self._arriving = self._newest = None
        self.turn.release()

    def _at_once(self) -> int:
        task = self._task
        if task.kind == "evaluate":
            # What draws random numbers does so group by group, whoever has the group; whether it does shows with the first.
            return GROUP if self._draws_in_evaluation is not False and self._work.found.draws else task.micro_batch
        return min(task.micro_batch, self.micro_batch) if self._group == 1 or self._fused else GROUP

    def _take_one_group(self, refused: _cuts.Refused) -> None:
        """From here on, a micro-batch is one group. Raises Refused: it was."""
        if self._fused is None:
            raise refused
        self._fused = None
        if str(refused):
            sys.stderr.write(f"motley: computes {GROUP} samples at a time from now on, since {refused}\n")

    def _fetch(self, source: _data.BatchSource, at: int, count: int, wanted: int) -> Any:
        """The batch of the samples [at, at + count), of `wanted` that will be fetched."""
        task, first = self._task, self._first
        self._first = None
        if first is not None and first[0] == (at, count, self._repeats):
            return first[1]
        trains = source is self._work.train
        if trains:
            self._next.wait()
        if source.name in self._ahead:
            self._ahead[source.name].expect(task, wanted)
        made = self._next.take(task, at, count) if trains and self._repeats == 1 else None
        return made if made is not None else self._batch(source, task, at, count, self._repeats)

    def _upcoming_batch(self, task: _upcoming.Upcoming, at: int, count: int) -> Any:
        with torch.cuda.device(self._torch_device) if self._torch_device.type == "cuda" else contextlib.nullcontext():
            return self._batch(self._work.train, task, at, count)

    def _batch(self, source: _data.BatchSource, task: Any, at: int, count: int, repeats: int = 1) -> Any:
        """On the device, or on its way there."""
        ahead, plainly = self._ahead.get(source.name), source.collate is default_collate
        if ahead and plainly and repeats == 1:
            batch = ahead.take_collated(task, at, count, source.pinned and self._torch_device.type == "cuda")
        else:
            samples = (ahead.take(task, at, count) if ahead else
                       source.read(source.of_task(task, at, count), _seeds.seeds_of(source, source is self._work.train, task, task.version,
                                                                               task.first + at, count)))
            sizes = [count * repeats] if plainly or source is not self._work.train else _cuts.sizes_of(count * repeats, self._group)
            batch = _batches.collate(source.collate, samples * repeats, sizes, lambda first: self._seeded(task, at + first, COLLATE))
        batch = _data.move(batch, self._torch_device, source.pinned)
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
            _devices.seed(seed)
            _data.seed_host(seed, tuple(name for name in self._work.found.draws if name != "torch"))

    def _loss(self, task: _core.Task, batch: Any) -> Any:
        step = task.version + (task.kind == "train")
        return self._parts.call(batch, task.kind == "evaluate" and self._parts.decay is not None, step=step, epoch=task.epoch + 1,
                                state=self._state.of(task))

    def _set_mode(self, training: bool) -> None:
        if self._mode is not training:
            self._parts.set_modes(training)
            self._mode = training

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        dtype = PRECISIONS[self._work.precision]
        return torch.autocast(self._torch_device.type, dtype=dtype) if dtype is not None else contextlib.nullcontext()

    def _train(self, at: int, size: int, wanted: int) -> None:
        """Raises Refused."""
        batch = self._fetch(self._work.train, at, size, wanted)
        if at + size == self._task.count:
            self._next.begin(self._task, self._upcoming_batch)
        mean, part = self._forward(self._task, batch, at, size)
        self._newest = mean, part, at, size
        self._weight += part
        if part == 0:  # a mean over nothing is no number
            return
        if self.device_optimizer is None:
            self._loss_sum += mean.item() * part
        else:
            self.device_optimizer.losses.append((mean.detach() if self._torch_device.type == "mps" else mean.detach().double()) * part)

    def _add_gradient(self) -> None:
        assert self._newest is not None
        mean, part, at, size = self._newest
        self._newest = None
        if part != 0:
            self._backward(mean, part)
        self._care.mark()
        self.bound.statistics.add(size, self._groups)
        task = self._task
        if not task.probes:
            self._halves.look(task, at, size, lambda each: self._loss(task, each), self._autocast, self.care is not None, self._repeats)

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
        self._halves.check_rows(found, batch, size * self._repeats)
        mean, part = measure_loss(found, size * self._repeats)
        self._care.mark()
        return mean, part / self._repeats

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
        self._care.hand_down_whole(mean)
        if self._groups is None or self._fused is None or not self._fused.recomputes:
            mean.backward(gradient)
            return
        with _data.GENERATORS:
            self._groups.backward(mean, gradient)

    def check_gradients(self, count: int) -> None:
        """After the backward passes of `count` samples. A small part of a batch may well leave out a parameter that the others use."""
        telling = self._work.unused_matter and 2 * count >= self._work.train.batch_size
        self.bound.check_gradients(self._work.unused, telling)

    def _evaluate(self, at: int, size: int, wanted: int) -> None:
        source = self._work.test
        assert source is not None
        mean_loss, part, scores = self._measured(self._task, self._fetch(source, at, size, wanted), at, size)
        self._loss_sum += mean_loss * part if part != 0 else 0.0
        self._weight += part
        add_scores(self._sums, scores)

    def _measured(self, task: _core.Task, batch: Any, at: int, size: int) -> tuple[float, float, Mapping[str, Any]]:
        watched = _data.RandomWatch() if self._draws_in_evaluation is None and self._work.found.draws else None
        grad = torch.enable_grad() if self._work.found.needs_grad else torch.no_grad()
        with self._seeded(task, at), grad, self._autocast(), _compiled.worth_it(size), watched or contextlib.nullcontext():
            mean, part = measure_loss(self._loss(task, batch), size * self._repeats)
            with torch.no_grad():
                given = self._parts.given if self._parts.decay is None else self._parts.teacher
                scores = self._parts.score(given, batch) if self._parts.score else {}
        if watched is not None:
            self._draws_in_evaluation = bool(watched.draws)
        self._care.mark()
        return mean.item(), part / self._repeats, scores if self._repeats == 1 else {name: scores[name] / self._repeats for name in scores}


def _final(computation: weakref.ref[Any], place: int) -> None:
    found = computation()
    if found is not None and found._finals_wanted:
        (found._outflow.add if found._outflow else found._task.final)(place)
