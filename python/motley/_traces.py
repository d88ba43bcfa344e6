"""What a step can leave behind outside autograd: attributes, globals, closure cells, containers, tensors and generators that the code of a
loss can reach, compared before and after.

Of objects and modules of the user's own, those attributes count that the code reached so far has names for: what a script keeps beside its
loss, such as a history, is its own affair.
"""

import collections
import functools
import io
import os
import random
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from motley import _data, _state

try:
    import numpy
except ImportError:  # torch works without
    numpy = None  # type: ignore[assignment]

ITEMS_MAX = 256  # of a container whose items are looked at one by one
ARRAY_BYTES_MAX = 1 << 16  # of NumPy arrays that are compared
KEPT_BYTES_MAX = 64 << 20  # of tensors that can be put back
LIBRARIES = tuple(os.path.realpath(path) + os.sep for path in {*(sysconfig.get_path(name) for name in ("stdlib", "platstdlib")),
                                                                os.path.dirname(__file__), os.path.dirname(torch.__file__)})
PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size)
OWN_OF_MODULES = frozenset(nn.Module().__dict__)
MISSING = object()


@dataclass
class Change:
    """what: in words, e.g. "the global KL". now: comparable with that of another change of the same thing. put_back: undoes it."""

    what: str
    now: Any
    put_back: Callable[[], None]
    key: Any = None  # of the thing


class _Spot:
    """Something that may change, as it was."""

    def __init__(self, owner: Any, what: str):
        self.owner, self.what = owner, what

    def changes(self) -> Iterator[Change]:
        raise NotImplementedError


class _Named(_Spot):
    """Values under names: attributes, globals, items of a mapping."""

    def __init__(self, owner: Any, what: str, values: dict[Any, Any], names: Callable[[], list[Any]]):
        super().__init__(owner, what)
        self._values, self._names = values, names
        self._before = {name: values.get(name, MISSING) for name in names()}

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


class _Items(_Spot):
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


class _Cell(_Spot):
    def __init__(self, owner: Any, what: str):
        super().__init__(owner, what)
        self._before = owner.cell_contents

    def changes(self) -> Iterator[Change]:
        now = self.owner.cell_contents
        if now is not self._before and not _equal(self._before, now):
            yield Change(self.what, copied(now), self._put_back, id(self.owner))

    def _put_back(self) -> None:
        self.owner.cell_contents = self._before


class _Tensor(_Spot):
    def __init__(self, owner: torch.Tensor, what: str, keep: bool):
        super().__init__(owner, what)
        self._version, self._data = _version(owner), owner.data
        small = keep and owner.layout == torch.strided and owner.numel() * owner.element_size() <= KEPT_BYTES_MAX
        self._values = owner.detach().clone() if small else None

    def changes(self) -> Iterator[Change]:
        moved = self.owner.shape != self._data.shape or self.owner.dtype != self._data.dtype
        if not moved and _version(self.owner) == self._version and (self._values is None or _equal(self.owner.detach(), self._values)):
            return
        if not moved and self._values is not None and _equal(self.owner.detach(), self._values):
            return
        yield Change(self.what, self.owner.detach().clone(), self._put_back, id(self.owner))

    def _put_back(self) -> None:
        with torch.no_grad():
            self.owner.data = self._data
            if self._values is not None:
                self.owner.data.copy_(self._values)


class _Array(_Spot):
    def __init__(self, owner: Any, what: str):
        super().__init__(owner, what)
        self._before = owner.copy()

    def changes(self) -> Iterator[Change]:
        if not _equal(self.owner, self._before):
            yield Change(self.what, self.owner.copy(), self._put_back, id(self.owner))

    def _put_back(self) -> None:
        self.owner[...] = self._before


class _Generator(_Spot):
    """A generator of random numbers of the script's own."""

    def __init__(self, owner: Any, what: str):
        super().__init__(owner, what)
        self._before = _generator_state(owner)

    def changes(self) -> Iterator[Change]:
        now = _generator_state(self.owner)
        if not _equal(now, self._before):
            yield Change(f"the generator {self.what}", now, self._put_back, id(self.owner))

    def _put_back(self) -> None:
        if isinstance(self.owner, torch.Generator):
            self.owner.set_state(self._before)
        elif isinstance(self.owner, random.Random):
            self.owner.setstate(self._before)
        elif isinstance(self.owner, numpy.random.RandomState):
            self.owner.set_state(self._before)
        else:
            self.owner.bit_generator.state = self._before


@dataclass
class Seen:
    """How everything was that was reached. iterators: names of those, whose place nobody can know."""

    spots: list[_Spot]
    iterators: list[str]

    def changes(self) -> list[Change]:
        return [change for spot in self.spots for change in spot.changes()]


class Traces:
    """roots: by name, what a step calls and uses: functions, modules, recipes of data. model: whose parameters and buffers are left out."""

    def __init__(self, roots: dict[str, Any], model: nn.Module):
        self._roots = {name: root for name, root in roots.items() if root is not None}
        self._model = model
        self._used: set[str] = set()  # names in the code that was reached
        known = -1
        while known != len(self._used):  # code that is found with one name has others
            known = len(self._used)
            self.take()

    def take(self, keep: bool = False) -> Seen:
        """`keep`: tensors, too, can be put back."""
        apart = {id(tensor) for tensor in (*self._model.parameters(), *self._model.buffers())}
        return _Walk(self._used, apart, keep).over(self._roots)


class _Walk:
    def __init__(self, used: set[str], apart: set[int], keep: bool):
        self._used, self._apart, self._keep = used, apart, keep
        self._spots: list[_Spot] = []
        self._iterators: list[str] = []
        self._met: dict[int, Any] = {}  # also keeps what is met, so that no other gets its id

    def over(self, roots: dict[str, Any]) -> Seen:
        for name, root in roots.items():
            if isinstance(root, _data.Recipe):
                self._visit(root.loader.dataset, name)
                self._visit(root.collate, f"{name}'s collate_fn")
            else:
                self._visit(root, name)
        return Seen(self._spots, self._iterators)

    def _visit(self, value: Any, what: str) -> None:
        if isinstance(value, (*PLAIN, type, types.BuiltinFunctionType, property, _state.HeadTensors)):
            return
        if id(value) in self._met or id(value) in self._apart:
            return
        self._met[id(value)] = value
        if isinstance(value, torch.Tensor):
            self._spots.append(_Tensor(value, what, self._keep))
        elif isinstance(value, types.FunctionType):
            self._visit_function(value)
        elif isinstance(value, types.MethodType):
            self._visit(value.__func__, what)
            self._visit(value.__self__, what)
        elif isinstance(value, functools.partial):
            self._visit(value.func, what)
            self._visit(list(value.args), what)
            self._visit(value.keywords, what)
        elif isinstance(value, nn.Module):
            self._visit_module(value)
        elif isinstance(value, types.ModuleType):
            self._visit_file(value)
        elif _is_generator(value):
            self._spots.append(_Generator(value, what))
        elif numpy is not None and isinstance(value, numpy.ndarray):
            if value.nbytes <= ARRAY_BYTES_MAX and value.dtype.kind != "O":
                self._spots.append(_Array(value, what))
        elif isinstance(value, (list, tuple, set, frozenset, collections.deque)):
            self._visit_items(value, what)
        elif isinstance(value, Mapping):
            self._visit_mapping(value, what)
        elif callable(getattr(type(value), "__next__", None)) and not isinstance(value, io.IOBase):
            self._iterators.append(what)
        else:
            self._visit_object(value)

    def _visit_items(self, value: Any, what: str) -> None:
        if len(value) > ITEMS_MAX:
            return
        if isinstance(value, (list, set, collections.deque)):
            self._spots.append(_Items(value, what))
        for each in value:
            self._visit(each, what)

    def _visit_mapping(self, value: Mapping[Any, Any], what: str) -> None:
        if len(value) > ITEMS_MAX:
            return
        if isinstance(value, dict):
            self._spots.append(_Named(value, f"{what}[{{!r}}]", value, lambda: list(value)))
        for key, each in list(value.items()):
            self._visit(each, f"{what}[{key!r}]")

    def _visit_function(self, function: types.FunctionType) -> None:
        code = function.__code__
        for cell, name in zip(function.__closure__ or (), code.co_freevars, strict=True):
            try:
                inside = cell.cell_contents
            except ValueError:  # not filled yet
                continue
            self._spots.append(_Cell(cell, f"the variable {name}"))
            self._visit(inside, name)
        for each in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._visit(each, f"a default of {function.__name__}")
        if not is_own(code.co_filename):
            return
        names = _names_of(code)
        self._used |= names
        read = [name for name in names if name in function.__globals__]
        self._spots.append(_Named(function, "the global {}", function.__globals__, lambda: read))
        for name in read:
            self._visit(function.__globals__[name], name)

    def _visit_file(self, module: types.ModuleType) -> None:
        """A module of the script's own, whose names the code uses."""
        if is_own(getattr(module, "__file__", None) or ""):
            self._visit_attributes(module, module.__name__, list(self._used & module.__dict__.keys()))

    def _visit_module(self, module: nn.Module) -> None:
        kind = type(module)
        own = [name for name in module.__dict__ if name not in OWN_OF_MODULES and (name in self._used or not _is_own_class(kind))]
        self._visit_attributes(module, kind.__name__, own)
        self._visit_methods(module)
        for each in (*module._forward_hooks.values(), *module._forward_pre_hooks.values()):
            self._visit(each, f"a hook of {kind.__name__}")
        for child in module._modules.values():
            self._visit(child, kind.__name__)

    def _visit_object(self, value: Any) -> None:
        attributes = getattr(value, "__dict__", None)
        if not _is_own_class(type(value)) or not isinstance(attributes, dict):
            if isinstance(attributes, dict) and isinstance(value, torch.utils.data.Dataset):
                self._visit_attributes(value, type(value).__name__, list(attributes))
            return
        self._visit_attributes(value, type(value).__name__, [name for name in attributes if name in self._used])
        self._visit_methods(value)

    def _visit_methods(self, value: Any) -> None:
        for kind in type(value).__mro__:
            if not _is_own_class(kind):
                continue
            for name, method in kind.__dict__.items():
                if isinstance(method, types.FunctionType) and (name in self._used or name in ("forward", "__call__", "__getitem__")):
                    self._visit(method, name)

    def _visit_attributes(self, value: Any, of: str, names: list[str]) -> None:
        attributes = value.__dict__
        used = self._used
        fresh = isinstance(value, nn.Module)  # may get attributes that it has not yet

        def listed() -> list[str]:
            return [*names, *(name for name in attributes if fresh and name not in OWN_OF_MODULES and name in used)]

        self._spots.append(_Named(value, f"{of}.{{}}", attributes, listed))
        for name in names:
            self._visit(attributes[name], f"{of}.{name}")


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


def is_own(file: str) -> bool:
    """Whether code of that file is the script's, not a library's."""
    if not file or file.startswith("<frozen"):
        return False
    real = os.path.realpath(file)
    return not real.startswith(LIBRARIES) and not any(part in real for part in PACKAGES)


@functools.lru_cache(maxsize=4096)
def _is_own_class(kind: type) -> bool:
    if kind.__module__ in ("builtins", "torch.nn.modules.module"):
        return False
    module = sys.modules.get(kind.__module__)
    return is_own(getattr(module, "__file__", None) or f"{os.sep}<{kind.__module__}>") if module is not None else True


@functools.lru_cache(maxsize=4096)
def _names_of(code: types.CodeType) -> frozenset[str]:
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return frozenset(code.co_names).union(*(_names_of(each) for each in inner))


def _version(tensor: torch.Tensor) -> int:
    try:
        return tensor._version
    except RuntimeError:  # of inference mode
        return 0


def _is_generator(value: Any) -> bool:
    if isinstance(value, (torch.Generator, random.Random)):
        return True
    return numpy is not None and isinstance(value, (numpy.random.Generator, numpy.random.RandomState))


def _generator_state(generator: Any) -> Any:
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, random.Random):
        return generator.getstate()
    return generator.get_state() if isinstance(generator, numpy.random.RandomState) else generator.bit_generator.state


def _equal(a: Any, b: Any) -> bool:
    """Of values; objects are equal to themselves only."""
    if a is b:
        return True
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape and a.dtype == b.dtype and a.device == b.device and bool(((a == b) | ((a != a) & (b != b))).all())
    if isinstance(a, PLAIN) and isinstance(b, PLAIN):
        return type(a) is type(b) and (a == b or a != a and b != b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if numpy is not None and isinstance(a, numpy.ndarray) and isinstance(b, numpy.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and bool(numpy.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))
    return False
