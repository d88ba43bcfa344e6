"""Samples read ahead, by processes of their own: what the num_workers of a DataLoader are for.

Which samples a step uses follows from the order of the epoch, so those of the coming steps are read before these begin. Where a guess
was wrong (another share of the step, another batch) its samples are of no use, and others are read: that costs time, and nothing else.
"""

import collections
import multiprocessing
import os
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent import futures
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import data
from torch.utils.data._utils import worker

from motley import _core
from motley._errors import Error, in_words
from motley._machines import _devices, _system
from motley._samples import _packing, _shards

BLOCK = 32  # positions that are read at once
STEPS_AHEAD = 2

NumbersAt = Callable[[int, list[int]], list[int] | None]
Read = Callable[[list[int], list[int] | None], list[Any]]
_read: Read  # of this process, where it reads
_begun: "Raised | None" = None  # its worker_init_fn raised that


class Readers:
    """The processes of one loader. Any thread may ask. Started on the thread that makes it, before the run has threads and sockets that a
    child would inherit."""

    def __init__(self, loader: data.DataLoader[Any], read: Read, name: str, batch: int):
        self._name, self._here = name, read
        self._timeout = loader.timeout or None
        self.most = loader.prefetch_factor * loader.num_workers * batch  # samples at once, as torch has them
        context: Any = loader.multiprocessing_context or torch.multiprocessing.get_context()
        begin = (read, loader.dataset, loader.num_workers, loader.worker_init_fn, context.Value("i", 0))
        self._pool = ProcessPoolExecutor(loader.num_workers, context, initializer=_begin, initargs=begin)
        self.result(self._pool.submit(_how_it_began))

    def read(self, numbers: list[int], seeds: list[int] | None) -> Future[Any]:
        try:
            return self._pool.submit(_answer, numbers, seeds)
        except BrokenExecutor as error:
            raise self._broken(error) from None
        except RuntimeError:  # the interpreter ends, and the run its last step
            here: Future[Any] = Future()
            here.set_result(_packing.pack(self._here(numbers, seeds)))
            return here

    def result(self, asked: Future[Any]) -> Any:
        """What was asked for. Errors: what the process raised meanwhile; it did not answer in time, or is gone."""
        try:
            found = asked.result(self._timeout)
        except BrokenExecutor as error:
            raise self._broken(error) from None
        except futures.TimeoutError:
            raise Error(f"{self._name}: no samples within its timeout of {self._timeout} s", "a larger timeout, or 0") from None
        except Exception as error:
            raise Error(f"{self._name}: samples do not get out of the process that reads them: {in_words(error)}",
                        "return tensors, arrays, numbers and words from __getitem__, or use num_workers=0") from error
        if isinstance(found, Raised):
            raise Error(f"{self._name}: a process that reads samples raised {found.words}\n{found.traceback}", found.hint, found.code)
        return found

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _broken(self, error: BaseException) -> Error:
        if error.__cause__ is not None:  # what came from there cannot be read here
            return Error(f"{self._name}: samples do not get out of the process that reads them: {error.__cause__}",
                         "return tensors, arrays, numbers and words from __getitem__, or use num_workers=0")
        return Error(f"{self._name}: a process that reads samples has ended ({error})", "look for what ended it, or use num_workers=0")


@dataclass
class Raised:
    """What an exception said, in the process that raised it: many cannot be sent to another."""

    words: str
    traceback: str
    code: str
    hint: str

    @classmethod
    def of(cls, error: BaseException) -> "Raised":
        text = "".join(traceback.format_exception(error))[-_devices.TRACEBACK_MAX:]
        if isinstance(error, Error):
            return cls(in_words(error), text, error.code, error.hint)
        return cls(in_words(error), text, "memory" if _devices.is_out_of_memory(error) else "input", "")


def _begin(read: Read, dataset: Any, processes: int, init: Callable[[int], None] | None, started: Any) -> None:
    global _read, _begun
    _system.ignore_interrupts()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    with started.get_lock():
        number, started.value = started.value, started.value + 1
    if isinstance(dataset, _shards.Shards):
        dataset.rewind()  # files that are open would be read by all processes in turn
    else:  # sources of Shards would take it for a part that they are to read
        worker._worker_info = worker.WorkerInfo(id=number, num_workers=processes, seed=torch.initial_seed() + number, dataset=dataset)
    _read = read
    try:
        if init is not None:
            init(number)
    except BaseException as error:  # raised here it would be the end of all these processes, without a word
        _begun = Raised.of(error)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _how_it_began() -> Any:
    return _begun


def _answer(numbers: list[int], seeds: list[int] | None) -> Any:
    if _begun is not None:
        return _begun
    try:
        return _packing.pack(_read(numbers, seeds))
    except BaseException as error:
        return Raised.of(error)


@dataclass
class Piece:
    """Samples of a pass from position `first` on, all in one block."""

    version: int
    first: int
    numbers: list[int]

    @property
    def block(self) -> tuple[int, int]:
        return self.version, self.first // BLOCK


@dataclass
class Reading:
    piece: Piece
    future: Future[Any]
    packed: Any = None
    samples: list[Any] | None = None
    used: int = 0

    def covers(self, piece: Piece) -> bool:
        at = piece.first - self.piece.first
        return at >= 0 and self.piece.numbers[at : at + len(piece.numbers)] == piece.numbers

    def unpacked(self) -> list[Any]:
        if self.samples is None:
            self.samples = _packing.unpack(self.packed)
        return self.samples


class Ahead:
    """What one computation has its samples read by. seeds(version, first, count): of these positions. `trains`: passes follow each other
    in the order of epochs over `size` samples, by `batch` at first; `shuffles`, `drops_last`: that order is shuffled, and has whole
    batches alone. numbers_at(epoch, positions): the samples that these are, where they are known. of_task(task, at, count): the samples
    [at, at + count) of a task."""

    def __init__(self, readers: Readers, seeds: Callable[[_core.Task, int, int, int], list[int] | None], trains: bool, size: int,
                 batch: int, shuffles: bool = True, drops_last: bool = False, numbers_at: NumbersAt | None = None,
                 of_task: Callable[[_core.Task, int, int], list[int]] = lambda task, at, count: task.indices(at, count)):
        self._of_task = of_task
        self._numbers_at = numbers_at or (lambda _, positions: positions)
        self._shuffles, self._end = shuffles, size // batch * batch if drops_last else size
        self._readers, self._seeds, self._trains, self._size, self._batch = readers, seeds, trains, size, batch
        self._readings: dict[tuple[int, int], Reading] = {}
        self._wanted: collections.deque[Piece] = collections.deque()
        self._expected: tuple[int, int, int] | None = None
        self._before: tuple[int, int, int] = (-2, 0, 0)  # version, epoch and start of the newest pass
        self._range = (0, 0)  # positions of it that were wanted
        self._newest: list[Piece] = []  # that were taken

    def expect(self, task: _core.Task, limit: int) -> None:
        """Has read what the task wants, up to its `limit`, and then what the next steps will probably want."""
        if self._expected == (task.version, task.first, limit):
            return
        self._expected = (task.version, task.first, limit)
        begin = task.count - limit if task.from_end else 0
        pieces = [piece for piece in _pieces(task.version, task.first + begin, self._of_task(task, begin, limit)) if not self._took(piece)]
        if task.from_end:
            pieces.reverse()
        for block in [block for block in self._readings if block[0] < task.version]:
            self._readings.pop(block).future.cancel()
        missing = self._missing(task.version, pieces)
        later = [piece for piece in self._wanted if piece.version > task.version]
        if self._trains and task.contributes and not task.probes and task.version > self._before[0]:
            later += self._guess(task, task.first + begin, task.first + begin + limit)
        self._wanted = collections.deque([*missing, *later])
        self._go_on(task)

    def take(self, task: _core.Task, at: int, count: int) -> list[Any]:
        """The samples [at, at + count) of the task."""
        samples = [sample for reading, first, last in self._taken(task, at, count) for sample in reading.unpacked()[first:last]]
        self._go_on(task)
        return samples

    def take_collated(self, task: _core.Task, at: int, count: int, pinned: bool) -> Any:
        """What default_collate makes of them, in pinned memory if that is wanted."""
        taken = self._taken(task, at, count)
        try:
            batch = _packing.collate([(reading.packed, first, last) for reading, first, last in taken], pinned)
        except _packing.Apart:
            batch = data.default_collate([sample for reading, first, last in taken for sample in reading.unpacked()[first:last]])
        self._go_on(task)
        return batch

    def _taken(self, task: _core.Task, at: int, count: int) -> list[tuple[Reading, int, int]]:
        """Where these samples are: [first, last) of each reading."""
        pieces = list(_pieces(task.version, task.first + at, self._of_task(task, at, count)))
        self._newest = pieces
        for piece in self._missing(task.version, pieces):
            self._begin(task, piece)
        return [self._collect(piece) for piece in pieces]

    def _took(self, piece: Piece) -> bool:
        return any(piece.version == taken.version and taken.first <= piece.first and
                   piece.first + len(piece.numbers) <= taken.first + len(taken.numbers) for taken in self._newest)

    def _missing(self, version: int, pieces: list[Piece]) -> list[Piece]:
        """Those that nobody reads. Where there are any, what was guessed and not begun waits for them."""
        missing = [piece for piece in pieces if not self._has(piece)]
        if missing:
            waiting = [block for block, reading in self._readings.items() if block[0] > version and reading.future.cancel()]
            self._wanted.extendleft(reversed([self._readings.pop(block).piece for block in waiting]))
        return missing

    def _has(self, piece: Piece) -> bool:
        reading = self._readings.get(piece.block)
        return reading is not None and reading.covers(piece)

    def _begin(self, task: _core.Task, piece: Piece) -> None:
        future = self._readers.read(piece.numbers, self._seeds(task, piece.version, piece.first, len(piece.numbers)))
        self._readings[piece.block] = Reading(piece, future)

    def _go_on(self, task: _core.Task) -> None:
        """Begins what is wanted, as far as it may be held."""
        held = sum(len(reading.piece.numbers) for reading in self._readings.values())
        while self._wanted and held < self._readers.most:
            piece = self._wanted.popleft()
            if not self._has(piece):
                self._begin(task, piece)
                held += len(piece.numbers)

    def _collect(self, piece: Piece) -> tuple[Reading, int, int]:
        reading = self._readings[piece.block]
        if reading.packed is None:
            reading.packed = self._readers.result(reading.future)
        at = piece.first - reading.piece.first
        reading.used += len(piece.numbers)
        if reading.used >= len(reading.piece.numbers):
            del self._readings[piece.block]
        return reading, at, at + len(piece.numbers)

    def _guess(self, task: _core.Task, begin: int, end: int) -> list[Piece]:
        """The same positions of the next passes, in whole blocks: shares move a little from step to step."""
        version, epoch, start = self._before
        if task.version == version + 1 and task.epoch == epoch:
            self._batch = task.order_first - start
        self._before = task.version, task.epoch, task.order_first
        if task.order_first + self._batch <= self._end:  # the last pass of an epoch may be short
            self._range = begin, end
        epoch, start = task.epoch, task.order_first
        pieces: list[Piece] = []
        for version in range(task.version + 1, task.version + 1 + STEPS_AHEAD):
            start += self._batch
            if start >= self._end:
                epoch, start = epoch + 1, 0
            first = self._range[0] // BLOCK * BLOCK
            last = min(-(-self._range[1] // BLOCK) * BLOCK, self._batch, self._end - start)
            if first < last:
                positions = _core.sample_order(task.seed, epoch, self._size, start + first, last - first, self._shuffles)
                pieces += _pieces(version, first, self._numbers_at(epoch, positions) or [])
        return pieces


def _pieces(version: int, first: int, numbers: list[int]) -> Iterator[Piece]:
    """A range of positions by blocks."""
    at = 0
    while at < len(numbers):
        size = min(BLOCK - (first + at) % BLOCK, len(numbers) - at)
        yield Piece(version, first + at, numbers[at : at + size])
        at += size
