"""What the body of an epoch hands to the loss on every machine: numbers, words and tensors, as bytes that run no code when read."""

import contextlib
import json
import struct
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils import data

from motley import _core
from motley._errors import Error

BYTES_MAX = 16 << 20
DEPTH_MAX = 8
DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
    torch.bool)}
TENSOR = "\0tensor"  # the one key of what stands for a tensor
DATA = "\0data"  # under which the tensors of HeadTensors travel


def encode(state: Mapping[str, Any] | None) -> bytes:
    """Errors: what is no number, word, list, dictionary or tensor; too much of it."""
    if not state:
        return b""
    tensors: list[torch.Tensor] = []
    tree = json.dumps(_plain(dict(state), "state", tensors, 0), ensure_ascii=False).encode()
    parts = [struct.pack("<Q", len(tree)), tree]
    parts += [bytes(tensor.reshape(-1).view(torch.uint8).numpy()) for tensor in tensors if tensor.numel()]
    packed = b"".join(parts)
    if len(packed) > BYTES_MAX:
        raise Error(f"state: it has {len(packed) >> 20} MiB, and at most {BYTES_MAX >> 20} MiB travel with an epoch", "keep less in it")
    return packed


def _plain(value: Any, path: str, tensors: list[torch.Tensor], depth: int) -> Any:
    if depth > DEPTH_MAX:
        raise Error(f"{path}: nested too deeply", "a flatter dictionary")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.Tensor) and str(value.dtype).removeprefix("torch.") in DTYPES:
        tensors.append(value.detach().cpu().contiguous())
        return {TENSOR: [str(value.dtype).removeprefix("torch."), *value.shape]}
    if isinstance(value, (list, tuple)):
        return [_plain(each, f"{path}[{number}]", tensors, depth + 1) for number, each in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(each, f"{path}[{key!r}]", tensors, depth + 1) for key, each in value.items()}
    raise Error(f"{path}: {type(value).__name__} does not travel to other machines", "numbers, strings, lists, dictionaries and tensors do")


def decode(packed: bytes) -> Mapping[str, Any]:
    """What encode() took, read-only. Errors: bytes that it did not make."""
    if not packed:
        return types.MappingProxyType({})
    try:
        (size,) = struct.unpack_from("<Q", packed)
        body = memoryview(packed)[8 + size :]
        taken = [0]
        found = _whole(json.loads(packed[8 : 8 + size]), body, taken)
        if taken[0] != len(body) or not isinstance(found, dict):
            raise ValueError
    except (ValueError, struct.error, KeyError, TypeError, RuntimeError, RecursionError):
        raise Error("the state that the head sent is damaged", "the same version of Motley on both machines", "protocol") from None
    return types.MappingProxyType(found)


def _whole(tree: Any, body: memoryview, taken: list[int]) -> Any:
    if isinstance(tree, list):
        return [_whole(each, body, taken) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if set(tree) != {TENSOR}:
        return {key: _whole(each, body, taken) for key, each in tree.items()}
    name, *shape = tree[TENSOR]
    dtype = DTYPES[name]
    size = dtype.itemsize
    for extent in shape:
        if not isinstance(extent, int) or extent < 0:
            raise ValueError
        size *= extent
    if size > len(body) - taken[0]:
        raise ValueError
    piece = bytearray(body[taken[0] : taken[0] + size])
    taken[0] += size
    return (torch.frombuffer(piece, dtype=dtype) if piece else torch.empty(0, dtype=dtype)).reshape(shape)


def of_script(whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the loss gets of it."""
    return types.MappingProxyType({key: value for key, value in whole.items() if not key.startswith("\0")})


def replace(state: dict[str, Any], values: Mapping[str, Any]) -> None:
    """In place: who has got hold of run.state keeps it. What is read meanwhile has some value all the time."""
    state.update(values)
    for name in [name for name in state if name not in values]:
        del state[name]


class OfRun:
    """The attribute `state`, a dictionary: another one that is put there gives it its values."""

    def __get__(self, run: Any, kind: type) -> dict[str, Any]:
        values: dict[str, Any] = run.__dict__.setdefault("state", {})
        return values

    def __set__(self, run: Any, values: Mapping[str, Any]) -> None:
        replace(self.__get__(run, type(run)), dict(values))


@contextlib.contextmanager
def shown(state: dict[str, Any], values: Mapping[str, Any]) -> Iterator[None]:
    """Meanwhile run.state has these."""
    before = dict(state)
    replace(state, values)
    try:
        yield
    finally:
        replace(state, before)


class Followed:
    """run.state in a worker: what the loss, the data set and whatever else reads it by the run itself finds there is what the head sent."""

    def __init__(self, state: dict[str, Any]):
        self._state = state
        self._number: int | None = None
        self._one_by_one = threading.Lock()  # devices have a thread each

    def take(self, number: int, values: Mapping[str, Any]) -> None:
        with self._one_by_one:
            if number not in (0, self._number):  # 0: there is none
                replace(self._state, values)
                self._number = number


class Decoded:
    """The state of tasks, decoded once each time that it is another. take(state): has what is not the script's. `followed`: see there.
    first: what the script itself begins with, encoded; passes that are tried before any has come get that."""

    def __init__(self, take: Callable[[Mapping[str, Any]], None] | None = None, followed: Followed | None = None,
                 first: bytes = b"") -> None:
        self._take, self._followed, self._first = take, followed, of_script(decode(first))
        self._number: int | None = None
        self._value: Mapping[str, Any] = types.MappingProxyType({})

    def of(self, task: _core.Task) -> Mapping[str, Any]:
        if task.state_number == 0:
            return self._first
        if self._number != task.state_number:
            whole = decode(task.state)
            for number, tensors in enumerate(whole.get(DATA, [])):
                HeadTensors.made[number].take(tensors)
            if self._take is not None:
                self._take(whole)
            self._value = of_script(whole)
            if self._followed is not None:
                self._followed.take(task.state_number, self._value)
            self._number = task.state_number
        return self._value


class HeadTensors(data.Dataset[Any]):
    """A data set of tensors that the head's script replaces in the body of an epoch: episodes, a replay buffer, samples drawn anew. They
    travel to the other machines; their number stays. Only with num_workers=0.

        episodes = motley.HeadTensors(observations, returns)
        for epoch in run.epochs(50):
            episodes.replace(*play(model))
    """

    made: list["HeadTensors"] = []  # in the script's order, which is the same on every machine

    def __init__(self, *tensors: torch.Tensor):
        self.tensors = tensors
        if not tensors or any(len(tensor) != len(tensors[0]) for tensor in tensors):
            raise Error("HeadTensors: expected tensors of equal length", "motley.HeadTensors(x, y)")
        HeadTensors.made.append(self)

    def __len__(self) -> int:
        return len(self.tensors[0])

    def __getitem__(self, number: int) -> tuple[torch.Tensor, ...]:
        return tuple(tensor[number] for tensor in self.tensors)

    def replace(self, *tensors: torch.Tensor) -> None:
        """In the body of an epoch: the samples from the next step on, of the same shapes and types."""
        here = [(tensor.shape, tensor.dtype) for tensor in self.tensors]
        there = [(tensor.shape, tensor.dtype) for tensor in tensors]
        if here != there:
            raise Error(f"HeadTensors: expected {_words(here)}, found {_words(there)}",
                        "the same number of samples, shapes and types each time")
        self.tensors = tuple(tensor.detach().clone() for tensor in tensors)

    def take(self, tensors: list[torch.Tensor]) -> None:
        self.tensors = tuple(tensors)


def _words(kinds: list[Any]) -> str:
    return ", ".join(f"{str(dtype).removeprefix('torch.')} {list(shape)}" for shape, dtype in kinds)
