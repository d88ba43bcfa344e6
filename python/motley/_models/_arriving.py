"""The forward pass begins while weights are on their way, and waits for each when an operator is about to read it.

Torch's dispatcher tells of every operator, whoever calls it. Memory whose weights are missing holds NaN: what reads it without any
operator that torch knows of gives a loss that is not a number, instead of one of the weights before.
"""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from motley import _core
from motley._machines._devices import Abandoned


def copy(host: torch.Tensor, device: torch.Tensor, ranges: Iterable[tuple[int, int]]) -> None:
    for begin, end in ranges:
        device[begin:end].copy_(host[begin:end], non_blocking=device.is_cuda)


class Arriving(TorchDispatchMode):
    """While this is entered, in this thread, operators wait for the weights that they read.

    host: where the core copies weights to; device: the same tensor, or where they are needed.
    """

    def __init__(self, task: _core.Task, host: torch.Tensor, device: torch.Tensor):
        super().__init__()
        self._task, self._host, self._device = task, host, device
        self._storage = device.untyped_storage().data_ptr()
        self.missing = task.missing()
        for first, last in self.missing:
            device[first:last].fill_(math.nan)

    def _take(self, first: int, last: int) -> None:
        came = self._task.bring(first, last)
        self.missing = self._task.missing()
        if any(first < end and begin < last for begin, end in self.missing):
            raise Abandoned
        if self._device is not self._host:
            copy(self._host, self._device, came)

    def finish(self) -> None:
        """Waits for what nothing has read. Raises Abandoned."""
        if self.missing:
            self._take(0, len(self._host))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.missing:
            self._look_at(args)
            self._look_at(kwargs.values())
        return func(*args, **kwargs)

    def _look_at(self, values: Iterable[Any]) -> None:
        for value in values:
            if isinstance(value, torch.Tensor):
                self._before(value)
            elif isinstance(value, (list, tuple)):
                self._look_at(value)

    def _before(self, tensor: torch.Tensor) -> None:
        if tensor.layout != torch.strided or tensor.numel() == 0 or tensor.untyped_storage().data_ptr() != self._storage:
            return
        first = tensor.storage_offset()
        last = first + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)) + 1
        if any(first < end and begin < last for begin, end in self.missing):
            self._take(first, last)
