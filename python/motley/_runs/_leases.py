"""The lower door for loops of one's own: the script computes its leases itself, on its main thread."""

import queue
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from motley import _core
from motley._computing import _computation
from motley._errors import Error
from motley._machines import _devices

LEFT = "the script has left its leases"


@dataclass
class Over:
    error: str


class Lease:
    """A share of a step. Iterate over its batches; for each, leave the gradient of the **sum** of the losses in the parameters
    (`backward()` adds it), and add() what it came to. How many batches there are may change while it runs.

    step, epoch: of the run, from 1 on.
    """

    def __init__(self, computation: "LeaseComputation", task: _core.Task):
        self._computation = computation
        self._batches: queue.SimpleQueue[tuple[int, int, int] | None] = queue.SimpleQueue()  # place, samples and samples wanted of each
        self._answers: queue.SimpleQueue[Over | None] = queue.SimpleQueue()  # None: ready for the next
        self._over = False  # the script is, as the worker knows
        self._ended = False  # there is no batch any more, as the script knows
        self.step, self.epoch = task.version + 1, task.epoch + 1
        self.count, self.loss_sum, self.weight = 0, 0.0, 0.0

    def __iter__(self) -> Iterator[Any]:
        computation = self._computation
        while not self._ended:
            self._answers.put(None)
            asked = self._batches.get()
            if asked is None:
                self._ended = True
                return
            batch = computation.start_batch(*asked)
            weight = self.weight
            yield batch
            if self.weight == weight:
                raise Error("a batch of a lease was computed, but nothing added", "lease.add(loss_sum, weight) for every batch")
            computation.end_batch(asked[1])
            self.count += asked[1]

    def add(self, loss_sum: Any, weight: Any) -> None:
        """The sum of the losses of a batch, and their number (or whatever the loss is a mean over)."""
        self.loss_sum += float(loss_sum)
        self.weight += float(weight)

    def finish(self, error: str = "") -> None:
        """For the package: by the script, which does nothing more for it."""
        self._answers.put(Over(error))

    def wait(self) -> None:
        """For the package: by the worker, as all that follows, until the script asks for a batch."""
        answer = self._answers.get()
        if isinstance(answer, Over):
            self._over = True
            raise Error(answer.error or "the script has left a lease before its batches were computed",
                        "iterate over all batches of a lease")

    def compute(self, *asked: int) -> None:
        self._batches.put(asked)
        self.wait()

    def end(self) -> str:
        """For the package: there is no batch any more. Returns what went wrong when the script is over with it; or nothing."""
        self._batches.put(None)
        error = ""
        while not self._over:
            answer = self._answers.get()
            if isinstance(answer, Over):
                self._over, error = True, answer.error
        return error


class LeaseQueue:
    """Where the thread of a worker hands its leases to the script."""

    def __init__(self) -> None:
        self._leases: queue.SimpleQueue[Lease | None] = queue.SimpleQueue()
        self._closed = False

    def hand_over(self, lease: Lease) -> None:
        """Returns when the script asks for the first batch. Errors: it will not."""
        if self._closed:
            lease.finish(LEFT)
        else:
            self._leases.put(lease)
        lease.wait()

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
                lease.finish(LEFT)


class LeaseComputation(_computation.ModelComputation):
    """A worker of which the script computes the training passes, on another thread."""

    begins_early = fills_up = False

    def __init__(self, lease_queue: LeaseQueue, *arguments: Any):
        super().__init__(*arguments)
        self.numbers = 0  # of a loop nobody knows what a second time would leave
        self.flow = "behind"  # the sums are known when the script is over with its lease
        self._lease_queue = lease_queue
        self._lease: Lease | None = None

    def start_batch(self, at: int, size: int, wanted: int) -> Any:
        batch = self._fetch(self._work.train, at, size, wanted)
        self.bound.start_statistics()
        self.seed(self._task, at)
        self._drawn_from = torch.get_rng_state()
        return batch

    def end_batch(self, size: int) -> None:
        """Errors: random numbers were drawn, and the batches of this model are cut by speed."""
        if not self._work.acts_on_groups and not torch.equal(self._drawn_from, torch.get_rng_state()):
            raise Error("the loop over a lease draws random numbers; another machine would draw others for the same samples",
                        "draw them in the data set, where they are seeded for each sample")
        self.bound.statistics.add(size)

    def _prepare_probe(self) -> None:
        raise Error("a loop over leases is not probed: what it does beside computing would be done with weights of no run")

    def _start(self) -> None:
        super()._start()
        if self._task.kind == "train":
            self._lease = Lease(self, self._task)
            self._lease_queue.hand_over(self._lease)

    def _train(self, at: int, size: int, wanted: int) -> None:
        assert self._lease is not None
        self._lease.compute(at, size, wanted)

    def _add_gradient(self) -> None:
        """The script has."""

    @_devices.told
    def sums(self) -> Any:
        if self._lease is not None:
            if error := self._lease.end():
                raise Error(error)
            self._weight, self._loss_sum = self._lease.weight, self._lease.loss_sum
        return super().sums()

    def close(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.end()
        super().close()
