"""Plain data of a script as bytes that run no code when they are read, and back exactly: unlike `state`, which travels, with tuples, sets,
arrays and keys of any kind."""

import base64
import collections
import json
import struct
from collections.abc import Callable
from typing import Any

import torch

from motley import _state
from motley._runs._epoch import Epoch

try:
    import numpy
except ImportError:  # torch works without
    numpy = None  # type: ignore[assignment]

DEPTH_MAX = 32
BYTES_MAX = 16 << 20  # of the tensors and arrays in a value
# With the letter that stands before their items.
SEQUENCES = {"l": list, "t": tuple, "s": set, "f": frozenset}
MAPPINGS: dict[str, type] = {"d": dict, "o": collections.OrderedDict, "c": collections.Counter}


class Unkept(Exception):
    """Not plain data, or too much of it."""


def pack(value: Any, most: int = BYTES_MAX) -> bytes:
    """Errors: Unkept."""
    blobs = _Blobs(most)
    tree = json.dumps(_plain(value, blobs, 0), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return b"".join([struct.pack("<Q", len(tree)), tree, *blobs.all])


def unpack(packed: bytes) -> Any:
    """Errors: ValueError and the like, of bytes that pack() did not make."""
    (size,) = struct.unpack_from("<Q", packed)
    body, taken = memoryview(packed)[8 + size :], [0]

    def take(count: int) -> bytearray:
        piece = bytearray(body[taken[0] : taken[0] + count])
        taken[0] += count
        return piece

    return _whole(json.loads(packed[8 : 8 + size].decode("utf-8", "surrogatepass")), take)


class _Blobs:
    def __init__(self, most: int):
        self.all, self._left = list[bytes](), most

    def room(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise Unkept


def _plain(value: Any, blobs: _Blobs, depth: int) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if depth > DEPTH_MAX:
        raise Unkept
    if (letter := _SEQUENCE_LETTERS.get(kind)) is not None:
        return [letter, *(_plain(each, blobs, depth + 1) for each in value)]
    if (letter := _MAPPING_LETTERS.get(kind)) is not None:
        return [letter, *([_plain(key, blobs, depth + 1), _plain(each, blobs, depth + 1)] for key, each in value.items())]
    if kind is collections.deque:
        return ["q", value.maxlen, *(_plain(each, blobs, depth + 1) for each in value)]
    if kind is collections.defaultdict:
        return _plain(dict(value), blobs, depth)
    if kind is Epoch:
        return ["E", _plain(vars(value), blobs, depth + 1)]
    if kind is complex:
        return ["z", value.real, value.imag]
    if kind is bytes:
        return ["b", base64.b64encode(value).decode()]
    if kind in (torch.Tensor, torch.nn.Parameter):
        return _tensor(value, blobs)
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)) and type(value).__module__ == "numpy":
        if value.dtype.hasobject:
            raise Unkept
        blobs.room(value.nbytes)
        blobs.all.append(value.tobytes())
        return ["n" if isinstance(value, numpy.ndarray) else "g", value.dtype.str, list(value.shape), value.nbytes]
    raise Unkept


def _tensor(value: torch.Tensor, blobs: _Blobs) -> Any:
    name = str(value.dtype).removeprefix("torch.")
    if value.layout != torch.strided or name not in _state.DTYPES or value.device.type == "meta":
        raise Unkept
    blobs.room(value.numel() * value.element_size())
    there = value.detach().cpu().contiguous()
    blobs.all.append(bytes(there.reshape(-1).view(torch.uint8).numpy()) if there.numel() else b"")
    return ["T", name, list(value.shape), str(value.device), value.requires_grad]


def _whole(tree: Any, take: Callable[[int], bytearray]) -> Any:
    if not isinstance(tree, list):
        return tree
    letter, *rest = tree
    if letter in SEQUENCES:
        return SEQUENCES[letter](_whole(each, take) for each in rest)
    if letter in MAPPINGS:
        made = MAPPINGS[letter]()
        for key, each in rest:
            key = _whole(key, take)
            made[key] = _whole(each, take)
        return made
    if letter == "q":
        return collections.deque((_whole(each, take) for each in rest[1:]), rest[0])
    if letter == "E":
        return Epoch.of(_whole(rest[0], take))
    if letter == "z":
        return complex(*rest)
    if letter == "b":
        return base64.b64decode(rest[0])
    if letter == "T":
        return _tensor_of(*rest, take)
    if letter in ("n", "g"):
        array = numpy.frombuffer(take(rest[2]), dtype=numpy.dtype(rest[0])).reshape(rest[1])
        return array if letter == "n" else array[()]
    raise ValueError(letter)


def _tensor_of(name: str, shape: list[int], device: str, requires_grad: bool, take: Callable[[int], bytearray]) -> torch.Tensor:
    dtype, count = _state.DTYPES[name], 1
    for extent in shape:
        count *= extent
    piece = take(count * dtype.itemsize)
    tensor = (torch.frombuffer(piece, dtype=dtype) if count else torch.empty(0, dtype=dtype)).reshape(shape)
    return tensor.to(device).requires_grad_(requires_grad)


_SEQUENCE_LETTERS = {kind: letter for letter, kind in SEQUENCES.items()}
_MAPPING_LETTERS = {kind: letter for letter, kind in MAPPINGS.items()}
