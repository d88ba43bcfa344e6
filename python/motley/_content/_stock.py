"""Which samples of a set that comes bit by bit are here, said to the head, which grants this machine no others.

A data set whose files come while they are read says so of its samples: is_here(index). Asked for positions of the coming steps in their
order, it wishes for their blocks as well, so that these come first.
"""

import contextlib
import threading
from collections.abc import Iterator

from motley import _core
from motley._errors import Error
from motley._samples import _data

LOOK_S = 0.1
AT_ONCE = 4096  # positions that are looked at before it looks where the run is
WISHED_MAX = 512  # samples behind those that are here, for which it wishes together
TESTED_STEPS = 4  # that are here before it wishes for test samples
LEAD_MAX = 64  # steps


@contextlib.contextmanager
def told(launch: _core.Launch, train: _data.Recipe, test: _data.Recipe | None) -> Iterator[None]:
    """Meanwhile the head knows. Nothing is done where no data set says what is here."""
    if not train.says_what_is_here and not (test and test.says_what_is_here):
        yield
        return
    watch = Watch(train, test)
    launch.keep_stock(watch.stock)
    watch.start()
    try:
        yield
    finally:
        watch.stops.set()
        watch.join()
        watch.stock.tell(0, 0, 0, True, False)  # the script's next run may have other samples


class Watch(threading.Thread):
    def __init__(self, train: _data.Recipe, test: _data.Recipe | None = None):
        super().__init__(name="motley: samples that are here", daemon=True)
        self.stock, self.stops = _core.SampleStock(), threading.Event()
        self._train = train
        self._all = Whole(train)
        self._tests = Whole(test) if test else None
        self._epoch, self._first, self._count = 0, 0, 0  # positions whose samples are here
        self._lead = 1  # steps: how far behind the open one they begin
        self._told: tuple[int, ...] | None = None
        self._tell(0, 0, 0, not train.says_what_is_here)

    def run(self) -> None:
        try:
            while not self.look() and not self.stops.wait(LOOK_S):
                pass
        except Error:
            pass  # whoever reads a sample hears why it does not come

    def look(self) -> bool:
        """True: all are here, and were said to be."""
        place = self.stock.place()
        whole = self._all.here or ((place is None or not self._follow(*place)) and self._all.look())
        if not whole:
            return False
        tested = self._tests is None or self._tests.look()
        self._tell(0, 0, 0, True)
        return tested

    def _follow(self, seed: int, shuffles: bool, epoch: int, first: int, count: int) -> bool:
        """False: nothing of this epoch is missing from where it looks."""
        def begin(lead: int) -> None:
            self._lead = lead
            self._epoch, self._first, self._count = epoch, min(first + lead * count, self._train.size), 0

        if epoch != self._epoch or first + (LEAD_MAX + 1) * count < self._first:
            begin(1)
        step = count or self._train.batch_size
        more = self._extend(seed, shuffles, step)
        if first + count > self._first + self._count:  # the run has come past what is here
            begin(min(2 * self._lead, LEAD_MAX))
            more = self._extend(seed, shuffles, step)
        if self._tests is not None and self._count >= TESTED_STEPS * step:
            self._tests.look()
        self._tell(self._epoch, self._first, self._count, False)
        return more

    def _extend(self, seed: int, shuffles: bool, step: int) -> bool:
        """False: to the end of the epoch."""
        while (at := self._first + self._count) < self._train.size:
            positions = _core.sample_order(seed, self._epoch, self._train.size, at, min(AT_ONCE, self._train.size - at), shuffles)
            numbers = self._train.numbers_at(self._epoch, positions)
            here = 0 if numbers is None else first_here(self._train, numbers)
            self._count += here
            if here < len(positions):
                for index in (numbers or [])[here + 1 : here + min(step, WISHED_MAX)]:  # one by one, each would wait for a look
                    self._train.loader.dataset.is_here(self._train.number(index))
                return True
        return False

    def _tell(self, epoch: int, first: int, count: int, all_here: bool) -> None:
        what = epoch, first, count, all_here, self._tests is not None and not self._tests.here
        if what != self._told:
            self._told = what
            self.stock.tell(*what)


class Whole:
    """Whether all samples of a recipe are here, which is so from some time on."""

    def __init__(self, recipe: _data.Recipe):
        self._recipe, self._count = recipe, 0 if recipe.says_what_is_here else recipe.samples

    @property
    def here(self) -> bool:
        return self._count == self._recipe.samples

    def look(self) -> bool:
        while not self.here:
            numbers = list(range(self._count, min(self._count + AT_ONCE, self._recipe.samples)))
            some = first_here(self._recipe, numbers)
            self._count += some
            if some < len(numbers):
                return False
        return True


def first_here(recipe: _data.Recipe, numbers: list[int]) -> int:
    """How many from the first on."""
    is_here = recipe.loader.dataset.is_here
    return next((at for at, index in enumerate(numbers) if not is_here(recipe.number(index))), len(numbers))
