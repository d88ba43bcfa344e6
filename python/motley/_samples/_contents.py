"""What samples consist of, in a few characters: compared between machines at join, and between epochs.

Integers, bytes, text, shapes and types are the same on all machines and go into a hash. Floating-point numbers are not: decoding and
vectorised arithmetic differ in the last bits. Of these there are four figures without a unit, which the coordinator compares to 1e-4
(src/wire/fingerprint.h); each array of a sample counts alike in them, however large its numbers are.
"""

import collections.abc
import dataclasses
import functools
import hashlib
import math
import random
from typing import Any

import torch

try:
    import numpy
except ImportError:  # torch works without
    numpy = None  # type: ignore[assignment]

FIGURES = 4  # mean, logarithm of the root mean square, two projections
UNIT = 1e-6
DEEPEST = 32
NOTHING = 1e-30  # a root mean square below is one of zeros


class Contents:
    """Of one sample. `text`: its hash and, where it has floating-point numbers, their figures in units of 1e-6."""

    def __init__(self, sample: Any):
        self._hash = hashlib.blake2b(digest_size=4)
        self._figures = [0.0] * FIGURES
        self._floats = 0
        self._above: set[int] = set()
        self._add(sample, 0)
        figures = ",".join(str(round(max(-1e12, min(1e12, figure / UNIT)))) for figure in self._figures)
        self.text = self._hash.hexdigest() + (f":{figures}" if self._floats else "")

    def _exact(self, *words: Any) -> None:
        for word in words:
            data = word if isinstance(word, bytes) else str(word).encode(errors="surrogatepass")
            self._hash.update(len(data).to_bytes(8, "little") + data)

    def _add(self, value: Any, depth: int) -> None:
        if depth > DEEPEST or id(value) in self._above:  # it contains itself
            return
        if isinstance(value, (type(None), bool, int, str, bytes, bytearray)):
            self._exact(type(value).__name__, bytes(value) if isinstance(value, bytearray) else value)
        elif isinstance(value, float):
            self._exact("float")
            self._add_floats(torch.tensor([value], dtype=torch.float64))
        elif isinstance(value, complex):
            self._add(torch.tensor(value, dtype=torch.complex128), depth + 1)
        elif isinstance(value, torch.Tensor):
            self._add_tensor(value.detach(), depth)
        elif numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
            self._add_array(numpy.asarray(value), depth)
        else:
            self._above.add(id(value))
            self._add_parts(value, depth)
            self._above.discard(id(value))

    def _add_parts(self, value: Any, depth: int) -> None:
        if isinstance(value, collections.abc.Mapping):
            self._exact("mapping", len(value))
            for key, each in value.items():
                self._add(key, depth + 1)
                self._add(each, depth + 1)
        elif isinstance(value, (list, tuple)):
            self._exact("sequence", len(value))
            if value and all(type(each) is float for each in value):
                self._add_floats(torch.tensor(value, dtype=torch.float64))
                return
            for each in value:
                self._add(each, depth + 1)
        elif isinstance(value, (set, frozenset)):
            self._exact("set", *sorted(map(repr, value)))
        elif hasattr(value, "tobytes") and hasattr(value, "mode") and hasattr(value, "size"):  # an image of PIL
            self._exact("image", value.mode, value.size, value.tobytes())
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            self._exact(type(value).__name__)
            for field in dataclasses.fields(value):
                self._add(getattr(value, field.name, None), depth + 1)
        else:
            self._exact(type(value).__name__)
            for name, each in sorted(getattr(value, "__dict__", {}).items()):
                if not callable(each):
                    self._exact(name)
                    self._add(each, depth + 1)

    def _add_tensor(self, tensor: torch.Tensor, depth: int) -> None:
        self._exact("tensor", tensor.dtype, list(tensor.shape))
        if tensor.is_quantized or tensor.is_nested:
            return
        if tensor.layout != torch.strided:
            tensor = tensor.to_dense()
        if tensor.is_complex():
            tensor = torch.view_as_real(tensor.resolve_conj())
        if tensor.is_floating_point():
            self._add_floats(tensor.cpu().double().reshape(-1))
        else:
            flat = tensor.cpu().contiguous().reshape(-1)
            self._hash.update(flat.view(torch.uint8).numpy().tobytes() if numpy is not None else str(flat.tolist()).encode())

    def _add_array(self, array: Any, depth: int) -> None:
        self._exact("array", array.dtype.str, list(array.shape))
        if array.dtype.kind in "fc":
            wide = array.astype(numpy.complex128 if array.dtype.kind == "c" else numpy.float64)
            self._add_floats(torch.from_numpy(numpy.ascontiguousarray(wide).reshape(-1).view(numpy.float64).copy()))
        elif array.dtype.kind == "O":
            self._add(array.tolist(), depth + 1)
        else:
            self._hash.update(numpy.ascontiguousarray(array).tobytes())

    def _add_floats(self, flat: torch.Tensor) -> None:
        """`flat`: float64 [N]."""
        if flat.numel() == 0:
            return
        largest = float(flat.abs().max())
        if not math.isfinite(largest):  # which are not numbers is exact
            finite = torch.isfinite(flat)
            self._exact("not finite", str(torch.nonzero(~finite).reshape(-1).tolist()), str(flat[~finite].tolist()))
            flat = torch.where(finite, flat, 0.0)
            largest = float(flat.abs().max())
        scaled = flat / largest if largest > NOTHING else flat * 0
        root = float(torch.linalg.vector_norm(scaled)) / math.sqrt(flat.numel())
        self._floats += 1
        if root > 0:
            mean, *projections = (_rows(flat.numel()) @ scaled).tolist()
            weight = _weight(self._floats)
            for figure, value in enumerate((mean / root, math.log(root * largest), *(each / root for each in projections))):
                self._figures[figure] += weight * value


@functools.lru_cache(maxsize=64)
def _weight(number: int) -> float:
    """Of an array, so that two of a sample cannot change places unnoticed."""
    return random.Random(number).uniform(0.5, 1.5)


@functools.lru_cache(maxsize=4)
def _rows(count: int) -> torch.Tensor:
    """float64 [3, count]: by which the mean and two projections are taken."""
    mean = torch.full((count,), 1 / count, dtype=torch.float64)
    return torch.stack([mean, *(_direction(count, which) / math.sqrt(count) for which in (0, 1))])


def _direction(count: int, which: int) -> torch.Tensor:
    """`count` numbers between -1 and 1, the same ones on every machine."""
    data = torch.frombuffer(bytearray(random.Random(2 * count + which).randbytes(count)), dtype=torch.uint8)
    return data.double() / 127.5 - 1
