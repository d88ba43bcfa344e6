"""What a script's loss and score give, in numbers."""

from collections.abc import Mapping
from typing import Any

import torch

from motley._errors import Error

GROUP = 32  # positions that normalisation layers and random numbers act on together
PRECISIONS = {"fp32": None, "bf16": torch.bfloat16}


def measure_loss(found: Any, samples: int) -> tuple[torch.Tensor, float]:
    """What the user's loss gave as (mean, weight). Errors: neither a number nor (mean, weight)."""
    mean, weight = found if isinstance(found, tuple) and len(found) == 2 else (found, samples)
    if isinstance(weight, torch.Tensor) and weight.numel() != 1:
        raise Error(f"the loss returned a number and a tensor of {list(weight.shape)}, expected one number, or (mean, weight)",
                    "return the loss alone")
    if not isinstance(mean, torch.Tensor) or mean.numel() != 1:
        shape = f"a tensor of {list(mean.shape)}" if isinstance(mean, torch.Tensor) else type(mean).__name__
        raise Error(f"the loss returned {shape}, expected one number (a tensor with a gradient), or (mean, weight)",
                    "return the mean over the samples of the batch")
    return mean.reshape(()), float(weight)


def add_scores(sums: dict[str, float], found: Any) -> None:
    """Adds what the user's score gave to the sums. Errors: anything but a mapping of these names to numbers."""
    if not isinstance(found, Mapping) or list(found) != list(sums):
        names = list(found) if isinstance(found, Mapping) else type(found).__name__
        raise Error(f"score: expected {{{', '.join(sums)}}} as in the first batch, found {names}", "return the same names for every batch")
    for name, value in found.items():
        sums[name] += float(value)
