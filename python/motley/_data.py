"""A DataLoader as a recipe: which samples there are, and how some of them become a batch. The coordinator says which."""

import collections.abc
import contextlib
import functools
import random
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import data

from motley import _ahead
from motley._errors import Error

try:
    import numpy
except ImportError:  # torch works without
    numpy = None  # type: ignore[assignment]


# The generators belong to the process: whoever seeds one draws from it before anybody else seeds it.
GENERATORS = threading.RLock()


class Recipe:
    """Reads samples of a loader's data set by number. `name` is of the argument that brought the loader."""

    def __init__(self, loader: Any, name: str):
        if not isinstance(loader, data.DataLoader):
            raise Error(f"{name}: expected a torch.utils.data.DataLoader, found {type(loader).__name__}",
                        f"{name} = DataLoader(dataset, batch_size=256, shuffle=True)")
        if isinstance(loader.dataset, data.IterableDataset):
            raise Error(f"{name}: {type(loader.dataset).__name__} is an iterable data set, but samples are asked for by number",
                        "give the data set __len__ and __getitem__ (torch.utils.data.Dataset)")
        if loader.batch_size is None:
            raise Error(f"{name}: expected a batch_size, found None or a batch_sampler of its own",
                        "DataLoader(dataset, batch_size=N): N is the global batch, over all machines")
        self.name = name
        self.dataset = loader.dataset
        self.collate = loader.collate_fn
        self.pinned = bool(loader.pin_memory)
        self.batch_size = int(loader.batch_size)
        try:
            self.size = len(self.dataset)  # type: ignore[arg-type]
        except TypeError:
            raise Error(f"{name}: {type(self.dataset).__name__} has no length, and a run must know its samples",
                        "give the data set a __len__") from None
        if self.size == 0:
            raise Error(f"{name}: the data set has no samples", "look at how it is made")
        self.draws: tuple[str, ...] = ()  # whose random numbers its samples are made with
        self.loader = loader
        self.readers: _ahead.Readers | None = None

    def check_order(self) -> list[str]:
        """What the user should know of the order of training. Errors: a sampler that says which samples there are."""
        sampler = self.loader.sampler
        plain = isinstance(sampler, data.SequentialSampler)
        if not plain and not (isinstance(sampler, data.RandomSampler) and not sampler.replacement and sampler.num_samples == self.size):
            raise Error(f"{self.name}: a run uses every sample once an epoch, and {type(sampler).__name__} wants otherwise",
                        "shuffle=True; weigh samples in the loss, as (mean, weight)")
        notes = []
        if plain:
            notes.append(f"{self.name} does not shuffle; a run always does, by its seed")
        if self.loader.drop_last and self.size % self.batch_size:
            notes.append(f"{self.name}: drop_last is not followed, the last batch of an epoch has {self.size % self.batch_size} samples")
        return notes

    def fetch(self, indices: list[int], seeds: list[int] | None = None) -> Any:
        """The batch of these samples, on the host. `seeds`: one a sample, for what the data set draws at random."""
        return self.collate(read(self.dataset, self.draws, indices, seeds))

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Meanwhile the loader's processes, where it has any, are there to read."""
        if not self.loader.num_workers:
            yield
            return
        self.readers = _ahead.Readers(self.loader, functools.partial(read, self.dataset, self.draws), self.name)
        try:
            yield
        finally:
            self.readers.close()
            self.readers = None

    def fingerprint(self) -> str:
        """Equal on machines with the same data set, as far as its length and the shapes of its first sample tell."""
        with RandomWatch():
            return f"{self.size} samples of {describe(self.dataset[0])}"


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
        torch.default_generator.manual_seed(seed)


class RandomWatch:
    """Whose random numbers were drawn between entering and leaving; puts the generators back."""

    def __enter__(self) -> "RandomWatch":
        self._before = self._states()
        self.draws: tuple[str, ...] = ()
        return self

    def __exit__(self, *_: object) -> None:
        after = self._states()
        self.draws = tuple(name for name in after if not _same(self._before[name], after[name]))
        random.setstate(self._before["random"])
        torch.set_rng_state(self._before["torch"])
        if numpy is not None:
            numpy.random.set_state(self._before["numpy"])
        if "cuda" in self._before:
            torch.cuda.set_rng_state_all(self._before["cuda"])

    @staticmethod
    def _states() -> dict[str, Any]:
        states = {"random": random.getstate(), "torch": torch.get_rng_state()}
        if numpy is not None:
            states["numpy"] = numpy.random.get_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            states["cuda"] = torch.cuda.get_rng_state_all()
        return states


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return bool(torch.equal(a, b))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if numpy is not None and isinstance(a, numpy.ndarray):
        return bool((a == b).all())
    return bool(a == b)
