"""What a step can leave behind outside autograd: attributes, globals, closure cells, containers, tensors and generators that the code of a
loss can reach, compared before and after.

Of objects and modules of the user's own, those attributes count that the code reached so far has names for: what a script keeps beside its
loss, such as a history, is its own affair.
"""

import collections
import functools
import io
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from motley import _state
from motley._samples import _data, _shards
from motley._trials import _gradients, _spots
from motley._trials._own import CALLED, HOLDERS, is_own, is_own_class, names_of

try:
    import numpy
except ImportError:  # torch works without
    numpy = None  # type: ignore[assignment]

KEPT_BYTES_MAX = 256 << 20  # of tensors that can be put back
LONG_MAX = 10_000  # items of a list whose own items are not looked into
METHODS = (types.FunctionType, staticmethod, classmethod, property)
OWN_OF_MODULES = frozenset(nn.Module().__dict__)


@dataclass
class Seen:
    """How everything was that was reached. iterators: names of those, whose place nobody can know. inside: of what is a library's own
    affair, which is named where something is known to have changed."""

    spots: list[_spots.Spot]
    iterators: list[str]
    inside: list[_spots.Inside]

    def __post_init__(self) -> None:
        self._untouched = _spots.Untouched(self.spots)
        self._others = [spot for spot in self.spots if spot not in self._untouched]

    def changes(self) -> list[_spots.Change]:
        spots = self._others if self._untouched() else self.spots
        return [change for spot in spots if not spot.is_same() for change in spot.changes()]

    def suspects(self) -> list[str]:
        return [inside.what for inside in self.inside if inside.is_other()]


class Traces:
    """roots: by name, what a step calls and uses: functions, modules, sources of data. model: whose parameters and buffers are left
    out, and with them what lies in their `memory`. apart: likewise."""

    def __init__(self, roots: dict[str, Any], model: nn.Module, memory: frozenset[int] | None = None,
                 apart: tuple[Any, ...] = ()):
        self._memory, self._apart = memory_of(model) if memory is None else memory, apart
        self._roots = {name: root for name, root in roots.items() if root is not None}
        self._model = model
        self._used: set[str] = set()  # names in the code that was reached
        self._packages: set[str] = set()  # of what these stand for
        known = -1
        while known != len(self._used):  # code that is found with one name has others
            known = len(self._used)
            self.take()

    def take(self, keep: bool = False) -> Seen:
        """`keep`: tensors, too, can be put back."""
        apart = {id(each) for each in (*self._model.parameters(), *self._model.buffers(), *self._apart)}
        return _Walk(self._used, self._packages, apart, self._memory, keep).over(self._roots)

    def gradients_follow(self) -> bool:
        """Whether the gradient of a loss of this code can be another only where its value is."""
        return _gradients.follow(self._used, self._packages, self._model)


class _Walk:
    def __init__(self, used: set[str], packages: set[str], apart: set[int], memory: frozenset[int], keep: bool):
        self._used, self._packages, self._apart, self._memory = used, packages, apart, memory
        self._left = KEPT_BYTES_MAX if keep else -1  # bytes of tensors that can still be kept
        self._spots: list[_spots.Spot] = []
        self._iterators: list[str] = []
        self._inside: list[_spots.Inside] = []
        self._met: dict[int, Any] = {}  # also keeps what is met, so that no other gets its id

    def over(self, roots: dict[str, Any]) -> Seen:
        for name, root in roots.items():
            if isinstance(root, _data.BatchSource):
                self._visit(root.loader.dataset, name)
                self._visit(root.collate, f"{name}'s collate_fn")
            else:
                self._visit(root, name)
        return Seen(self._spots, self._iterators, self._inside)

    def _visit(self, value: Any, what: str) -> None:
        try:
            self._visit_known(value, what)
        except Exception:  # of a library's object that cannot be looked into: a file that is closed, a proxy of nothing
            self._met[id(value)] = value

    def _visit_known(self, value: Any, what: str) -> None:
        if isinstance(value, types.BuiltinFunctionType) and not isinstance(value.__self__, types.ModuleType):  # a method of an object
            value = value.__self__
        if not isinstance(value, _spots.PLAIN):
            self._packages.add(_gradients.package_of(value))
        if isinstance(value, (*_spots.PLAIN, types.BuiltinFunctionType, property, _state.HeadTensors)):
            return
        if isinstance(value, _shards.Shards):  # what it has open is not the script's
            self._visit(value.sources, f"{what}.sources")
            self._visit(value.map, f"{what}.map")
            return
        if id(value) in self._met or id(value) in self._apart:
            return
        self._met[id(value)] = value
        if isinstance(value, torch.Tensor):
            if _address(value) in self._memory:  # a view of a weight, which is where the script left it whenever the script looks
                return
            size = value.numel() * value.element_size()
            keep = self._left >= size
            self._left -= size if keep else 0
            self._spots.append(_spots.Tensor(value, what, keep))
        elif isinstance(value, type):
            self._visit_class(value)
        elif isinstance(value, types.FunctionType):
            self._visit_function(value)
        elif isinstance(value, functools._lru_cache_wrapper):
            self._visit(value.__wrapped__, what)
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
        elif _spots.is_generator(value):
            self._spots.append(_spots.Generator(value, what))
        elif numpy is not None and isinstance(value, numpy.ndarray):
            if value.dtype.kind != "O" and not isinstance(value, numpy.memmap):
                self._spots.append(_spots.Array(value, what))
        elif isinstance(value, (list, tuple, set, frozenset, collections.deque)):
            self._visit_items(value, what)
        elif isinstance(value, Mapping):
            self._visit_mapping(value, what)
        elif callable(getattr(type(value), "__next__", None)) and not isinstance(value, io.IOBase):
            self._iterators.append(what)
        else:
            self._visit_object(value, what)

    def _visit_items(self, value: Any, what: str) -> None:
        if len(value) > (LONG_MAX if isinstance(value, list) else _spots.ITEMS_MAX):
            return
        if isinstance(value, (list, set, collections.deque)):
            self._spots.append(_spots.Items(value, what))
        for each in value if len(value) <= _spots.ITEMS_MAX else ():
            self._visit(each, what)

    def _visit_mapping(self, value: Mapping[Any, Any], what: str) -> None:
        if len(value) > _spots.ITEMS_MAX:
            return
        if isinstance(value, dict):
            self._spots.append(_spots.Named(value, f"{what}[{{!r}}]", value, lambda: list(value)))
        for key, each in list(value.items()):
            self._visit(each, f"{what}[{key!r}]")

    def _visit_function(self, function: types.FunctionType) -> None:
        code = function.__code__
        for cell, name in zip(function.__closure__ or (), code.co_freevars, strict=True):
            try:
                inside = cell.cell_contents
            except ValueError:  # not filled yet
                continue
            self._spots.append(_spots.Cell(cell, f"the variable {name}"))
            self._visit(inside, name)
        for each in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._visit(each, f"a default of {function.__name__}")
        if not is_own(code.co_filename):
            return
        names = names_of(code)
        self._used |= names
        read = [name for name in names if name in function.__globals__]
        self._spots.append(_spots.Named(function, "the global {}", function.__globals__, lambda: read))
        for name in read:
            self._visit(function.__globals__[name], name)
        if function.__dict__:
            self._visit_attributes(function, function.__name__, [name for name in function.__dict__ if name in self._used])

    def _visit_file(self, module: types.ModuleType) -> None:
        """A module of the script's own, whose names the code uses."""
        if is_own(getattr(module, "__file__", None) or ""):
            self._visit_attributes(module, module.__name__, list(self._used & module.__dict__.keys()))

    def _visit_module(self, module: nn.Module) -> None:
        kind = type(module)
        own = [name for name in module.__dict__ if name not in OWN_OF_MODULES and (name in self._used or not is_own_class(kind))]
        self._visit_attributes(module, kind.__name__, own)
        self._visit_methods(module)
        for name, tensor in (*module._parameters.items(), *module._buffers.items()):  # of modules beside the model
            self._visit(tensor, f"{kind.__name__}.{name}")
        for each in (*module._forward_hooks.values(), *module._forward_pre_hooks.values()):
            self._visit(each, f"a hook of {kind.__name__}")
        for child in module._modules.values():
            self._visit(child, kind.__name__)

    def _visit_class(self, kind: type) -> None:
        """What the code may read of a class of the script's own: settings, counters, and what else its methods reach."""
        if not is_own_class(kind):
            return
        used = {name: value for name, value in kind.__dict__.items() if name in self._used or name in CALLED}
        names = [name for name, value in used.items() if not isinstance(value, METHODS)]
        if names:
            self._spots.append(_spots.OfClass(kind, names))
        for name, value in used.items():
            if isinstance(value, (staticmethod, classmethod)):
                self._visit(value.__func__, name)
            elif isinstance(value, property):
                self._visit(value.fget, name)
            else:
                self._visit(value, f"{kind.__name__}.{name}")

    def _visit_object(self, value: Any, what: str) -> None:
        attributes = getattr(value, "__dict__", None)
        if not (is_own_class(type(value)) or isinstance(value, HOLDERS)):
            if isinstance(attributes, dict) and isinstance(value, torch.utils.data.Dataset):
                self._visit_attributes(value, type(value).__name__, list(attributes))
            else:
                self._inside.append(_spots.Inside(value, what))
            return
        if not attributes:
            self._inside.append(_spots.Inside(value, what))
        if isinstance(attributes, dict):
            self._visit_attributes(value, type(value).__name__, [name for name in attributes if name in self._used])
        slots = _spots.Slots(value)
        if names := [name for name in slots if name in self._used]:
            self._spots.append(_spots.Named(value, f"{type(value).__name__}.{{}}", slots, lambda: names))
            for name in names:
                self._visit(slots.get(name), f"{type(value).__name__}.{name}")
        self._visit_methods(value)

    def _visit_methods(self, value: Any) -> None:
        for kind in type(value).__mro__:
            self._visit(kind, kind.__name__)

    def _visit_attributes(self, value: Any, of: str, names: list[str]) -> None:
        attributes = value.__dict__
        used = self._used
        fresh = not isinstance(value, types.ModuleType)  # may get attributes that it has not yet, and that hide those of its class

        def listed() -> list[str]:
            return [*names, *(name for name in attributes if fresh and name not in OWN_OF_MODULES and name in used)]

        self._spots.append(_spots.Named(value, f"{of}.{{}}", attributes, listed))
        for name in names:
            self._visit(attributes[name], f"{of}.{name}")


def memory_of(model: nn.Module) -> frozenset[int]:
    """Where the model's tensors are: addresses of their storages."""
    return frozenset(filter(None, map(_address, (*model.parameters(), *model.buffers()))))


def _address(tensor: torch.Tensor) -> int:
    """Of its storage; 0: it has none."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # sparse, or of no device
        return 0
