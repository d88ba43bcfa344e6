"""What a script's loss and score give, in numbers."""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from motley._errors import Error, in_words

GROUP = 32  # positions that normalisation layers and random numbers act on together
SUMS = 'return {"accuracy": (model(x).argmax(1) == y).sum()}'
PRECISIONS = {"fp32": None, "bf16": torch.bfloat16}


@contextlib.contextmanager
def any_size(name: str, batch: int, takes_whole: Callable[[Exception], bool]) -> Iterator[None]:
    """Around what computes `name` of a few samples. takes_whole(error): whether it computes a whole `batch` that has those for which it
    raised this. Errors: it does, so it takes no other number."""
    try:
        yield
    except Error:
        raise
    except Exception as error:
        if not takes_whole(error):
            raise
        raise Error(f"the {name} takes a batch of {batch} samples, and of fewer it raises {in_words(error)}. Each machine computes a part "
                    "of a batch, which may have any size",
                    "the number of samples from the batch itself: len(x); torch.export with dynamic_shapes={\"x\": {0: "
                    "torch.export.Dim(\"batch\")}}; fewer groups than channels for a GroupNorm of single values") from error


def measure_loss(found: Any, samples: int) -> tuple[torch.Tensor, float]:
    """What the user's loss gave as (mean, weight). Errors: neither a number nor (mean, weight)."""
    mean, weight = found if isinstance(found, tuple) and len(found) == 2 else (found, samples)
    if isinstance(weight, torch.Tensor) and weight.numel() != 1:
        raise Error(f"the loss returned a number and a tensor of {list(weight.shape)}, expected one number, or (mean, weight)",
                    "return the loss alone")
    if not isinstance(mean, torch.Tensor) or mean.numel() != 1:
        shape = f"a tensor of {list(mean.shape)}" if isinstance(mean, torch.Tensor) else type(mean).__name__
        kept = isinstance(getattr(mean, "loss", None), torch.Tensor)
        raise Error(f"the loss returned {shape}, expected one number (a tensor with a gradient), or (mean, weight)",
                    "return output.loss" if kept else "return the mean over the samples of the batch")
    return mean.reshape(()), float(weight)


def add_scores(sums: dict[str, float], found: Any) -> None:
    """Adds what the user's score gave to the sums. Errors: anything but a mapping of these names to numbers."""
    if not isinstance(found, Mapping) or list(found) != list(sums):
        names = list(found) if isinstance(found, Mapping) else type(found).__name__
        raise Error(f"score: expected {{{', '.join(sums)}}} as in the first batch, found {names}", "return the same names for every batch")
    for name, value in found.items():
        sums[name] += score_of(name, value)


def score_of(name: str, value: Any) -> float:
    """Errors: it is no single number."""
    shape = getattr(value, "shape", ())
    if math.prod(shape) != 1:
        raise Error(f"score: {name} is a tensor of {list(shape)}, expected one number",
                    f'a name for each of its numbers: {{f"{name}_{{i}}": value for i, value in enumerate(counts)}}')
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise Error(f"score: {name} is {type(value).__name__}, expected one number: a sum over the samples", SUMS) from None
