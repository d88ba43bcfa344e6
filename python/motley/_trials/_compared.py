"""What runs of a script, for other machines to compare (src/wire/script.h): the source of its functions and of what they use, and the
values that this code reads. Code of installed packages counts by what the script sets of it. Without torch; models: _layers.py.

It follows names, as Traces does. What one machine alone has is not compared: what follows from a version of Python or of a library has
that version in its name, and so is no difference."""

import functools
import importlib.metadata
import opcode
import os
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from motley._trials import _own, _sources, _values
from motley._trials._own import is_own, is_own_class, names_of

BYTES_MAX = 60 << 10  # of what is sent
NAME_MAX = 100  # characters
DEEPEST, OBJECTS_MAX = 6, 16_384  # of objects of packages; of all
PLAIN = (bool, int, float, complex, str, bytes, type(None), types.BuiltinFunctionType)
APART = (os.PathLike, os._Environ)
MAKERS = frozenset({"__init__", "__new__", "__post_init__", "__setstate__", "reset_parameters"})  # what they write they set up
WRAPPERS = (functools.partial, functools._lru_cache_wrapper)
CALLED = (*_own.CALLED, "__init__", "__iter__", "__next__", "__len__", "__getitems__", "__enter__", "__exit__")
KNOWN = frozenset({"torch", "builtins", "math", "numpy", "operator", "_operator", ""})  # the same by their names in all versions
OF_ARRAYS = ("initial", "load", "gradients", "layout")  # of a Computation
COMPILED = "OptimizedModule"  # of torch: it is what was compiled
OF_MODULES = frozenset({"_parameters", "_buffers", "_modules"})  # of torch's: these are visited by themselves
# Of whose objects no settings are told: they run a training, or watch it.
QUIET = frozenset({"torch", "motley", "lightning", "mlflow", "pytorch_lightning", "ray", "tensorboard", "tensorboardX", "tqdm", "wandb"})
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


def words(roots: Mapping[str, Any], make: "Callable[[set[str]], Walk] | None" = None, loop: types.FrameType | None = None,
          used: Iterable[str] = ()) -> str:
    """Lines for Ready. roots: what a step calls and uses, by name. make: of what is walked with, by the names that are known. loop: the
    frame of a script that iterates over its leases. used: names that are called."""
    reached = set(used)
    while True:
        known, walk = len(reached), (make or Walk)(reached)
        for name, root in sorted(roots.items()):
            walk.visit_root(name, root)
        if loop is not None:
            walk.visit_loop(loop)
        if len(reached) == known:  # code that is found with one name has others
            return walk.text()


class Walk:
    """used: names in the code that was reached; grows."""

    def __init__(self, used: set[str]):
        self._used = used
        self._met: dict[int, Any] = {}  # also keeps what is met, so that no other gets its id
        self._items: dict[str, list[str]] = {}
        self._keys: dict[str, str] = {}  # of items: the variable or (".NAME") attribute that holds the value
        self._writes: set[str] = set()

    def visit_root(self, name: str, root: Any) -> None:
        self._bind(name, root, f" {name}", told=name != "model")

    def visit_loop(self, frame: types.FrameType) -> None:
        found = _sources.of_loop(frame)
        if found is None:
            return
        source, names = found
        self._add("the loop over the leases", f"#{source.hash}")
        self._used |= names
        self._writes |= source.writes
        for name in sorted(names):
            if name in frame.f_locals or name in frame.f_globals:
                self._bind(name, frame.f_locals.get(name, frame.f_globals.get(name)), name)

    def text(self) -> str:
        lines = []
        for name, found in self._items.items():
            key = self._keys.get(name)
            if key not in self._writes and f".{key}" not in self._writes:
                lines += _lines(name, found)
        lines.sort(key=lambda line: ("\t=" in line or "\t#0" in line, line))  # code first: it is what is cut last
        text, left = "", BYTES_MAX
        for line in lines:
            left -= len(line.encode(errors="replace"))
            if left < 0:
                break
            text += line
        return text.encode(errors="replace").decode()

    # --- what is found ---

    def _add(self, name: str, word: str | None, key: str | None = None) -> None:
        if word is None:
            return
        if key is not None:
            self._keys[name] = key
        self._items.setdefault(name, []).append(word)

    def _tell(self, name: str, text: str | None, key: str | None = None) -> None:
        self._add(name, None if text is None else f"={text}", key)

    def _bind(self, name: str, value: Any, key: str, told: bool = True) -> None:
        """A value that code reads by this name."""
        if told and not _values.of_machine(key):
            word = self._word(value)
            if word is not None:
                self._add(name, word, key)
            else:
                self._tell(name, named(value), key)
        self._visit(value, name)

    def _word(self, value: Any) -> str | None:
        """Of a value without parts of its own."""
        return _values.word(value)

    def _visit(self, value: Any, what: str, depth: int = 0) -> None:
        if isinstance(value, PLAIN) or id(value) in self._met or len(self._met) > OBJECTS_MAX:
            return
        self._met[id(value)] = value
        if isinstance(value, type):
            self._visit_class(value)
        elif isinstance(value, types.FunctionType):
            self._visit_function(value, what)
        elif isinstance(value, types.MethodType):
            self._visit(value.__func__, what)
            self._visit(value.__self__, what)
        elif isinstance(value, (staticmethod, classmethod)):
            self._visit(value.__func__, what)
        elif isinstance(value, property):
            for each in (value.fget, value.fset):
                self._visit(each, what)
        elif isinstance(value, functools.partial):
            self._visit_partial(value, what)
        elif isinstance(value, types.ModuleType):
            self._visit_file(value)
        elif isinstance(value, (list, tuple, set, frozenset)):
            for number, each in enumerate(value if len(value) <= _values.ITEMS_MAX and isinstance(value, (list, tuple)) else ()):
                self._part(f"{what}[{number}]", each, " ", depth)
        elif isinstance(value, Mapping):
            self._visit_mapping(value, what, depth)
        elif "__wrapped__" in _attributes(value):
            self._visit(_attributes(value)["__wrapped__"], what)
        else:
            self._visit_object(value, what, depth)

    def _part(self, name: str, value: Any, key: str, depth: int) -> None:
        """Of a container."""
        if depth == 0:
            self._bind(name, value, key)
        else:
            self._visit(value, name, depth + 1)

    # --- code ---

    def _visit_function(self, function: types.FunctionType, what: str) -> None:
        code = function.__code__
        own = is_own(code.co_filename)
        name = code.co_name if hasattr(function, "__wrapped__") else function.__qualname__
        name = f"{_place(function.__module__)}{name.rpartition('<locals>.')[2]}()"
        if "<lambda>" in name:
            name = f"{what} (a lambda)"
        source = _sources.of_code(code) if own else None
        apart = {"__class__", *(source.waits if source else ())}
        for cell, free in zip(function.__closure__ or (), code.co_freevars, strict=True):
            try:
                self._bind(f"{free} in {name}", cell.cell_contents, free, told=own and free not in apart)
            except ValueError:  # not filled yet
                continue
        if hasattr(function, "__wrapped__"):
            self._visit(function.__wrapped__, what)
        if source is None:
            return
        self._add(name if source.exact else f"{name} in Python {VERSION}", f"#{source.hash}")
        self._writes |= source.writes if code.co_name not in MAKERS else set()
        names = names_of(code) - source.waits
        self._used |= names | _strings_of(code)
        defaults = dict(zip(reversed(code.co_varnames[:code.co_argcount]), reversed(function.__defaults__ or ()), strict=False))
        for parameter, each in sorted({**defaults, **(function.__kwdefaults__ or {})}.items()):
            self._bind(f"{parameter} of {name}", each, f" {parameter}")
        for each in sorted(names & function.__globals__.keys()):
            self._bind(f"{_place(function.__module__)}{each}", function.__globals__[each], each)
        for each in sorted(names - function.__globals__.keys()):  # imported in the function
            package = function.__globals__.get("__package__")
            module = sys.modules.get(each) or (sys.modules.get(f"{package}.{each}") if package else None)
            if isinstance(module, types.ModuleType):
                self._visit_file(module)
        for each in sorted(function.__dict__.keys() & self._used):
            self._bind(f"{name[:-2]}.{each}", function.__dict__[each], f".{each}")

    def _visit_partial(self, value: "functools.partial[Any]", what: str) -> None:
        self._bind(f"{what}.func", value.func, ".func")
        for name, each in (*enumerate(value.args), *sorted(value.keywords.items())):
            self._bind(f"{what}({name})", each, f" {name}")

    def _visit_file(self, module: types.ModuleType) -> None:
        if is_own(getattr(module, "__file__", None) or ""):
            for name in sorted(self._used & module.__dict__.keys()):
                self._bind(f"{_place(module.__name__)}{name}", module.__dict__[name], name)

    def _visit_class(self, kind: type) -> None:
        if not is_own_class(kind):
            return
        self._tell(f"class {kind.__name__}", ", ".join(base.__name__ for base in kind.__bases__))
        for name, value in sorted(kind.__dict__.items()):
            if isinstance(value, (types.FunctionType, staticmethod, classmethod, property, *WRAPPERS)):
                if name in self._used or name in CALLED or _overrides(kind, name):
                    self._visit(value, name)
            elif name in self._used and not name.startswith("__"):
                self._bind(f"{kind.__name__}.{name}", value, f".{name}")
        for base in kind.__mro__[1:]:
            self._visit(base, base.__name__)

    # --- objects ---

    def _visit_mapping(self, value: Mapping[Any, Any], what: str, depth: int) -> None:
        try:
            items = list(value.items()) if len(value) <= _values.MAPPED_MAX else []
        except Exception:  # what a library's mapping does is its own affair
            return
        read = [(key, each) for key, each in items if isinstance(key, str) and key in self._used]
        for key, each in read or items:
            self._part(f"{what}[{key!r}]", each, f" {key}", depth)

    def _visit_object(self, value: Any, what: str, depth: int) -> None:
        kind, attributes = type(value), _attributes(value)
        if is_own_class(kind) or isinstance(value, _own.HOLDERS):
            slots = {slot for each in kind.__mro__ for slot in _slots(each)}
            for name in sorted({*attributes, *slots} & {*self._used, *CALLED} - OF_MODULES):
                try:
                    self._bind(f"{kind.__name__}.{name}", getattr(value, name), f".{name}")
                except AttributeError:  # a slot that is empty
                    continue
            for each in kind.__mro__:
                self._visit(each, each.__name__)
        elif depth < DEEPEST and not isinstance(value, APART) and _package_of(kind) not in sys.stdlib_module_names:
            self._visit_packages(value, attributes, depth)

    def _visit_packages(self, value: Any, attributes: Mapping[str, Any], depth: int) -> None:
        """An object of a package: of its numbers those that may be settings, and what leads to code of the script."""
        kind, tag = type(value), version_of(type(value))
        told = tag is not None and _package_of(kind) not in QUIET
        for name, each in sorted(attributes.items()):
            if name.startswith("_") or name in written_by(kind):
                continue
            if told and _is_setting(each) and not _values.of_machine(name):
                self._add(f"{kind.__name__}.{name}{tag}", _values.word(each), f".{name}")
            elif not isinstance(each, PLAIN):
                if told and callable(each):
                    self._tell(f"{kind.__name__}.{name}{tag}", named(each), f".{name}")
                self._visit(each, f"{kind.__name__}.{name}", depth + 1)


def _lines(name: str, found: list[str]) -> list[str]:
    name = "".join(each if each.isprintable() else "?" for each in name)
    if len(name) > NAME_MAX:
        name = f"{name[:NAME_MAX - 18]}… {_values.hashed(name)}"
    if any(":" in word and word.count(":") > 1 for word in found):  # figures are compared one by one
        return [f"{name}{f' ({number})' if number else ''}\t{word}\n" for number, word in enumerate(found)]
    if all(word.startswith("#") and ":" not in word for word in found):
        found = sorted(set(found))
        return [f"{name}\t{found[0] if len(found) == 1 else '#' + _values.hashed(' '.join(found))}\n"]
    texts = [word.removeprefix("=") for word in found]
    text = texts[0] if len(set(texts)) == 1 else ", ".join(texts)
    if len(set(found)) == 1 and found[0].startswith("#"):
        return [f"{name}\t{found[0]}\n"]
    return [f"{name}\t" + (f"={text}" if len(text) <= _values.SHOWN_MAX else f"#0:{_values.hashed(text)}") + "\n"]


def named(value: Any) -> str | None:
    """What a name stands for, where that says what is computed."""
    if isinstance(value, functools.partial):
        return None
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__.rpartition('.')[2]}" if is_own(getattr(value, "__file__", None) or "") else None
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)):
        name = value.__name__
        known = _package_of(value) in KNOWN or is_own_callable(value)
        return name if known and "<" not in name else None
    kind = type(value)
    is_layer = _package_of(kind) == "torch" and hasattr(kind, "named_modules") and kind.__name__ != COMPILED
    return f"{kind.__name__}()" if is_layer or is_own_class(kind) else None


def _package_of(value: Any) -> str:
    return (getattr(value, "__module__", None) or "").partition(".")[0]


def is_own_callable(value: Any) -> bool:
    if isinstance(value, type):
        return is_own_class(value)
    code = getattr(getattr(value, "__func__", value), "__code__", None)
    return code is not None and is_own(code.co_filename)


@functools.lru_cache(maxsize=4096)
def version_of(kind: type) -> str | None:
    """"" for torch, else which package it is of, with its version. None: that is not known."""
    package = kind.__module__.partition(".")[0]
    if package in KNOWN:
        return ""
    version = getattr(sys.modules.get(package), "__version__", None)
    try:
        return f" of {package} {version if isinstance(version, str) else importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.lru_cache(maxsize=4096)
def written_by(kind: type) -> frozenset[str]:
    """Attributes that code of a package's class writes behind its beginning."""
    found: set[str] = set()
    for each in kind.__mro__:
        if each.__module__ not in ("builtins", "torch.nn.modules.module"):
            for name, value in each.__dict__.items():
                if isinstance(value, types.FunctionType) and name not in MAKERS:
                    found |= _stored(value.__code__)
    return frozenset(found)


def _stored(code: types.CodeType) -> set[str]:
    stores, extended = opcode.opmap["STORE_ATTR"], opcode.opmap["EXTENDED_ARG"]
    found, above, raw = set[str](), 0, code.co_code
    for at in range(0, len(raw), 2):
        argument = raw[at + 1] | above
        if raw[at] == stores and argument < len(code.co_names):
            found.add(code.co_names[argument])
        above = argument << 8 if raw[at] == extended else 0
    return found


@functools.lru_cache(maxsize=4096)
def _strings_of(code: types.CodeType) -> frozenset[str]:
    """Keys that the code may read mappings by."""
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    short = (each for each in code.co_consts if isinstance(each, str) and len(each) <= NAME_MAX)
    return frozenset(short).union(*(_strings_of(each) for each in inner))


def _attributes(value: Any) -> Mapping[str, Any]:
    try:
        found = value.__dict__
    except Exception:  # none, or a proxy of what is not there
        return {}
    return found if isinstance(found, Mapping) else {}


def _overrides(kind: type, name: str) -> bool:
    """A method of a package's class, which calls it."""
    return any(name in base.__dict__ for base in kind.__mro__[1:-1] if not is_own_class(base))


def _slots(kind: type) -> list[str]:
    slots = kind.__dict__.get("__slots__", ())
    return [slots] if isinstance(slots, str) else [each for each in slots if isinstance(each, str)]


def _is_setting(value: Any) -> bool:
    """Of an object of a package: a probability, a strength, a range; not a size, which samples show, or a count."""
    if isinstance(value, (tuple, list)):
        return 0 < len(value) <= 16 and any(isinstance(each, float) for each in value)
    return isinstance(value, (bool, float))


def _place(module: str | None) -> str:
    """Of a helper's file, before names in it."""
    last = (module or "").rpartition(".")[2]
    return "" if last in ("__main__", "__mp_main__", "") or module == "builtins" else f"{last}."
