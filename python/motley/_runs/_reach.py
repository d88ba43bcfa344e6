"""What the body of a run's epochs can reach and change beside the model: its variables, attributes of the script's own objects, lists and
the like, tensors, generators of random numbers, schedulers. Compared with how it was when the run began, it can be written down and put
back in another process that runs the same script."""

import collections
import ctypes
import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.optim import lr_scheduler

from motley._runs import _packed
from motley._samples import _data
from motley._trials import _own, _spots

try:
    import numpy
except ImportError:  # torch works without
    numpy = None  # type: ignore[assignment]

LOOKED_AT_MAX = 20_000  # values
LONG_MAX = 10_000  # items of a list that are compared
DEPTH_MAX = 8
CONTAINERS = (list, dict, set, collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter)
NOT_DATA = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
MISSING = object()


class _Names:
    """Values under names: variables of a frame, globals, attributes of an object or a class."""

    def __init__(self, owner: Any, get: Callable[[], dict[str, Any]], put: Callable[[str, Any], None]):
        self.owner, self.get, self.put = owner, get, put
        self.before = {name: _kept_weakly(value) for name, value in get().items() if _is_data(name, value)}

    def changed(self) -> Iterator[tuple[str, Any, bool]]:
        """Name, value, and whether it was there when the run began."""
        for name, value in self.get().items():
            if _is_data(name, value) and not _is_kept(self.before.get(name, MISSING), value):
                yield name, value, name in self.before


class Reach:
    """frame: of who asks for epochs. apart: what the run itself holds: model, optimizer, loaders and their data. `optimizer`: whose
    schedulers are looked for."""

    def __init__(self, frame: types.FrameType | None, optimizer: Any, apart: Iterable[Any]):
        self._optimizer = optimizer
        self._met: dict[int, Any] = {id(each): each for each in (*apart, self)}
        self._names: dict[str, _Names] = {}
        self._contents: dict[str, tuple[Any, Any]] = {}  # container or tensor, and how it was
        self._stateful: dict[str, tuple[Any, bytes | None]] = {}
        self._left = LOOKED_AT_MAX
        self.begins_anew: list[str] = []  # what the body changed and what cannot be written down
        self._walk(frame)

    # --- what there is ---

    def _walk(self, frame: types.FrameType | None) -> None:
        while frame is not None:
            if _own.is_own(frame.f_code.co_filename):
                self._waiting: collections.deque[tuple[Any, str, int]] = collections.deque()
                if frame.f_locals is not frame.f_globals:
                    self._add_names(frame, f"{frame.f_code.co_name}:", *_of_frame(frame))
                self._add_module(frame.f_globals)
                while self._waiting and self._left > 0:
                    self._visit(*self._waiting.popleft())
            frame = frame.f_back

    def _add_names(self, owner: Any, path: str, get: Callable[[], dict[str, Any]], put: Callable[[str, Any], None], depth: int = 0) -> None:
        if path in self._names or depth > DEPTH_MAX:
            return
        self._names[path] = _Names(owner, get, put)
        self._waiting.extend((value, f"{path}{name}", depth + 1) for name, value in get().items() if not name.startswith("__"))

    def _add_module(self, values: dict[str, Any]) -> None:
        if id(values) not in self._met:
            self._met[id(values)] = values
            self._add_names(values, "" if values.get("__name__") == "__main__" else f"{values.get('__name__')}.", lambda: values,
                            values.__setitem__)

    def _visit(self, value: Any, path: str, depth: int) -> None:
        if isinstance(value, _spots.PLAIN) or id(value) in self._met or depth > DEPTH_MAX:
            return
        self._met[id(value)] = value
        self._left -= 1
        kind = type(value)
        if _spots.is_generator(value) or self._has_state(value):
            self._stateful[path] = value, _state_of(value)
        elif kind in CONTAINERS or isinstance(value, (tuple, frozenset)):
            if kind in CONTAINERS:
                self._contents[path] = value, _copied(value)
            if len(value) <= _spots.ITEMS_MAX:
                items = value.items() if isinstance(value, dict) else enumerate(value)
                self._waiting.extend((each, f"{path}[{key!r}]", depth + 1) for key, each in items)
        elif isinstance(value, (torch.Tensor, nn.Module)) or (numpy is not None and isinstance(value, numpy.ndarray)):
            self._contents[path] = value, _copied(value)  # of another model than the run's, its tensors
        else:
            self._visit_code(value, path, depth)

    def _visit_code(self, value: Any, path: str, depth: int) -> None:
        if isinstance(value, types.MethodType):
            self._waiting.extend([(value.__self__, path, depth), (value.__func__, path, depth)])
        elif isinstance(value, functools.partial):
            self._waiting.extend([(each, path, depth + 1) for each in (value.func, value.args, value.keywords)])
        elif isinstance(value, types.FunctionType):
            if not _own.is_own(value.__code__.co_filename):
                return
            cells = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=True))
            fresh = {name: cell for name, cell in cells.items() if id(cell) not in self._met}
            self._met.update({id(cell): cell for cell in fresh.values()})
            if fresh:
                self._add_names(value, f"{path}:", lambda: _inside(fresh), lambda name, new: _fill(fresh[name], new), depth)
            self._add_module(value.__globals__)
        elif isinstance(value, types.ModuleType):
            if _own.is_own(getattr(value, "__file__", None) or ""):
                self._add_module(value.__dict__)
        elif isinstance(value, type):
            if _own.is_own_class(value):
                self._add_names(value, f"{path}.", lambda: dict(value.__dict__), functools.partial(setattr, value), depth)
        elif isinstance(value, _own.HOLDERS) or (_own.is_own_class(type(value)) and not isinstance(value, nn.Module)):
            self._add_names(value, f"{path}.", lambda: _attributes(value), functools.partial(setattr, value), depth)
            self._waiting.append((type(value), type(value).__name__, depth + 1))

    def _has_state(self, value: Any) -> bool:
        """A scheduler, of torch or not, or whatever else follows this optimizer and can be loaded; an optimizer beside it."""
        attributes = getattr(value, "__dict__", None)
        follows = isinstance(attributes, dict) and attributes.get("optimizer") is self._optimizer
        return (follows or isinstance(value, (lr_scheduler.LRScheduler, torch.optim.Optimizer))) and _loads(value)

    # --- what became of it ---

    def changes(self) -> dict[str, bytes]:
        """What is not as it was when the run began, packed, by name."""
        found: dict[str, bytes] = {}
        lost: list[str] = []

        def add(path: str, value: Any, matters: bool) -> None:
            try:
                found[path] = _packed.pack(value)
            except (_packed.Unkept, RuntimeError, RecursionError):
                if matters:
                    lost.append(path.partition(":")[2] or path)

        for path, names in self._names.items():
            for name, value, before in names.changed():
                if id(value) not in self._met or not isinstance(value, CONTAINERS):
                    add(f"{path}{name}", value, before)
        for path, (value, before) in self._contents.items():
            if not _is_as(value, before):
                add(path, dict(value.state_dict()) if isinstance(value, nn.Module) else value, True)
        for path, (value, state) in self._stateful.items():
            now = _state_of(value)
            if now is None:
                lost.append(path)
            elif now != state:
                found[path] = now
        self.begins_anew = lost
        return found

    def put_back(self, changes: dict[str, bytes]) -> list[str]:
        """What changes() of another process found; returns what has no place here."""
        return [path for path, packed in changes.items() if not self._put(path, _packed.unpack(packed))]

    def _put(self, path: str, value: Any) -> bool:
        if path in self._stateful:
            _load(self._stateful[path][0], value)
            return True
        if path in self._contents and _kind(self._contents[path][0]) is _kind(value):
            return _refill(self._contents[path][0], value)
        holders = [(each, names) for each, names in self._names.items() if path.startswith(each)]
        for prefix, names in sorted(holders, key=lambda each: -len(each[0])):
            name = path[len(prefix) :]
            if name.isidentifier():
                names.put(name, value)
                return True
        return False


def find(frame: types.FrameType | None, optimizer: Any, others: Iterable[Any], sources: Iterable[_data.BatchSource]) -> Reach:
    """Of a run's body. others: what else the run holds; sources: of its data."""
    apart = [optimizer, *others]
    for source in sources:
        loader = source.loader
        samplers = [loader.sampler, loader.batch_sampler, getattr(loader.batch_sampler, "sampler", None)]
        apart += [loader, loader.collate_fn, *samplers]
        if source.orders is not None:  # the epochs that are listed anew draw from these
            apart += [each for of in (loader, *samplers) for each in getattr(of, "__dict__", {}).values() if _spots.is_generator(each)]
        dataset: Any = loader.dataset
        while dataset is not None and len(apart) < LONG_MAX:
            apart.append(dataset)
            dataset = getattr(dataset, "dataset", None)
    return Reach(frame, optimizer, [each for each in apart if each is not None])


def _of_frame(frame: types.FrameType) -> tuple[Callable[[], dict[str, Any]], Callable[[str, Any], None]]:
    def put(name: str, value: Any) -> None:
        frame.f_locals[name] = value
        if sys.version_info < (3, 13):  # from there on that is the variable itself
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))

    return lambda: dict(frame.f_locals), put


def _inside(cells: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name, cell in cells.items():
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not filled yet
            continue
    return found


def _fill(cell: Any, value: Any) -> None:
    cell.cell_contents = value


def _attributes(value: Any) -> dict[str, Any]:
    slots = [name for kind in type(value).__mro__ for name in _slots(kind) if not name.startswith("__")]
    found = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return {**found, **getattr(value, "__dict__", {})}


def _slots(kind: type) -> Iterable[str]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else slots


def _is_data(name: str, value: Any) -> bool:
    return not name.startswith("__") and not isinstance(value, NOT_DATA)


def _kept_weakly(value: Any) -> Any:
    try:
        return value if isinstance(value, _spots.PLAIN) else weakref.ref(value)
    except TypeError:
        return value


def _is_kept(before: Any, value: Any) -> bool:
    if isinstance(before, weakref.ref) and before() is value:
        return True
    if isinstance(value, _spots.PLAIN) and type(before) is type(value):
        return bool(before == value) or (before != before and value != value)
    return before is value


def _loads(value: Any) -> bool:
    return callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None))


def _state_of(value: Any) -> bytes | None:
    try:
        return _packed.pack(_spots.generator_state(value) if _spots.is_generator(value) else value.state_dict())
    except Exception:  # of whatever a library keeps
        return None


def _load(value: Any, state: Any) -> None:
    if _spots.is_generator(value):
        _spots.set_generator(value, state)
    else:
        value.load_state_dict(state)


def _kind(value: Any) -> type:
    return dict if isinstance(value, (dict, nn.Module)) else torch.Tensor if isinstance(value, torch.Tensor) else type(value)


def _copied(value: Any) -> Any:
    if isinstance(value, nn.Module):
        return [_copied(tensor) for tensor in (*value.parameters(), *value.buffers())]
    if isinstance(value, torch.Tensor):
        return _spots._version(value), value.data_ptr() if value.layout == torch.strided else 0
    if numpy is not None and isinstance(value, numpy.ndarray):
        return value.copy() if value.size <= _spots.WHOLE_MAX and not value.dtype.hasobject else None
    return value.copy() if len(value) <= LONG_MAX else len(value)


def _is_as(value: Any, before: Any) -> bool:
    if isinstance(value, (torch.Tensor, nn.Module)):
        return bool(_copied(value) == before)
    if numpy is not None and isinstance(value, numpy.ndarray):
        return before is None or _spots._equal(value, before)
    if isinstance(before, int):
        return len(value) == before
    if isinstance(value, (set, frozenset)):
        return bool(value == before)
    if len(value) != len(before):
        return False
    pairs = ((key, value[key], before.get(key, MISSING)) for key in value) if isinstance(value, dict) else zip(value, value, before,
                                                                                                          strict=True)
    return all(now is then or _spots._equal(now, then) for _, now, then in pairs)


def _refill(value: Any, now: Any) -> bool:
    if isinstance(value, nn.Module):
        value.load_state_dict(now)
    elif isinstance(value, torch.Tensor):
        if value.shape != now.shape or value.dtype != now.dtype:
            return False
        with torch.no_grad():
            value.copy_(now)
    elif isinstance(value, (list, collections.deque)):
        value.clear()
        value.extend(now)
    elif isinstance(value, (dict, set)):
        value.clear()
        value.update(now)
    elif value.shape == now.shape:
        value[...] = now
    return True
