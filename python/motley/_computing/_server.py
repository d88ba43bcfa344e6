"""Steps of which the head's device makes sums and updates while others contribute, as include/motley/device_server.h says."""

import contextlib
import weakref
from typing import NamedTuple

import torch

from motley import _core
from motley._computing import _device_optimizer
from motley._errors import Error
from motley._machines import _devices
from motley._models import _binding, _model, _statistics

VECTORS = 6  # of the model's size: weights, two of an optimizer, a sum, a gradient that is kept, what others send
FP32, BF16, INT8, INT4 = range(4)  # codecs: docs/formats/wire.md
BLOCKS = {INT8: (256, 256), INT4: (64, 32)}  # elements of a block, and bytes of their codes
ALIGNED = 16


class ServerVectors(NamedTuple):
    """What a DeviceOptimizer works on: flat vectors on the device, and one of the host by which they come and go."""

    device_weights: torch.Tensor
    device_gradients: torch.Tensor
    weights: torch.Tensor
    gradients: torch.Tensor
    statistics: _statistics.Statistics


class Server:
    """What python/core/python_server.h asks for. Beside what computes: its weights and sums are vectors of its own. Everything is in the
    order of the device's own stream, but for what others sent, which has a stream to itself."""

    def __init__(self, layout: _core.Layout, names: list[_model.Named], bound: _binding.Binding):
        self._layout, self._names, self._bound = layout, names, bound
        self._device = bound.device_weights.device
        self._chunks: list[tuple[int, int]] = []  # offset, elements
        self._place: ServerVectors | None = None
        self._scales: torch.Tensor | None = None  # by the byte that stands for each
        self._staging = torch.empty(0, dtype=torch.uint8)
        self._way = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
        self._kept: weakref.WeakValueDictionary[int, torch.Tensor] = weakref.WeakValueDictionary()
        self.host: torch.Tensor | None = None
        self.device_optimizer: _device_optimizer.DeviceOptimizer | None = None
        self.up = self.down = 0  # bytes that crossed

    def open(self, chunks: list[tuple[int, int]]) -> None:
        """Takes the memory. Raises: there is no room."""
        like = self._bound.device_weights
        if not _devices.has_room(self._device, VECTORS // 2 * like.nbytes):
            raise Error(f"{self._device} has no room for {VECTORS} times the model")
        self._chunks = chunks
        if self.host is None:
            self.host = _model.vector(len(like), pinned=self._way is not None)
        weights, sums = torch.zeros_like(like), torch.zeros_like(like)
        self._place = ServerVectors(weights, sums, self.host, self.host, self._statistics(weights, sums))
        self.device_optimizer = _device_optimizer.DeviceOptimizer(self._layout, self._names, self._place)
        self.up += weights.nbytes  # and each vector of the optimizer: settle() copies them

    def _statistics(self, weights: torch.Tensor, sums: torch.Tensor) -> _statistics.Statistics:
        layers, momenta = [], []
        now, found = (_model.pieces(self._layout, self._names, flat) for flat in (weights, sums))
        for at, (named, mean) in enumerate(now):
            if named.kind == _model.RUNNING_MEAN:
                var, mean_sum, var_sum = now[at + 1][1], found[at][1], found[at + 1][1]
                layers.append(_statistics.Layer(mean, var, mean, var, mean_sum, var_sum))
                momenta.append(named.momentum)
        return _statistics.Statistics(layers, momenta)

    def leave(self) -> None:
        self._place = self.device_optimizer = None

    def show(self, weights: torch.Tensor) -> None:
        """Its weights, for a task."""
        if (place := self._place) is not None:
            weights.copy_(place.device_weights)

    def keep(self) -> tuple[torch.Tensor, int, list[float]]:
        """A copy of the gradient of the task before, where it lies, and the largest magnitude of each chunk: infinite where one is not
        finite."""
        kept = self._bound.device_gradients.clone()
        self._kept[kept.data_ptr()] = kept
        largest = torch.stack(torch._foreach_norm([kept.narrow(0, *chunk) for chunk in self._chunks], torch.inf))
        return kept, kept.data_ptr(), largest.nan_to_num(torch.inf, torch.inf).tolist()

    def sum(self, chunks: list[list[tuple[int, int | memoryview]]]) -> None:
        """chunks: the parts of each, in their order: (codec, what was kept, or bytes of the host)."""
        assert self._place is not None
        with torch.cuda.device(self._device) if self._way is not None else contextlib.nullcontext():
            sent = iter(self._sent([part for parts in chunks for _, part in parts if isinstance(part, memoryview)]))
            values = [[self._decoded(codec, next(sent), chunk[1]) if isinstance(part, memoryview) else self._kept[part].narrow(0, *chunk)
                       for codec, part in parts]
                      for chunk, parts in zip(self._chunks, chunks, strict=True)]
            sums = [self._place.device_gradients.narrow(0, *chunk) for chunk in self._chunks]
            for number in range(max(map(len, values))):
                those = [(into, parts[number]) for into, parts in zip(sums, values, strict=True) if number < len(parts)]
                into, found = (list(column) for column in zip(*those, strict=True))
                (torch._foreach_add_ if number else torch._foreach_copy_)(into, found)

    def _decoded(self, codec: int, sent: torch.Tensor, elements: int) -> torch.Tensor:
        if codec in (FP32, BF16):
            return sent.view(torch.float32 if codec == FP32 else torch.bfloat16)
        size, code_bytes = BLOCKS[codec]
        blocks = -(-elements // size)
        if self._scales is None:
            self._scales = torch.tensor([2.0**(byte // 2 - 64) * (1.5 if byte % 2 else 1) for byte in range(256)], dtype=torch.float32,
                                        device=self._device)
        codes = sent[blocks:].view(blocks, code_bytes)
        numbers = codes.view(torch.int8) if codec == INT8 else torch.cat([codes & 15, codes >> 4], 1).to(torch.int8) - 8
        return (numbers * self._scales[sent[:blocks].int()][:, None]).view(-1)[:elements]

    def _sent(self, parts: list[memoryview]) -> list[torch.Tensor]:
        """Their bytes on the device: all of them in one copy."""
        places, end = [], 0
        for part in parts:
            places.append((end, part.nbytes))
            end += -(-part.nbytes // ALIGNED) * ALIGNED
        if not parts:
            return []
        if len(self._staging) < end:
            self._staging = torch.empty(end, dtype=torch.uint8, pin_memory=self._way is not None)
        for (first, count), part in zip(places, parts, strict=True):
            self._staging[first:first + count].copy_(torch.frombuffer(part, dtype=torch.uint8))
        there = torch.empty(end, dtype=torch.uint8, device=self._device)
        if self._way is None:
            there.copy_(self._staging[:end])
        else:
            here = torch.cuda.current_stream(self._device)
            self._way.wait_stream(here)  # the memory may be of what is still being read
            with torch.cuda.stream(self._way):
                there.copy_(self._staging[:end], non_blocking=True)
            here.wait_stream(self._way)
        self.up += sum(count for _, count in places)
        return [there[first:first + count] for first, count in places]

    def download(self) -> None:
        """Its weights, to `host`."""
        assert self._place is not None and self.device_optimizer is not None
        self.device_optimizer.get_weights(False)
        self.down += self._place.weights.nbytes

    def fetch(self, address: int, elements: int) -> None:
        """What lies there of what was kept, to the beginning of `host`."""
        assert self.host is not None
        all_kept = (each for each in (reference() for reference in self._kept.valuerefs()) if each is not None)
        kept = next(each for each in all_kept if each.data_ptr() <= address < each.data_ptr() + each.nbytes)
        self.host[:elements].copy_(kept.narrow(0, (address - kept.data_ptr()) // 4, elements))
        self.down += elements * 4
