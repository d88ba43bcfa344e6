"""A loss in float64, whatever it was written in: there a sum over samples splits to a part in 10^12, and nothing else does."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

NARROW = (torch.float32, torch.float16, torch.bfloat16)
CASTS = ("float", "half", "bfloat16", "double")


class Wide(TorchFunctionMode):
    """What functions of torch are given and give is float64 where it would be narrower; in-place ones keep their tensor."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in ("__get__", "__set__", "__delete__"):
            return func(*args, **kwargs)
        if name in CASTS and args and isinstance(args[0], torch.Tensor):
            return args[0].double()
        if name == "type" and len(args) == 2 and isinstance(args[1], str):
            return args[0].double() if any(kind in args[1] for kind in ("Float", "Half", "BFloat16")) else func(*args, **kwargs)
        if _in_place(name) or kwargs.get("out") is not None:
            return func(*args, **kwargs)
        return widened(func(*widened(args), **widened(kwargs)))


def _in_place(name: str) -> bool:
    if name.startswith("__"):
        return name.startswith("__i") and name != "__invert__" or name == "__setitem__"
    return name.endswith("_")


def widened(value: Any) -> Any:
    """The same, with float64 tensors and types for narrower ones, in tuples, lists and dictionaries, too."""
    if isinstance(value, torch.Tensor):
        return value.double() if value.dtype in NARROW else value
    if isinstance(value, torch.dtype):
        return torch.float64 if value in NARROW else value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(widened(each) for each in value))
    if type(value) in (list, tuple):
        return type(value)(widened(each) for each in value)
    if type(value) is dict:
        return {key: widened(each) for key, each in value.items()}
    return value


@contextlib.contextmanager
def wide(root: nn.Module) -> Iterator[None]:
    """Meanwhile the model's parameters and buffers are float64, and so is what is computed with them. Gradients must be None."""
    tensors = [(p, p.data) for p in dict.fromkeys(root.parameters())]
    buffers = [(module, name, buffer) for module in root.modules() for name, buffer in module._buffers.items()]
    default = torch.get_default_dtype()
    try:
        root.double()
        torch.set_default_dtype(torch.float64)
        with Wide():
            yield
    finally:
        torch.set_default_dtype(default)
        for parameter, data in tensors:
            parameter.grad = None
            parameter.data = data
        for module, name, buffer in buffers:
            module._buffers[name] = buffer
