"""Whether a change of what a loss reads can change its gradient alone, and not its value: what leaves a part of the value out of the
gradient (detach() and the like), makes a gradient of its own, or is code of a library that nobody looks into."""

import sys
import types
from typing import Any

from torch import nn
from torch.nn.modules import module as of_modules

from motley._trials._own import is_own, is_own_class

# Names in the script's code. A number of Python that was made of a tensor is left out as well.
APART = frozenset({
    "detach", "detach_", "data", "no_grad", "inference_mode", "enable_grad", "set_grad_enabled", "is_grad_enabled", "requires_grad",
    "requires_grad_", "item", "tolist", "numpy", "tensor", "as_tensor", "from_numpy", "float", "int", "round", "__array__",
    "grad", "grad_fn", "autograd", "Function", "apply", "backward", "retain_grad", "register_hook", "register_full_backward_hook",
    "register_full_backward_pre_hook", "register_backward_hook", "register_multi_grad_hook", "register_post_accumulate_grad_hook",
    "checkpoint", "func", "jit", "compile", "library", "ops", "getattr", "eval", "exec", "__import__", "import_module"})
KNOWN = frozenset({"torch", "numpy", "math", "builtins", "motley"} | (set(sys.stdlib_module_names) - {"ctypes", "importlib"}))


def package_of(value: Any) -> str:
    """Of what code names: "" for the script's own."""
    if isinstance(value, types.ModuleType):
        return "" if is_own(getattr(value, "__file__", None) or "") else value.__name__.partition(".")[0]
    if isinstance(value, types.FunctionType):
        return "" if is_own(value.__code__.co_filename) else (value.__module__ or "?").partition(".")[0]
    kind = value if isinstance(value, type) else type(value)
    if isinstance(value, types.BuiltinFunctionType):
        return (value.__module__ or "builtins").partition(".")[0]
    return "" if is_own_class(kind) else kind.__module__.partition(".")[0]


def follow(names: set[str], packages: set[str], model: nn.Module) -> bool:
    """Whether a gradient can be another only where the value is. names, packages: that the code uses."""
    if names & APART or not packages - {""} <= KNOWN or of_modules._global_backward_hooks or of_modules._global_backward_pre_hooks:
        return False
    for each in model.modules():
        kind = type(each)
        if not (kind.__module__.startswith("torch.nn.") or is_own_class(kind)) or each._backward_hooks or each._backward_pre_hooks:
            return False
    return not any(parameter._backward_hooks for parameter in model.parameters())
