"""Streams as data sets: samples by number, of sources that can only be read forwards."""

import bisect
import collections
import collections.abc
import functools
import operator
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.utils import data

from motley._errors import Error

LANES = 8  # shards that a batch is made of
KEPT = 512  # samples of an open shard that are kept for who wants them again, where no batch is known
KEPT_STEPS = 4  # else as many as it gives for so many: those that are read ahead, and one more
OPEN_MAX = 2 * LANES  # shards
COUNTED_S = 1.0  # that sources are read for to their ends, to count them before a run
AGAIN = "an object whose __iter__ begins anew each time, or a function: source(first) gives an iterator from that sample on"
OPTIONS = ("batch_size", "drop_last", "collate_fn", "pin_memory", "num_workers", "worker_init_fn", "timeout", "multiprocessing_context",
           "prefetch_factor")  # of a loader


class Shards(data.Dataset[Any]):
    """A data set of streams: files that are read from their beginning to their end. Each of the sources gives a known number of samples an
    epoch, in the same order each time. Whoever computes a sample reads its shard as far as that, and passes over what others compute.

        shards = motley.Shards([Lines("a.txt"), Lines("b.txt")], sizes=[120_000, 80_000])
        loader = DataLoader(shards, batch_size=256, shuffle=True)

    sources: iterables, read anew each time; or functions, of which source(first) gives an iterator that begins with sample `first`: those
        that can skip fast need not read what others compute.
    sizes: how many samples each gives. Another number is an error, named with its shard, before an epoch is over.
    map: what a sample becomes. It may draw random numbers, which are seeded for each sample; a source may not.

    With shuffle=True shards come in another order each epoch, eight of them side by side, so that every batch has samples of all of these;
    samples of a shard stay in their order. Without, the order is that of the sources. An IterableDataset with a length is one shard.
    """

    def __init__(self, sources: Sequence[Iterable[Any] | Callable[[int], Iterator[Any]]], sizes: Sequence[int],
                 map: Callable[[Any], Any] | None = None):
        self.sources, self.sizes, self.map = list(sources), [int(size) for size in sizes], map
        if not self.sources or len(self.sources) != len(self.sizes) or min(self.sizes) < 1:
            raise Error(f"Shards: expected a size of at least 1 for each source, found {len(self.sources)} sources and sizes "
                        f"{self.sizes[:9]}", "motley.Shards([a, b], sizes=[1000, 800])")
        for number, source in enumerate(self.sources):
            if isinstance(source, collections.abc.Iterator):
                raise Error(f"Shards: source {number} is {type(source).__name__}, which can be read once", AGAIN)
            size = operator.length_hint(source, -1) if hasattr(source, "__len__") else -1
            if size not in (-1, self.sizes[number]):
                raise wrong_size(source, number, self.sizes[number], str(size))
        self.starts = [0]
        for size in self.sizes:
            self.starts.append(self.starts[-1] + size)
        self._kept = KEPT
        self.is_stream = False  # an iterable data set by itself, whose length its class says
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()  # devices of one process read side by side
        self._open: collections.OrderedDict[int, _Open] = collections.OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_open")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def __len__(self) -> int:
        return self.starts[-1]

    def __getitem__(self, number: int) -> Any:
        sample = self.raw(number)
        return sample if self.map is None else self.map(sample)

    def raw(self, number: int) -> Any:
        """For the package: as its source gives it."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        shard = bisect.bisect_right(self.starts, number) - 1
        with self._lock:
            at = number - self.starts[shard]
            found = self._open.get(shard)
            if found is None or not found.has(at):
                found = self._open[shard] = _Open(self.sources[shard], shard, self.sizes[shard], at, self._kept, self.is_stream)
            self._open.move_to_end(shard)
            while len(self._open) > OPEN_MAX:
                self._open.popitem(last=False)
            return found.read(at)

    def count(self) -> None:
        """For the package: reads sources to their ends, as far as that takes little time. Errors: one gives more or less than its size."""
        until = time.monotonic() + COUNTED_S
        for number, (source, size) in enumerate(zip(self.sources, self.sizes, strict=True)):
            reader = _Open(source, number, size, 0, 1, self.is_stream)
            for at in range(size):
                reader.read(at)
                if time.monotonic() > until:
                    return

    def keep_for(self, batch: int, shuffled: bool) -> None:
        """For the package: devices of a process, and processes that read ahead, come back to samples of steps that are open. A lane is
        longer than the mean of all by one shard at most."""
        size, lanes = len(self), min(LANES, len(self.sources))
        lane = min(size, size // lanes + max(self.sizes)) if shuffled else size
        self._kept = KEPT_STEPS * min(batch, batch * lane // size + 1)
        self.rewind()

    def first(self, count: int) -> list[int]:
        """For the package: numbers of `count` samples that are near the beginnings of shards."""
        depth, found = 0, list[int]()
        while len(found) < min(count, len(self)):
            found += [start + depth for start, size in zip(self.starts, self.sizes, strict=False) if depth < size]
            depth += 1
        return found[:count]

    def shuffled(self, seed: int, batch: int) -> list[int]:
        """For the package: an epoch's order. Lanes of whole shards, of about equal length, go side by side; each gives its part of every
        batch in one piece, so that who computes the same part of each batch reads the same shards."""
        shards = list(range(len(self.sources)))
        random.Random(seed).shuffle(shards)
        lanes: list[list[torch.Tensor]] = [[] for _ in range(min(LANES, len(shards)))]
        for shard in shards:
            shortest = min(lanes, key=lambda lane: sum(map(len, lane)))
            shortest.append(torch.arange(self.starts[shard], self.starts[shard + 1]))
        numbers = [torch.cat(lane) for lane in lanes]
        # Samples of a lane are at equal distances in an epoch; the pieces of a batch then go by lanes.
        when = torch.cat([(torch.arange(len(each), dtype=torch.float64) + 0.5) / len(each) for each in numbers])
        lane_of = torch.cat([torch.full((len(each),), lane) for lane, each in enumerate(numbers)])
        order = torch.argsort(when, stable=True)
        piece = torch.arange(len(order)) // batch * len(lanes) + lane_of[order]
        return torch.cat(numbers)[order[torch.argsort(piece, stable=True)]].tolist()

    def rewind(self) -> None:
        """For the package: sources are read from their beginnings again."""
        with self._lock:
            self._open.clear()


class _Open:
    """A source that is read. `first`: the sample that is wanted first. `kept`: samples that are."""

    def __init__(self, source: Any, shard: int, size: int, first: int, kept: int, is_stream: bool):
        self._wrong_size = functools.partial(wrong_size, source, shard, size, is_stream=is_stream)
        self._size = size
        self._wrong: Error | None = None
        from_there = callable(source) and not isinstance(source, collections.abc.Iterable)
        self._next = first if from_there else 0  # sample that the iterator gives next
        self._iterator = iter(source(first)) if from_there else iter(source)
        self._kept: collections.deque[Any] = collections.deque(maxlen=kept)

    def has(self, at: int) -> bool:
        return at >= self._next - len(self._kept)

    def read(self, at: int) -> Any:
        """REQUIRES has(at). Errors: the source gives more or less than it should; from then on, whatever is read of it."""
        while self._next <= at and self._wrong is None:
            sample = next(self._iterator, _END)
            if sample is _END:
                self._wrong = self._wrong_size(str(self._next))
                break
            self._kept.append(sample)
            self._next += 1
            if self._next == self._size and next(self._iterator, _END) is not _END:
                self._wrong = self._wrong_size(f"{self._size + 1} or more")
        if self._wrong is not None:
            raise self._wrong
        return self._kept[at - self._next]


def wrong_size(source: Any, number: int, size: int, found: str, is_stream: bool = False) -> Error:
    if is_stream:
        return Error(f"{type(source).__name__}: expected {size} samples, as its __len__ says, found {found} in an epoch",
                     "__len__: the samples of an epoch, as many each time")
    name = getattr(source, "__name__", type(source).__name__)
    return Error(f"Shards: expected {size} samples of source {number} ({name}), as sizes says, found {found}",
                 "sizes: the samples of each source in an epoch, the same ones each time")


_END = object()


def of_stream(loader: "data.DataLoader[Any]", name: str) -> "data.DataLoader[Any]":
    """The loader over the one shard that its iterable data set is. Errors: nobody says how long it is."""
    stream: Any = loader.dataset
    try:
        size = len(stream)
    except TypeError:
        raise Error(f"{name}: {type(stream).__name__} is an iterable data set without a length, and a run must know its samples",
                    "give it a __len__, the samples of an epoch; or motley.Shards([source, …], sizes=[…]), which are read by shard; or "
                    "__getitem__ (torch.utils.data.Dataset)") from None
    if loader.batch_size is None:
        return loader
    options: dict[str, Any] = {option: getattr(loader, option) for option in OPTIONS}
    shards = Shards([stream], [max(1, size)])
    shards.is_stream = True
    return data.DataLoader(shards, **options)
