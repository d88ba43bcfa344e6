"""What is the script's own, and what is a library's. Without torch."""

import argparse
import functools
import importlib.util
import os
import sys
import sysconfig
import types

# Methods that nobody names.
CALLED = ("forward", "__call__", "__getitem__", "__getattr__", "__getattribute__", "__get__", "__float__", "__int__", "__bool__", "__len__",
          "__iter__", "__mul__", "__rmul__", "__add__", "__radd__", "__getitems__", "__torch_function__")
HOLDERS = (argparse.Namespace, types.SimpleNamespace)  # whose attributes are the script's, though their class is not
TORCH = importlib.util.find_spec("torch")
LIBRARIES = tuple(os.path.realpath(path) + os.sep for path in {
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib")), os.path.dirname(os.path.dirname(__file__)),
    *((TORCH.submodule_search_locations or ()) if TORCH is not None else ())})
PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


@functools.lru_cache(maxsize=4096)
def is_own(file: str) -> bool:
    """Whether code of that file is the script's, not a library's."""
    if not file or file.startswith("<frozen"):
        return False
    real = os.path.realpath(file)
    return not real.startswith(LIBRARIES) and not any(part in real for part in PACKAGES)


@functools.lru_cache(maxsize=4096)
def is_own_class(kind: type) -> bool:
    if kind.__module__ in ("builtins", "torch.nn.modules.module"):
        return False
    module = sys.modules.get(kind.__module__)
    return is_own(getattr(module, "__file__", None) or f"{os.sep}<{kind.__module__}>") if module is not None else True


@functools.lru_cache(maxsize=4096)
def names_of(code: types.CodeType) -> frozenset[str]:
    """Of globals, attributes and what is imported, in a function and those inside it."""
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return frozenset(code.co_names).union(*(names_of(each) for each in inner))
