"""The batch that the next step will probably begin with: it is read, collated and on its way to the device while the device computes this
step. A plain loop does the same by itself, since nothing in it waits for the device before it reads on."""

from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass
from typing import Any

from motley import _core
from motley._samples import _data

BatchOf = Callable[[Any, int, int], Any]  # (task, at, count)


@dataclass(frozen=True)
class Upcoming:
    """A task of the next step, as far as a batch of it asks."""

    version: int
    epoch: int
    order_first: int
    first: int
    seed: int
    size: int
    shuffles: bool
    state: int  # number of the script's, which a collate function may read
    kind: str = "train"

    def indices(self, at: int, count: int) -> list[int]:
        return _core.sample_order(self.seed, self.epoch, self.size, self.order_first + self.first + at, count, self.shuffles)


class Next:
    """Of one computation that makes whole steps by itself. ahead: somebody reads the samples of coming steps anyway. beside: nothing of the
    script's runs where a batch is made, so that may be on a thread of its own."""

    def __init__(self, source: _data.BatchSource, ahead: bool, beside: bool):
        self._source = source
        # Elsewhere samples may be what the head makes of them from step to step.
        self._may = ahead or source.steady
        self._thread = futures.ThreadPoolExecutor(1, "motley-batch") if beside else None
        self._making: futures.Future[None] | None = None
        self._opening: tuple[int, int, int] | None = None  # version, place and samples of the first batch of a task
        # where in which task, and beside which state; the samples' numbers, the batch
        self._made: tuple[tuple[int, int, int, int], list[int], Any] | None = None

    def wait(self) -> None:
        """Until nobody reads for it. Before anything else reads."""
        if self._making is not None:
            self._making.result()
            self._making = None

    def take(self, task: _core.Task, at: int, count: int) -> Any | None:
        """That batch, if it is the one that was made."""
        if self._opening is None or self._opening[0] != task.version:
            self._opening = task.version, at, count
        made, self._made = self._made, None
        wanted = task.version, task.first + at, count, task.state_number
        if made is None or made[0] != wanted or made[1] != self._source.of_task(task, at, count):
            return None
        return made[2]

    def begin(self, task: _core.Task, batch_of: BatchOf) -> None:
        """Before the passes of the last micro-batch of a task: the batch is made beside them."""
        upcoming = self._after(task) if self._thread is not None else None
        if self._thread is not None and upcoming is not None:
            self._making = self._thread.submit(self._make, upcoming, batch_of)

    def make(self, task: _core.Task, batch_of: BatchOf) -> None:
        """After the passes of a task. Once, however often it is called."""
        upcoming = self._after(task) if self._thread is None and self._made is None else None
        if upcoming is not None:
            self._make(upcoming, batch_of)

    def _make(self, upcoming: Upcoming, batch_of: BatchOf) -> None:
        assert self._opening is not None
        _, at, count = self._opening
        try:
            batch, numbers = batch_of(upcoming, at, count), self._source.of_task(upcoming, at, count)
            self._made = (upcoming.version, upcoming.first + at, count, upcoming.state), numbers, batch
        except Exception:  # whoever wants the batch will see
            self._made = None

    def _after(self, task: _core.Task) -> Upcoming | None:
        """None: it is not known, or of the next epoch, before which the script may change the samples."""
        alone = task.kind == "train" and task.resident and not task.kept
        if not self._may or not alone or self._opening is None or self._opening[0] != task.version:
            return None
        start = task.order_first + task.count
        _, at, count = self._opening
        if start + task.first + at + count > self._source.size:
            return None
        return Upcoming(task.version + 1, task.epoch, start, task.first, task.seed, self._source.size, self._source.shuffles,
                        task.state_number)
