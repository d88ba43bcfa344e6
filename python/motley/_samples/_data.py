"""A DataLoader as a source of batches: which samples there are, and how some of them become a batch. The coordinator says which."""

import array
import collections.abc
import contextlib
import functools
import hashlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import data

from motley import _core, _numbers, _state
from motley._errors import Error
from motley._machines import _devices
from motley._samples import _ahead, _contents, _orders, _samplers, _shards, _unlike, _whole

try:
    import numpy
except ImportError:  # torch works without
    numpy = None  # type: ignore[assignment]


# The generators belong to the process: whoever seeds one draws from it before anybody else seeds it.
GENERATORS = threading.RLock()
GENERATED = ("random", "numpy", "torch")

COMPARED = 48  # samples of a set, between machines
BESIDE_WHOLE = 32  # of them, where arrays are compared as a whole: both together fit into a fingerprint
READ_TWICE = 4
CONTENTS_KEY = 0x6D6F746C  # of the order whose first positions are compared
WORDS_MAX = 240  # characters; a fingerprint has 4096 bytes at most


class BatchSource:
    """Reads samples of a loader's data set by number. `name` is of the argument that brought the loader. `seed`: of the run.

    size: samples of an epoch.  samples: of the data set, which is the same but where `orders` says what an epoch has.
    """

    def __init__(self, loader: Any, name: str, seed: int = 1):
        if not isinstance(loader, data.DataLoader):
            raise Error(f"{name}: expected a torch.utils.data.DataLoader, found {type(loader).__name__}",
                        f"{name} = DataLoader(dataset, batch_size=256, shuffle=True)")
        if isinstance(loader.dataset, data.IterableDataset):
            loader = _shards.of_stream(loader, name)
        if isinstance(loader.dataset, _state.HeadTensors) and loader.num_workers > 0:
            raise Error(f"{name}: HeadTensors needs num_workers=0, since worker processes would not see the samples that replace() sends",
                        "num_workers=0")
        self.name = name
        choice = _samplers.Choice(loader, name)
        with RandomWatch():
            choice.follow(trains=name != "test")
        self.orders: _orders.Orders | None = None
        if isinstance(loader.dataset, _shards.Shards):
            if choice.lists or choice.numbers is not None:
                raise Error(f"{name}: Shards are read from beginning to end, and its sampler wants samples from anywhere",
                            "shuffle=True, which shuffles the shards, or shuffle=False")
            loader.dataset.keep_for(choice.batch, choice.shuffles and name != "test")
            if choice.shuffles and name != "test":
                shards, batch = loader.dataset, choice.batch
                self.orders = _orders.Orders(lambda number: (shards.shuffled(number, batch), None), choice.size, name, seed)
                choice.shuffles = False
        elif choice.lists:
            self.orders = _orders.Orders(functools.partial(_seeded, choice.listed), choice.size, name, seed)
        self.samples = choice.size
        self.size = self.samples if self.orders is None else self.orders.size
        if not 0 < self.size <= _numbers.COUNT_MAX:
            many = f"its data set has {self.size} samples, expected at most 2**40"
            raise Error(f"{name}: {many if self.size else 'its sampler gives no samples'}", "look at how it is made")
        self.batch_size = choice.batch
        self.shuffles, self.drops_last = choice.shuffles, choice.drop_last and self.size % choice.batch != 0
        self.numbers = choice.numbers  # of the samples in the data set, by position; None: the same
        self.dataset = loader.dataset if choice.numbers is None else data.Subset(loader.dataset, choice.numbers)
        self.collate = loader.collate_fn
        self.pinned = bool(loader.pin_memory)
        self.draws: tuple[str, ...] = ()  # whose random numbers its samples are made with
        self.loader = loader
        self.readers: _ahead.Readers | None = None
        self._looked: list[tuple[int, str]] = []  # position and contents of the samples that are compared
        self._seconds = 0.0  # that looking at one of them took
        self._next = 0  # of _looked, to be looked at again

    def check_order(self) -> list[str]:
        """What the user should know of the order of training. `shuffles` and `drops_last` say what the run is to do: keys train.shuffle
        and train.drop_last. Errors: an epoch without a batch."""
        if self.drops_last and self.size < self.batch_size:
            raise Error(f"{self.name}: drop_last leaves nothing of {self.size} samples in batches of {self.batch_size}",
                        "drop_last=False, or a smaller batch_size")
        return []

    def length(self, epochs: int) -> tuple[dict[str, int], int]:
        """Keys of the run's length, and its steps. Where the sampler makes the batches, the core cannot count the steps of an epoch."""
        steps = epochs * self.steps_per_epoch
        return {"steps": steps} if self.orders is not None and self.orders.steps is not None else {"epochs": epochs}, steps

    @property
    def steady(self) -> bool:
        """Its samples stay as they are from step to step, whoever reads them."""
        return type(self.dataset) is data.TensorDataset

    @property
    def batch_sizes(self) -> set[int]:
        """That steps of the first epoch have."""
        if self.orders is not None and self.orders.sizes:
            return set(self.orders.sizes[0])
        last = set() if self.drops_last else {self.size % self.batch_size}
        return ({self.batch_size} if self.size >= self.batch_size else set[int]()) | last

    @property
    def steps_per_epoch(self) -> int:
        if self.orders is not None and self.orders.steps is not None:
            return self.orders.steps
        return self.size // self.batch_size if self.drops_last else -(-self.size // self.batch_size)

    def orders_from(self, steps: int, eval_every: int, repeats: bool, version: int) -> dict[str, Any]:
        """What travels of the sampler's orders from `version` to the next eval point, of `steps` in all. `eval_every`: steps between two;
        0: an epoch. `repeats`: nothing is trained, and there may be more steps than that."""
        per_epoch = self.steps_per_epoch
        last = min(steps, version + (eval_every or per_epoch))
        if self.orders is None or version >= last:
            return {}
        return {**self.orders.state(version // per_epoch, -(-last // per_epoch)), **({_orders.REPEATS: True} if repeats else {})}

    def changes_of_batch(self) -> list[tuple[int, int]]:
        """(step, samples of it and of those behind it), as far as the sampler has made batches that nobody was told."""
        return self.orders.changes() if self.orders is not None else []

    def resume_orders(self, directory: str) -> None:
        if self.orders is not None and directory:
            self.orders.list_again(directory)

    def write_orders(self, directory: str) -> None:
        if self.orders is not None:
            self.orders.write(directory)

    def numbers_at(self, epoch: int, positions: list[int]) -> list[int] | None:
        """The samples at positions of the run's order; None: it is not known yet."""
        return positions if self.orders is None else self.orders.at(epoch, positions)

    def of_task(self, task: Any, at: int, count: int) -> list[int]:
        numbers = self.numbers_at(task.epoch, task.indices(at, count))
        if numbers is None:
            raise Error(f"{self.name}: the head did not send the order of epoch {task.epoch + 1}",
                        "the same version of Motley on both machines", "protocol")
        return numbers

    def fetch(self, indices: list[int], seeds: list[int] | None = None) -> Any:
        """The batch of these samples, on the host. `seeds`: one a sample, for what the data set draws at random."""
        return self.collate(self.read(indices, seeds))

    def read(self, indices: list[int], seeds: list[int] | None) -> list[Any]:
        return read(self.dataset, self.draws, indices, seeds)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Meanwhile the loader's processes, where it has any, are there to read."""
        if not self.loader.num_workers:
            yield
            return
        self.readers = _ahead.Readers(self.loader, functools.partial(read, self.dataset, self.draws), self.name, self.batch_size)
        try:
            yield
        finally:
            self.readers.close()
            self.readers = None

    def fingerprint(self) -> str:
        """What other machines compare: which samples there are, the shapes of the first, and the contents of 48 (all of a smaller set) at
        positions that are drawn by a fixed key. A set of which a share p of the samples is another there is noticed with the probability
        1 - (1 - p)^48: 0.92 at 5 %, 0.99 at 10 %, so hardly a single changed file of thousands, but always another split. Arrays that the
        set holds in memory are compared as a whole (_whole.py): there one changed sample is noticed, but for a chance of 2^-32."""
        with RandomWatch():
            seed_host(0, GENERATED)
            words = describe(self._read(0))
        if isinstance(self.loader.dataset, _state.HeadTensors):
            return f"{self.samples} samples of {words}, from the head"
        looked = self._look()
        whole = self._watched.words()
        if len(words) > WORDS_MAX:
            words = f"{words[:WORDS_MAX - 20]}… {hashlib.blake2b(words.encode(), digest_size=8).hexdigest()}"
        if self.orders is not None:
            words += f", {self.size} an epoch"
        if self.numbers is not None:
            words += f", chosen {hashlib.blake2b(array.array('q', self.numbers).tobytes(), digest_size=8).hexdigest()}"
        contents = " ".join(f"{self.number(position)}:{contents}" for position, contents in looked[:BESIDE_WHOLE if whole else COMPARED])
        return f"{self.samples} samples of {words}; contents: {contents}" + (f"; whole: {whole}" if whole else "")

    def contents(self, count: int = COMPARED) -> str:
        """A digest of the first `count` samples that are compared. On one machine, equal as long as they are."""
        return hashlib.blake2b(repr(self._look()[:count]).encode(), digest_size=8).hexdigest()

    def sampled_again(self, budget_s: float = 0.0002) -> int | None:
        """Looks at some of the samples that are compared once more: as many as fit into the time, at least one, each time others. Returns
        None, or the number of one that is not what it was. Of a stream none: it would have to be read from its beginning again."""
        if isinstance(self.dataset, _shards.Shards):
            return None
        looked = self._look()
        for _ in range(max(1, min(len(looked), int(budget_s / max(self._seconds, 1e-9))))):
            position, before = looked[self._next % len(looked)]
            self._next += 1
            if self._contents(position) != before:
                return self.number(position)
        return None

    def some(self, count: int) -> list[int]:
        """Positions of samples from anywhere in the data set, the same ones on all machines; of a stream from where it is cheap."""
        if isinstance(self.dataset, _shards.Shards):
            return self.dataset.first(count)
        return _core.sample_order(CONTENTS_KEY, 0, self.samples, 0, min(count, self.samples))

    def unlike(self, seen: list[int]) -> list[int]:
        """Positions of samples that have what those at `seen` lack, as far as the data set holds arrays, or is soon read."""
        among = None if self.orders is None else self.orders.first()
        streamed = isinstance(self.dataset, _shards.Shards)  # which would have to begin anew

        def others() -> list[int]:
            size = self.samples if among is None else len(among)
            drawn = _core.sample_order(CONTENTS_KEY, 0, size, 0, min(_unlike.SAMPLES_MAX, size))
            return drawn if among is None else [among[position] for position in drawn]

        with GENERATORS, RandomWatch():
            seed_host(0, GENERATED)
            return _unlike.unlike(_whole.arrays_of(self.dataset), among, seen, None if streamed else self._read, others)

    def _look_at_source(self, shards: _shards.Shards) -> None:
        with GENERATORS, RandomWatch() as watch:
            for number in self.some(COMPARED):
                shards.raw(number)
        if watch.draws:
            raise Error(f"{self.name}: a source of the stream draws from {', '.join(watch.draws)}, and would give other samples to a "
                        "machine that passes over some", "draw where samples are made of what it gives: motley.Shards(..., map=function), "
                        "seeded for each sample, or the collate function")

    def number(self, position: int) -> int:
        """In the data set of the loader, of a sample of the run."""
        return position if self.numbers is None else self.numbers[position]

    def _look(self) -> list[tuple[int, str]]:
        """Errors: a sample that cannot be read, or is another one when it is read again."""
        if self._looked:
            return self._looked
        begun = time.perf_counter()
        positions = self.some(COMPARED)
        if isinstance(self.dataset, _shards.Shards):
            self._look_at_source(self.dataset)
        watched = _whole.Watched(self.loader.dataset, [self.number(position) for position in positions])
        looked = [(position, self._contents(position)) for position in positions]
        self._seconds = (time.perf_counter() - begun) / len(looked)
        if isinstance(self.dataset, _shards.Shards):
            self.dataset.rewind()
        for position, before in looked[:READ_TWICE]:
            if self._contents(position) != before:
                again = f"{self.name}: sample {self.number(position)} is another one each time it is read"
                if isinstance(self.dataset, _shards.Shards):
                    raise Error(f"{again}: a source does not begin anew, or in another order", _shards.AGAIN)
                raise Error(f"{again}, with generators seeded alike: {type(self.loader.dataset).__name__} draws from a generator of its "
                            "own, or changes when it is read",
                            "draw from random, numpy.random or torch without a generator of your own: these are seeded for each sample")
        if isinstance(self.dataset, _shards.Shards):
            with GENERATORS, RandomWatch():
                self.dataset.count()
        self._looked, self._watched = looked, watched
        return looked

    def _contents(self, position: int) -> str:
        if self._looked and not self.draws:  # looked at again: there is nothing to seed
            return _contents.Contents(self._read(position)).text
        with GENERATORS, RandomWatch():
            seed_host(position, GENERATED)
            with RandomWatch() as watch:
                sample = self._read(position)
            self.draws = tuple(sorted({*self.draws, *watch.draws}))
        return _contents.Contents(sample).text

    def _read(self, position: int) -> Any:
        try:
            return read(self.dataset, (), [position], None)[0]
        except Exception as error:
            raise Error(f"{self.name}: sample {self.number(position)} cannot be read: "
                        f"{type(error).__name__}: {error}", f"look at {type(self.loader.dataset).__name__}.__getitem__") from error


def _seeded(listed: Callable[[], tuple[list[int], list[int] | None]], seed: int) -> tuple[list[int], list[int] | None]:
    """A sampler without a generator of its own draws from those of the process."""
    with GENERATORS, RandomWatch():
        seed_host(seed, GENERATED)
        return listed()


def read(dataset: Any, draws: tuple[str, ...], indices: list[int], seeds: list[int] | None) -> list[Any]:
    """These samples. `seeds`: one a sample, for what the data set `draws` at random."""
    if seeds is not None and draws:
        return [_drawn(dataset, draws, index, seed) for index, seed in zip(indices, seeds, strict=True)]
    if hasattr(dataset, "__getitems__"):
        return list(dataset.__getitems__(indices))
    return [dataset[index] for index in indices]


def _drawn(dataset: Any, draws: tuple[str, ...], index: int, seed: int) -> Any:
    with GENERATORS:
        seed_host(seed, draws)
        return dataset[index]


def describe(sample: Any) -> str:
    """The structure of a sample in words, e.g. "(float32 [3, 32, 32], int)"."""
    if isinstance(sample, torch.Tensor) or (numpy is not None and isinstance(sample, numpy.ndarray)):
        return f"{str(sample.dtype).removeprefix('torch.')} {list(sample.shape)}"
    if isinstance(sample, collections.abc.Mapping):
        return "{" + ", ".join(f"{key}: {describe(value)}" for key, value in sample.items()) + "}"
    if isinstance(sample, (list, tuple)):
        return "(" + ", ".join(describe(value) for value in sample) + ")"
    return type(sample).__name__


def move(batch: Any, device: torch.device, pinned: bool = False) -> Any:
    """The batch with its tensors on the device: tuples, lists, mappings, and what has a method `to`. `pinned`: by way of memory from
    which a CUDA device copies while it computes; what has a method `pin_memory` goes there, too."""
    if pinned and device.type == "cuda" and callable(getattr(batch, "pin_memory", None)):
        batch = batch.pin_memory()
    if isinstance(batch, torch.Tensor) or (hasattr(batch, "to") and callable(batch.to)):
        return batch.to(device, non_blocking=True) if isinstance(batch, torch.Tensor) else batch.to(device)
    if isinstance(batch, collections.abc.Mapping):
        return {key: move(value, device, pinned) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(move(value, device, pinned) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(move(value, device, pinned) for value in batch)
    return batch


def seed_host(seed: int, draws: tuple[str, ...]) -> None:
    if "random" in draws:
        random.seed(seed)
    if "numpy" in draws and numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)
    if "torch" in draws:
        _devices.seed(seed)


class RandomWatch:
    """Whose random numbers were drawn between entering and leaving; puts the generators back."""

    def __enter__(self) -> "RandomWatch":
        self._before = self._states()
        self.draws: tuple[str, ...] = ()
        return self

    def __exit__(self, *_: object) -> None:
        after = self._states()
        self.draws = tuple(name for name, state in self._before.items() if not _same_state(state, after[name]))
        random.setstate(self._before["random"])
        for generator, state in self._before["torch"].items():
            generator.set_state(state)
        if numpy is not None:
            numpy.random.set_state(self._before["numpy"])

    @staticmethod
    def _states() -> dict[str, Any]:
        states = {"random": random.getstate(), "torch": {generator: generator.get_state() for generator in _devices.generators()}}
        if numpy is not None:
            states["numpy"] = numpy.random.get_state()
        return states


def _same_state(a: Any, b: Any) -> bool:
    return bool(a == b) if isinstance(a, tuple) and isinstance(a[1], tuple) else _same(a, b)  # Python's own: a tuple of 625 numbers


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return bool(torch.equal(a, b))
    if isinstance(a, dict):  # of generators, some of which may have come later
        return all(_same(state, b[generator]) for generator, state in a.items())
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if numpy is not None and isinstance(a, numpy.ndarray):
        return bool((a == b).all())
    return bool(a == b)


def reading(*sources: "BatchSource | None") -> contextlib.ExitStack:
    """Meanwhile there are the processes that read samples of these. Comes before the threads and sockets of the run: children inherit
    these."""
    stack = contextlib.ExitStack()
    for source in filter(None, sources):
        stack.enter_context(source.reading())
    return stack
