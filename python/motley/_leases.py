"""The lower door for loops of one's own: the script computes its leases itself, on its main thread."""

import queue
import threading
from collections.abc import Iterator
from typing import Any

import torch

from motley import _computation, _core
from motley._errors import Error


class Lease:
    """A share of a step. Iterate over its batches; for each, leave the gradient of the **sum** of the losses in the parameters
    (`backward()` adds it), and add() what it came to. How many batches there are may change while it runs.

    step, epoch: of the run, from 1 on.
    """

    def __init__(self, computation: "LeaseComputation", task: _core.Task):
        self._computation, self._task = computation, task
        self._over = threading.Event()
        self._abandoned = False
        self.step, self.epoch = task.version + 1, task.epoch + 1
        self.count, self.loss_sum, self.weight = 0, 0.0, 0.0
        self.error: str | None = None

    def __iter__(self) -> Iterator[Any]:
        computation, task = self._computation, self._task
        while (size := computation.next_size(task, self.count)) > 0:
            batch = computation.start_batch(task, self.count, size)
            weight = self.weight
            yield batch
            if self.weight == weight:
                raise Error("a batch of a lease was computed, but nothing added", "lease.add(loss_sum, weight) for every batch")
            computation.end_batch(size)
            self.count += size
            task.progress(self.count)
        self._abandoned = task.limit() == 0

    def add(self, loss_sum: Any, weight: Any) -> None:
        """The sum of the losses of a batch, and their number (or whatever the loss is a mean over)."""
        self.loss_sum += float(loss_sum)
        self.weight += float(weight)

    def finish(self, error: str | None = None) -> None:
        self.error = error
        self._over.set()

    def wait(self) -> tuple[Any, ...]:
        self._over.wait()
        if self.error is not None:
            return "internal", self.error
        if self._abandoned or self.count == 0:
            return 0, 0.0, 0.0, []
        return self.count, self.weight, self.loss_sum, []


class Door:
    """Where the thread of a worker hands its leases to the script."""

    def __init__(self) -> None:
        self._leases: queue.SimpleQueue[Lease | None] = queue.SimpleQueue()
        self._closed = False

    def hand_over(self, lease: Lease) -> tuple[Any, ...]:
        if self._closed:
            return "internal", "the script has left its leases"
        self._leases.put(lease)
        return lease.wait()

    def end(self) -> None:
        """The run is over."""
        self._leases.put(None)

    def leases(self) -> Iterator[Lease]:
        """Until the run is over. Leaving early fails the lease in hand."""
        lease = None
        try:
            while (lease := self._leases.get()) is not None:
                yield lease
                lease.finish()
        finally:
            self._closed = True
            if lease is not None:
                lease.finish("the script has left its leases")


class LeaseComputation(_computation.ModelComputation):
    """A worker of which the script computes the training passes, on another thread."""

    begins_early = False

    def __init__(self, door: Door, *arguments: Any):
        super().__init__(*arguments)
        self._door = door

    def next_size(self, task: _core.Task, done: int) -> int:
        """Samples of the next batch, which is claimed; 0: there is none."""
        while (limit := self._limit(task)) > done:
            self._expect(self._work.train, task, limit)
            size = self._next(task, done, limit)
            if task.claim(done + size):
                return size
        return 0

    def start_batch(self, task: _core.Task, done: int, size: int) -> Any:
        at = task.at(done, size)
        batch = self._fetch(self._work.train, task, at, size)
        self.bound.start_statistics()
        self.seed(task, at)
        self._drawn_from = torch.get_rng_state()
        return batch

    def end_batch(self, size: int) -> None:
        """Errors: random numbers were drawn, and the batches of this model are cut by speed."""
        if not self._work.acts_on_groups and not torch.equal(self._drawn_from, torch.get_rng_state()):
            raise Error("the loop over a lease draws random numbers; another machine would draw others for the same samples",
                        "draw them in the data set, where they are seeded for each sample")
        self.bound.add_statistics(size)

    def _train(self, task: _core.Task) -> tuple[Any, ...]:
        self._set_mode(training=True)
        self.bound.device_gradients.zero_()
        self.bound.reached.clear()
        outcome = self._door.hand_over(Lease(self, task))
        if len(outcome) == 4 and outcome[0] > 0:
            self.check_gradients(outcome[0])
            if task.contributes:
                task.begin(*outcome[:3])
                if not task.resident:
                    if self._staged:
                        self.gradients.copy_(self.bound.device_gradients)
                    task.finish()
        return outcome
