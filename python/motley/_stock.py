"""Which samples of a set that comes bit by bit are here, said to the head, which grants this machine no others.

A data set whose files come while they are read says so of its samples: is_here(index). Asked for positions of the coming steps in their
order, it wishes for their blocks as well, so that these come first.
"""

import contextlib
import threading
from collections.abc import Iterator

from motley import _core, _data
from motley._errors import Error

LOOK_S = 0.1
AT_ONCE = 4096  # positions that are looked at before it looks where the run is
LEAD_MAX = 64  # steps


@contextlib.contextmanager
def told(launch: _core.Launch, train: _data.Recipe) -> Iterator[None]:
    """Meanwhile the head knows. Nothing is done where the data set of `train` does not say what is here."""
    if not train.says_what_is_here:
        yield
        return
    watch = Watch(train)
    launch.keep_stock(watch.stock)
    watch.start()
    try:
        yield
    finally:
        watch.stops.set()
        watch.join()
        watch.stock.tell(0, 0, 0, True)  # the script's next run may have other samples


class Watch(threading.Thread):
    def __init__(self, train: _data.Recipe):
        super().__init__(name="motley: samples that are here", daemon=True)
        self.stock, self.stops = _core.SampleStock(), threading.Event()
        self._train, self._is_here = train, train.loader.dataset.is_here
        self._epoch, self._first, self._count = 0, 0, 0  # positions whose samples are here
        self._lead = 1  # steps: how far behind the open one they begin
        self._whole = 0  # samples from the first on that are here
        self._told: tuple[int, ...] | None = None
        self._tell(0, 0, 0, False)

    def run(self) -> None:
        try:
            while not self.look() and not self.stops.wait(LOOK_S):
                pass
        except Error:
            pass  # whoever reads a sample hears why it does not come

    def look(self) -> bool:
        """True: all are here, and were said to be."""
        place = self.stock.place()
        if (place is None or not self._follow(*place)) and self._has_all():
            self._tell(0, 0, 0, True)
            return True
        return False

    def _follow(self, seed: int, shuffles: bool, epoch: int, first: int, count: int) -> bool:
        """False: nothing of this epoch is missing from where it looks."""
        def begin(lead: int) -> None:
            self._lead = lead
            self._epoch, self._first, self._count = epoch, min(first + lead * count, self._train.size), 0

        if epoch != self._epoch or first + (LEAD_MAX + 1) * count < self._first:
            begin(1)
        more = self._extend(seed, shuffles)
        if first + count > self._first + self._count:  # the run has come past what is here
            begin(min(2 * self._lead, LEAD_MAX))
            more = self._extend(seed, shuffles)
        self._tell(self._epoch, self._first, self._count, False)
        return more

    def _extend(self, seed: int, shuffles: bool) -> bool:
        """False: to the end of the epoch."""
        while (at := self._first + self._count) < self._train.size:
            positions = _core.sample_order(seed, self._epoch, self._train.size, at, min(AT_ONCE, self._train.size - at), shuffles)
            numbers = self._train.numbers_at(self._epoch, positions)
            here = 0 if numbers is None else self._here(numbers)
            self._count += here
            if here < len(positions):
                return True
        return False

    def _tell(self, *what: int) -> None:
        if what != self._told:
            self._told = what
            self.stock.tell(*what)

    def _here(self, numbers: list[int]) -> int:
        """How many from the first on."""
        return next((number for number, index in enumerate(numbers) if not self._is_here(self._train.number(index))), len(numbers))

    def _has_all(self) -> bool:
        self._whole += self._here(list(range(self._whole, self._train.samples)))
        return self._whole == self._train.samples
