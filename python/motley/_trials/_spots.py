"""Things that may change beside a training, each as it was: names, items, cells, tensors, arrays and generators."""

import contextlib
import contextvars
import functools
import itertools
import operator
import random
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

try:
    import numpy
except ImportError:  # torch works without
    numpy = None  # type: ignore[assignment]

ITEMS_MAX = 256  # of a container whose items are looked at one by one
SOME = 64  # elements of a tensor that are compared where it is not kept
WHOLE_MAX, ROUGHLY = 1 << 14, 1 << 11  # elements of a NumPy array that is compared as a whole; those of a larger one that are compared
PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size)
MISSING = object()
INSIDE_MAX, INSIDE_NAMES = 1 << 16, 32  # bytes of an object's memory; names of its attributes
READ = (types.MemberDescriptorType, types.GetSetDescriptorType)


@dataclass
class Change:
    """what: in words, e.g. "the global KL". now: comparable with that of another change of the same thing. put_back: undoes it."""

    what: str
    now: Any
    put_back: Callable[[], None]
    key: Any = None  # of the thing


class Spot:
    """Something that may change, as it was."""

    def __init__(self, owner: Any, what: str):
        self.owner, self.what = owner, what

    def is_same(self) -> bool:
        """Whether it is quickly seen that nothing changed."""
        return False

    def changes(self) -> Iterator[Change]:
        raise NotImplementedError


class Named(Spot):
    """Values under names: attributes, globals, items of a mapping."""

    def __init__(self, owner: Any, what: str, values: Any, names: Callable[[], list[Any]]):
        super().__init__(owner, what)
        self._values, self._names = values, names
        self._before = {name: values.get(name, MISSING) for name in names()}
        self._keys = frozenset(values) if len(values) <= ITEMS_MAX else None
        own = getattr(owner, "__dict__", None) is values and not isinstance(owner, types.ModuleType)  # globals change beside a training
        self.whole = (values, self._keys, list(values.values())) if own and self._keys is not None else None

    def is_same(self) -> bool:
        values = self._values
        if values.keys() != self._keys:
            return False
        for name, before in self._before.items():
            if values.get(name, MISSING) is not before:
                return False
        return True

    def changes(self) -> Iterator[Change]:
        for name in dict.fromkeys([*self._before, *self._names()]):
            before, now = self._before.get(name, MISSING), self._values.get(name, MISSING)
            if now is not before and not _equal(before, now):
                yield Change(self.what.format(name), copied(now), functools.partial(self._put_back, name, before), (id(self._values), name))

    def _put_back(self, name: Any, value: Any) -> None:
        if value is MISSING:
            self._values.pop(name, None)
        else:
            self._values[name] = value


class Slots:
    """Of an object what its classes declare in __slots__, by name, as a mapping."""

    def __init__(self, owner: Any):
        self._owner = owner
        self._names = [name for kind in type(owner).__mro__ for name, each in kind.__dict__.items()
                       if isinstance(each, types.MemberDescriptorType)]

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def keys(self) -> list[str]:
        return self._names

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self._owner, name, default)

    def pop(self, name: str, default: Any = None) -> None:
        object.__delattr__(self._owner, name)

    def __setitem__(self, name: str, value: Any) -> None:
        object.__setattr__(self._owner, name, value)  # also of a frozen data class


class Inside:
    """An object of a library's, as far as one can look into it: attributes, memory, what a ContextVar has here."""

    def __init__(self, owner: Any, what: str):
        self._owner, self.what = owner, f"{what} ({type(owner).__name__})"
        self._before = _inside(owner)

    def is_other(self) -> bool:
        return bool(_inside(self._owner) != self._before)


def _inside(value: Any, depth: int = 0) -> Any:
    if isinstance(value, PLAIN):
        return value
    try:
        if isinstance(value, contextvars.ContextVar):
            return _inside(value.get(None), depth + 1)
        with contextlib.suppress(TypeError), memoryview(value) as memory:
            return memory.tobytes() if memory.nbytes <= INSIDE_MAX else None
        if depth >= 2:
            return type(value)
        names = [*getattr(value, "__dict__", ())] + [
            name for kind in type(value).__mro__ for name, each in kind.__dict__.items() if isinstance(each, READ)]
        return [(name, _inside(getattr(value, name, None), depth + 1)) for name in names[:INSIDE_NAMES]]
    except Exception:  # closed, or of another thread
        return None


class Untouched:
    """Of several spots those that are dictionaries, looked at all at once: nothing was put into any of them."""

    def __init__(self, spots: list[Spot]):
        whole = [(spot, spot.whole) for spot in spots if isinstance(spot, Named) and spot.whole is not None]
        self._spots = {id(spot) for spot, _ in whole}
        self._mappings = [values for _, (values, _, _) in whole]
        self._keys = [keys for _, (_, keys, _) in whole]
        self._values = [value for _, (_, _, values) in whole for value in values]

    def __call__(self) -> bool:
        return (all(map(operator.eq, map(dict.keys, self._mappings), self._keys)) and
                all(map(operator.is_, itertools.chain.from_iterable(map(dict.values, self._mappings)), self._values)))

    def __contains__(self, spot: Spot) -> bool:
        return id(spot) in self._spots


class OfClass(Named):
    """Attributes of a class, which only setattr() can put back."""

    def __init__(self, owner: type, names: list[str]):
        super().__init__(owner, f"{owner.__name__}.{{}}", owner.__dict__, lambda: names)

    def _put_back(self, name: Any, value: Any) -> None:
        if value is not MISSING:
            setattr(self.owner, name, value)


class Items(Spot):
    def __init__(self, owner: Any, what: str):
        super().__init__(owner, what)
        self._before = list(owner)

    def changes(self) -> Iterator[Change]:
        now = list(self.owner)
        if len(now) != len(self._before) or any(a is not b and not _equal(a, b) for a, b in zip(now, self._before, strict=True)):
            yield Change(self.what, [copied(each) for each in now], self._put_back, id(self.owner))

    def _put_back(self) -> None:
        self.owner.clear()
        (self.owner.update if isinstance(self.owner, set) else self.owner.extend)(self._before)


class Cell(Spot):
    def __init__(self, owner: Any, what: str):
        super().__init__(owner, what)
        self._before = owner.cell_contents

    def changes(self) -> Iterator[Change]:
        now = self.owner.cell_contents
        if now is not self._before and not _equal(self._before, now):
            yield Change(self.what, copied(now), self._put_back, id(self.owner))

    def _put_back(self) -> None:
        self.owner.cell_contents = self._before


class Tensor(Spot):
    def __init__(self, owner: torch.Tensor, what: str, keep: bool):
        super().__init__(owner, what)
        self._version, self._data = _version(owner), owner.data
        self._values = owner.detach().clone() if keep and owner.layout == torch.strided else None
        some = None if keep else _some(owner)
        self._some = None if some is None else some.clone()

    def changes(self) -> Iterator[Change]:
        moved = self.owner.shape != self._data.shape or self.owner.dtype != self._data.dtype
        if not moved and _version(self.owner) == self._version and self._is_equal():
            return
        if not moved and self._values is not None and _equal(self.owner.detach(), self._values):
            return
        yield Change(self.what, self.owner.detach().clone(), self._put_back, id(self.owner))

    def _is_equal(self) -> bool:
        """What is written by way of `.data` or of NumPy has the same version as before."""
        if self._values is not None:
            return _equal(self.owner.detach(), self._values)
        return self._some is None or _equal(_some(self.owner), self._some)

    def _put_back(self) -> None:
        with torch.no_grad():
            self.owner.data = self._data
            if self._values is not None:
                self.owner.data.copy_(self._values)


class Array(Spot):
    def __init__(self, owner: Any, what: str):
        super().__init__(owner, what)
        # Of a large one, elements from all over it; the trial cannot put these back.
        whole = owner.size <= WHOLE_MAX or not owner.flags.c_contiguous
        self._looked: Any = owner if whole else owner.reshape(-1)[:: owner.size // ROUGHLY]
        self._before = self._looked.copy()

    def changes(self) -> Iterator[Change]:
        if not _equal(self._looked, self._before):
            yield Change(self.what, self._looked.copy(), self._put_back, id(self.owner))

    def _put_back(self) -> None:
        self._looked[...] = self._before


class Generator(Spot):
    """A generator of random numbers of the script's own."""

    def __init__(self, owner: Any, what: str):
        super().__init__(owner, what)
        self._before = generator_state(owner)

    def changes(self) -> Iterator[Change]:
        now = generator_state(self.owner)
        if not _equal(now, self._before):
            yield Change(f"the generator {self.what}", now, self._put_back, id(self.owner))

    def _put_back(self) -> None:
        set_generator(self.owner, self._before)


def copied(value: Any, depth: int = 0) -> Any:
    """What can be compared later: tensors and containers as they are now."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if numpy is not None and isinstance(value, numpy.ndarray):
        return value.copy()
    if depth < 4 and isinstance(value, (list, tuple)):
        return [copied(each, depth + 1) for each in value[:ITEMS_MAX]] + [len(value)]
    if depth < 4 and isinstance(value, dict):
        return {key: copied(each, depth + 1) for key, each in list(value.items())[:ITEMS_MAX]}
    return value


def holds_tensors(value: Any, depth: int = 0) -> bool:
    """Tensors, and containers of nothing else."""
    if isinstance(value, torch.Tensor):
        return True
    if depth < 4 and isinstance(value, list):  # copied() puts the length behind
        return len(value) > 1 and all(holds_tensors(each, depth + 1) for each in value[:-1])
    return depth < 4 and isinstance(value, dict) and bool(value) and all(holds_tensors(each, depth + 1) for each in value.values())


def same(a: Any, b: Any) -> bool:
    """Of two results of copied(). Objects of the user's own count as the same where they are of one type."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (*PLAIN, torch.Tensor)) or isinstance(b, (*PLAIN, torch.Tensor)):
        return type(a) is type(b) and _equal(a, b)
    return type(a) is type(b)


def _some(tensor: torch.Tensor) -> torch.Tensor | None:
    """A view of elements from all over it. None: there is no cheap way to them."""
    if tensor.layout != torch.strided or not tensor.is_contiguous() or tensor.device.type == "meta":
        return None
    flat = tensor.detach().view(-1)
    return flat[:: max(1, flat.numel() // SOME)]


def _version(tensor: torch.Tensor) -> int:
    try:
        return tensor._version
    except RuntimeError:  # of inference mode
        return 0


def is_generator(value: Any) -> bool:
    if isinstance(value, (torch.Generator, random.Random)):
        return True
    return numpy is not None and isinstance(value, (numpy.random.Generator, numpy.random.RandomState))


def generator_state(generator: Any) -> Any:
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, random.Random):
        return generator.getstate()
    return generator.get_state() if isinstance(generator, numpy.random.RandomState) else generator.bit_generator.state


def set_generator(generator: Any, state: Any) -> None:
    if isinstance(generator, torch.Generator):
        generator.set_state(state)
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, numpy.random.RandomState):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state


def _equal(a: Any, b: Any) -> bool:
    """Of values; objects are equal to themselves only."""
    if a is b:
        return True
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        alike = a.shape == b.shape and a.dtype == b.dtype and a.device == b.device
        return alike and (torch.equal(a, b) or bool(((a == b) | ((a != a) & (b != b))).all()))
    if isinstance(a, PLAIN) and isinstance(b, PLAIN):
        return type(a) is type(b) and (a == b or a != a and b != b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if numpy is not None and isinstance(a, numpy.ndarray) and isinstance(b, numpy.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and bool(numpy.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))
    return False
