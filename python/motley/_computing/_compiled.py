"""Scripts that use torch.compile: one compilation for all sizes of a micro-batch, and none for trials."""

import contextlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import torch


def uses(things: Iterable[Any]) -> bool:
    """Whether any of these modules and functions is compiled, or anything of this process has been."""
    if _frames():
        return True
    return any(getattr(thing, "_compiled_call_impl", None) is not None or hasattr(thing, "_torchdynamo_orig_callable") or
               type(thing).__name__ == "OptimizedModule" for thing in things)


def _frames() -> bool:
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo is not None and bool(dynamo.counters["frames"])


def without() -> contextlib.AbstractContextManager[Any]:
    """Meanwhile compiled code runs as it was written: what is tried once is not worth a compilation. Where the compiler was never loaded
    nothing is compiled, and loading it takes a second."""
    if "torch._dynamo" not in sys.modules:
        return contextlib.nullcontext()
    return torch.compiler.set_stance("force_eager")


def worth_it(size: int) -> contextlib.AbstractContextManager[Any]:
    """Meanwhile `size` samples are computed: the compiler would make another program for one alone, which comes once or twice in a run."""
    return without() if size == 1 else contextlib.nullcontext()


def any_size(batch: Any, size: int) -> None:
    """Tells the compiler that other batches have other numbers of samples: it would learn that by compiling twice."""
    if isinstance(batch, torch.Tensor):
        if batch.dim() > 0 and batch.shape[0] == size and size > 1:
            torch._dynamo.maybe_mark_dynamic(batch, 0)
    elif isinstance(batch, Mapping):
        for value in batch.values():
            any_size(value, size)
    elif isinstance(batch, (list, tuple)):
        for value in batch:
            any_size(value, size)
