"""Arrays that a data set holds, all of their rows in a few numbers: compared between machines at join.

Of each array there are two sums over its blocks of rows, S0 = Σ h and S1 = Σ (number + 1) · h modulo a prime, where h is the hash of a
block. Where one block alone is another there, the quotient of the differences is its number, and so the sample has a name
(src/wire/fingerprint.h). Floating-point numbers that were computed differ between machines in their last bits, so of these there are four
random projections besides.
"""

import hashlib
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import data

from motley._samples import _shards

try:
    import numpy
except ImportError:  # torch works without
    numpy = None  # type: ignore[assignment]

PRIME = (1 << 32) - 5
BLOCKS_MAX = 1 << 16  # of an array
BYTES_MAX = 192 << 20  # of an array that are hashed; of more, blocks at equal distances
SMALL_BYTES_MAX = 16 << 20  # of an array that is hashed beside a large one, however large that is
MAPPED_BYTES_MAX = 16 << 20  # where they lie on a disk
ARRAYS_MAX = 8
FIGURES = 4
UNIT = 1e-6
CHUNK_BYTES = 4 << 20
KINDS = "biufcSUmM"  # of numpy's types, those whose bytes are their contents


@dataclass
class Array:
    name: str
    rows: Any  # a tensor, or an array of numpy
    numbers: list[int] | None  # which of its rows, by sample; None: all

    def at(self, numbers: slice | list[int]) -> Any:
        if self.numbers is not None:
            numbers = self.numbers[numbers] if isinstance(numbers, slice) else [self.numbers[number] for number in numbers]
        return self.rows[numbers]

    def __len__(self) -> int:
        return len(self.rows) if self.numbers is None else len(self.numbers)


def arrays_of(dataset: Any) -> list[Array]:
    """Those with a row for each sample: of a TensorDataset, and attributes (`data`, `targets`, x, y …) of any other map-style set. Of one
    that is none of torch's, nothing is known."""
    numbers: list[int] | None = None
    while type(dataset) is data.Subset:
        chosen = [int(index) for index in dataset.indices]
        numbers = chosen if numbers is None else [chosen[number] for number in numbers]
        dataset = dataset.dataset
    if type(dataset) is data.TensorDataset:
        held = {f"tensors[{number}]": tensor for number, tensor in enumerate(dataset.tensors)}
    elif isinstance(dataset, data.Dataset) and hasattr(dataset, "__len__") and not isinstance(dataset, _shards.Shards):
        held = {name: value for name, value in sorted(getattr(dataset, "__dict__", {}).items()) if name.isascii() and name.isidentifier()}
    else:
        return []
    size = len(dataset)
    found = []
    for name, value in held.items():
        if (rows := _rows(value, size)) is not None:
            found.append(Array(name[:32], rows, numbers))
    return found[:ARRAYS_MAX]


def _rows(value: Any, size: int) -> Any:
    if isinstance(value, torch.Tensor):
        usable = value.layout == torch.strided and value.device.type == "cpu" and not value.is_quantized
        return value.detach() if usable and value.dim() > 0 and len(value) == size and value.numel() else None
    if numpy is None:
        return None
    if isinstance(value, numpy.ndarray):
        return value if value.dtype.kind in KINDS and value.ndim > 0 and len(value) == size and value.size else None
    if isinstance(value, (list, tuple)) and len(value) == size and value:
        if all(type(each) is int and -(1 << 63) <= each < 1 << 63 for each in value):
            return numpy.asarray(value, dtype=numpy.int64)
        if all(type(each) is float for each in value):
            return numpy.asarray(value, dtype=numpy.float64)
    return None


class Watched:
    """Arrays, some of whose rows are looked at before and after samples are read: what reading changes is a cache, and no data."""

    def __init__(self, dataset: Any, numbers: list[int]):
        """`numbers`: of the samples in the data set that are read meanwhile."""
        self._numbers = numbers
        self._before = [(array, _digest(array, numbers)) for array in arrays_of(dataset)]

    def words(self) -> str:
        """Of the arrays that are as they were: words for a fingerprint."""
        kept = [array for array, before in self._before if _digest(array, self._numbers) == before]
        large = sum(size for array in kept if (size := _row_bytes(array) * len(array)) > SMALL_BYTES_MAX)
        return " ".join(_word(array, large) for array in kept)


def _digest(array: Array, numbers: list[int]) -> bytes:
    return hashlib.blake2b(_bytes(array.at(numbers)).tobytes()).digest()


def _word(array: Array, large: int) -> str:
    """NAME=KIND,ROWS,STEP:S0:S1, with the figures behind it where it has floating-point numbers. A block has ROWS rows; they begin STEP
    rows from each other. `large`: bytes of all arrays that are not small."""
    size = len(array)
    kind = f"{str(array.rows.dtype).removeprefix('torch.')}[{'x'.join(map(str, (size, *array.rows.shape[1:])))}]"
    rows = -(-size // BLOCKS_MAX)
    most = MAPPED_BYTES_MAX if numpy is not None and isinstance(array.rows, numpy.memmap) else BYTES_MAX
    step = rows if _row_bytes(array) * size <= SMALL_BYTES_MAX else rows * max(1, -(-large // most))
    sums, figures = [0, 0], _Figures(array)
    for number, hashes, chunk in _chunks(array, rows, step, figures.wanted):
        sums[0] += sum(hashes)
        sums[1] += sum((number + place + 1) * each for place, each in enumerate(hashes))
        figures.add(number * step, chunk)
    return f"{array.name}={kind},{rows},{step}:{sums[0] % PRIME:x}:{sums[1] % PRIME:x}{figures.text()}"


def _chunks(array: Array, rows: int, step: int, wanted: bool) -> Iterator[tuple[int, list[int], Any]]:
    """(number of the first block, hashes of the blocks, their rows where these are `wanted`)."""
    size, row_bytes = len(array), _row_bytes(array)
    at_once = max(1, CHUNK_BYTES // max(1, row_bytes * rows))
    blocks = -(-size // step)
    for first in range(0, blocks, at_once):
        last = min(blocks, first + at_once)
        if rows == step:
            picked: Any = slice(first * step, min(size, last * step))
        else:
            picked = [row for block in range(first, last) for row in range(block * step, min(size, block * step + rows))]
        chunk = array.at(picked)
        flat, width = memoryview(_bytes(chunk)), row_bytes * rows
        hash_of, number_of = hashlib.sha256, int.from_bytes  # for which processors have instructions
        hashes = [number_of(hash_of(flat[at : at + width]).digest()[:8], "little") % PRIME for at in range(0, len(flat), width)]
        yield first, hashes, chunk if wanted else None


class _Figures:
    """Projections Σ u(row) · (v · row) / root mean square of all: random numbers, the same ones on every machine. Rounding adds to such a
    sum as the root of the number of rows, another sample by about its own size."""

    def __init__(self, array: Array):
        first = array.rows[:1]
        self._kind = torch.from_numpy(first).dtype if not isinstance(first, torch.Tensor) and first.dtype.kind in "fc" else \
            first.dtype if isinstance(first, torch.Tensor) else torch.int64
        self.wanted = self._kind.is_floating_point or self._kind.is_complex
        self._sums = torch.zeros(FIGURES, dtype=torch.float64)
        self._square, self._count, self._number = 0.0, 0, 0
        if self.wanted:
            self._width = math.prod(first.shape[1:]) * (2 if self._kind.is_complex else 1)
            self._row = _uniform("row", self._width * FIGURES).reshape(self._width, FIGURES).float() / math.sqrt(max(1, self._width))

    def add(self, first: int, chunk: Any) -> None:
        if not self.wanted:
            return
        values = chunk if isinstance(chunk, torch.Tensor) else torch.from_numpy(numpy.ascontiguousarray(chunk))
        values = torch.view_as_real(values.resolve_conj()) if values.is_complex() else values
        flat = values.reshape(len(chunk), -1).float()
        flat = flat.nan_to_num(0.0, 0.0, 0.0)
        self._square += float((torch.linalg.vector_norm(flat, dim=1).double() ** 2).sum())
        self._count += flat.numel()
        factors = _uniform(f"chunk {first}", len(chunk) * FIGURES).reshape(len(chunk), FIGURES)
        self._sums += ((flat @ self._row).double() * factors).sum(0)

    def text(self) -> str:
        """In millionths."""
        if not self.wanted:
            return ""
        root = math.sqrt(self._square / self._count) if self._count else 0.0
        scaled = [0.0 if root == 0 or not math.isfinite(root) else each / root for each in self._sums.tolist()]
        return ":" + ",".join(str(round(max(-1e12, min(1e12, each / UNIT)))) for each in (*scaled, math.log(root) if root > 0 else 0.0))


def _uniform(name: str, count: int) -> torch.Tensor:
    """float64 [count], between -1 and 1."""
    stream = random.Random(f"motley {name}").randbytes(2 * count)
    return torch.frombuffer(bytearray(stream), dtype=torch.int16).double() / 32768


def _bytes(rows: Any) -> Any:
    """uint8 [bytes]."""
    if isinstance(rows, torch.Tensor):
        return rows.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8).numpy()
    return numpy.ascontiguousarray(rows).reshape(-1).view(numpy.uint8)


def _row_bytes(array: Array) -> int:
    size = array.rows.element_size() if isinstance(array.rows, torch.Tensor) else array.rows.dtype.itemsize
    return int(math.prod(array.rows.shape[1:]) * size)
