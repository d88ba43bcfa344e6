"""Which samples of its data set a DataLoader uses: what its samplers say, as numbers that are the same on all machines."""

import itertools
from typing import Any

from torch.utils import data

from motley._errors import Error


class Choice:
    """`numbers`: of the samples that are used; None: all of the data set, in its order. `lists`: the sampler has an order of its own, and
    listed() gives that of one epoch more. `batch`, `drop_last`: of the loader or its batch sampler."""

    def __init__(self, loader: Any, name: str):
        self._name, self._all = name, _length(loader.dataset, name)
        self.numbers: list[int] | None = None
        self.shuffles, self.lists = True, False
        own = loader.batch_sampler if loader.batch_size is None else None
        if loader.batch_size is None and own is None:
            raise Error(f"{name}: expected a batch_size, found None",
                        "DataLoader(dataset, batch_size=N): N is the global batch, over all machines")
        self.whole_batches = own if own is not None and type(own) is not data.BatchSampler else None
        self.sampler: Any = loader.sampler if own is None else getattr(own, "sampler", None)
        self.batch = int(loader.batch_size if own is None else getattr(own, "batch_size", 0) or 0)
        self.drop_last = bool(loader.drop_last if own is None else getattr(own, "drop_last", False))

    @property
    def size(self) -> int:
        return self._all if self.numbers is None else len(self.numbers)

    def follow(self, trains: bool) -> None:
        self.follow_training() if trains else self.follow_test()
        if self.size == 0:
            raise Error(f"{self._name}: its sampler gives no samples", "look at how it is made")

    def follow_training(self) -> None:
        """What only shuffles is the run's own to shuffle, which needs no list. Errors: a sampler that shares samples out."""
        sampler, kind = self.sampler, type(self.sampler)
        if self.whole_batches is not None:
            self._list_batches()
        elif kind is data.SequentialSampler:
            self.shuffles = False
            self._all_of(sampler.data_source)
        elif _takes_all(sampler):
            self._all_of(sampler.data_source)
        elif kind is data.SubsetRandomSampler:
            self.numbers = self._checked(sampler.indices)
        elif kind in (list, tuple, range):
            self.shuffles, self.numbers = False, self._checked(sampler)
        elif kind.__name__ == "DistributedSampler":
            raise Error(f"{self._name}: DistributedSampler gives each process a part of the samples, and a run shares them out by itself",
                        "DataLoader(dataset, batch_size=N, shuffle=True): N is the global batch, over all machines")
        else:
            self.lists, self.shuffles = True, False

    def _list_batches(self) -> None:
        """The batch has the length of the first one that the sampler gives, once it is listed()."""
        self.lists, self.shuffles, self.drop_last, self.batch = True, False, False, 0

    def listed(self) -> tuple[list[int], list[int] | None]:
        """The numbers of the samples of one epoch more, in their order; how many each batch has, where the sampler says. Errors: a batch
        without samples."""
        if self.whole_batches is None:
            return self._checked(self._listed(self.sampler)), None
        batches = [self._checked(batch) for batch in self._listed(self.whole_batches)]
        self.batch = self.batch or len(next(iter(batches), ()))
        if not all(batches):
            raise Error(f"{self._name}: batch {batches.index([]) + 1} of {type(self.whole_batches).__name__} has no samples",
                        "leave it out: every batch is a step")
        return list(itertools.chain.from_iterable(batches)), [len(batch) for batch in batches]

    def follow_test(self) -> None:
        """The order makes no difference to sums, so what counts is which samples there are. Errors: others each time."""
        sampler, kind = self.sampler, type(self.sampler)
        shuffles = kind is data.SubsetRandomSampler
        if self.whole_batches is not None:
            once, again = (self._checked(itertools.chain.from_iterable(self._listed(self.whole_batches))) for _ in range(2))
            self.batch = max((len(batch) for batch in self._listed(self.whole_batches)), default=1)
        elif kind is data.SequentialSampler or _takes_all(sampler):
            once = again = self._checked(range(len(sampler.data_source)))
            shuffles = kind is data.RandomSampler
        else:
            once, again = (self._checked(self._listed(sampler)) for _ in range(2))
        if self.drop_last and self.whole_batches is None and len(once) % self.batch:
            if shuffles or once != again:
                raise Error(f"{self._name}: drop_last leaves out the last {len(once) % self.batch} samples of an order that "
                            f"{kind.__name__} changes each time, so which ones would be chance", "drop_last=False, or shuffle=False")
            once = again = once[: len(once) // self.batch * self.batch]
        once = sorted(once)
        if once != sorted(again):
            raise Error(f"{self._name}: {type(self.whole_batches or sampler).__name__} gives other samples each time, so evaluations could "
                        "not be compared, nor made on several machines", "a sampler that always gives the same ones, e.g. "
                        "Subset(dataset, indices)")
        self.numbers = None if once == list(range(self._all)) else once

    def _all_of(self, source: Any) -> None:
        """The samplers of torch count to the length of what they were given, which need not be the loader's data set."""
        if len(source) != self._all:
            self.numbers = self._checked(range(len(source)))

    def _listed(self, sampler: Any) -> list[Any]:
        most = 64 * self._all + 64
        listed = list(itertools.islice(iter(sampler), most + 1))
        if len(listed) > most:
            raise Error(f"{self._name}: {type(sampler).__name__} gives more than {most} numbers for {self._all} samples",
                        "a sampler that comes to an end")
        return listed

    def _checked(self, numbers: Any) -> list[int]:
        try:
            found = [int(number) for number in numbers]
        except (TypeError, ValueError):
            raise Error(f"{self._name}: {type(self.whole_batches or self.sampler).__name__} gives something else than numbers of samples",
                        "a run asks for samples by number: 0 to len(dataset) - 1") from None
        for number in found:
            if not -self._all <= number < self._all:
                raise Error(f"{self._name}: its sampler asks for sample {number} of {self._all}", "look at how the sampler is made")
        return [number % self._all for number in found]


def _takes_all(sampler: Any) -> bool:
    """A shuffle of everything that it was given."""
    return type(sampler) is data.RandomSampler and not sampler.replacement and sampler.num_samples == len(sampler.data_source)


def _length(dataset: Any, name: str) -> int:
    try:
        size = len(dataset)
    except TypeError:
        raise Error(f"{name}: {type(dataset).__name__} has no length, and a run must know its samples",
                    "give the data set a __len__") from None
    if size == 0:
        raise Error(f"{name}: the data set has no samples", "look at how it is made")
    return size
