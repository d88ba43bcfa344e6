"""Gradients on their way from the memory of a device to the host's, while the backward pass still goes on."""

import collections
from concurrent import futures

import torch

from motley import _core

TOGETHER = 1 << 18  # elements: what fewer go alone costs more than it gains


class Outflow:
    """Of one computation. device, host: the flat gradient in both places. A thread of its own waits for the device and tells the core what
    came, so that what computes is not held up."""

    def __init__(self, layout: _core.Layout, device: torch.Tensor, host: torch.Tensor):
        self._device, self._host = device, host
        offsets = [offset for _, offset, _ in layout.placements]
        self._places = list(zip(offsets, [*offsets[1:], layout.flat_elements], strict=True))
        self._thread = futures.ThreadPoolExecutor(1, "motley-gradients")
        self._stream = torch.cuda.Stream(device.device) if device.is_cuda else None
        self._going: collections.deque[futures.Future[None]] = collections.deque()
        self._task: _core.Task | None = None
        self._ready: list[int] = []  # and not on their way
        self._left: set[int] = set()  # neither ready nor on their way

    def begin(self, task: _core.Task) -> None:
        """Before the last backward pass of a task."""
        self._task, self._left = task, set(range(len(self._places)))

    def add(self, place: int) -> None:
        """Nothing is added to this piece any more. On the thread of the backward pass."""
        if place not in self._left:
            return
        self._left.remove(place)
        self._ready.append(place)
        if sum(last - first for first, last in map(self._places.__getitem__, self._ready)) >= TOGETHER:
            self._send()

    def finish(self) -> None:
        """Returns when the whole gradient is on the host."""
        if self._task is None:
            self._host.copy_(self._device)
            return
        self._ready += sorted(self._left)
        self._send()
        while self._going:
            self._going.popleft().result()
        self._task = None

    def drop(self) -> None:
        """Nobody wants the rest. Nothing is told from then on."""
        self._task, self._ready = None, []
        self._left.clear()
        futures.wait(self._going)
        self._going.clear()

    def _send(self) -> None:
        ready, self._ready = self._ready, []
        done = torch.cuda.current_stream(self._device.device).record_event() if self._stream is not None else None
        self._going.append(self._thread.submit(self._bring, ready, done))

    def _bring(self, places: list[int], done: torch.cuda.Event | None) -> None:
        if self._stream is not None and done is not None:
            with torch.cuda.stream(self._stream):
                self._stream.wait_event(done)
                self._copy(places)
            self._stream.synchronize()
        else:
            self._copy(places)
        for place in places:
            if (task := self._task) is not None:
                task.final(place)

    def _copy(self, places: list[int]) -> None:
        ranges: list[tuple[int, int]] = []
        for first, last in sorted(map(self._places.__getitem__, places)):
            if ranges and ranges[-1][1] == first:
                ranges[-1] = ranges[-1][0], last
            else:
                ranges.append((first, last))
        for first, last in ranges:
            self._host[first:last].copy_(self._device[first:last], non_blocking=True)
