"""Numbers as scripts write them: of Python, numpy or torch, whole ones also as floats from a table of settings."""

import hashlib
import math
import operator
from typing import Any

from motley._errors import Error

COUNT_MAX = 1 << 40  # as the core has it: samples, steps
RATE_MAX = 3.4e38  # of learning: weights are float32
CLIP_MAX = 1e30  # a norm that no gradient has whose weights are numbers
SEED_LOW, SEED_HIGH = -(1 << 63), (1 << 64) - 1  # as torch.manual_seed takes them


def whole(name: str, value: Any, low: int, high: int, instead: str) -> int:
    """A float that is one counts as one. Errors: it is none, or not from low to high."""
    found: int | None = None
    if not isinstance(value, (str, bytes)):
        try:
            found = operator.index(value)
        except (TypeError, RuntimeError):  # also of tensors
            try:
                found = int(value) if float(value) == int(value) else None
            except (TypeError, ValueError, OverflowError, RuntimeError):
                pass
    if found is None or not low <= found <= high:
        limits = f"at least {low}" if high == COUNT_MAX else f"from {_power(low)} to {_power(high)}"
        raise Error(f"{name}: expected a whole number, {limits}, found {value!r}", instead)
    return found


def count(name: str, value: Any, instead: str, least: int = 1) -> int:
    return whole(name, value, least, COUNT_MAX, instead)


def number(name: str, value: Any, low: float, high: float, instead: str) -> float:
    """Errors: it is none, or not from low to high."""
    try:
        found = math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        found = math.nan
    if not low <= found <= high:
        limits = "" if low == -math.inf else f", at least {low:g}" if high == math.inf else f" from {low:g} to {high:g}"
        raise Error(f"{name}: expected a number{limits}, found {value!r}", instead)
    return found


def seed(value: Any) -> int:
    """Any that torch takes, as the core takes it: the larger and the negative ones are others there, which are as good."""
    found = whole("seed", value, SEED_LOW, SEED_HIGH, "seed=1")
    if 0 <= found <= COUNT_MAX:
        return found
    return int.from_bytes(hashlib.sha256(str(found).encode()).digest()[:5], "little")


def norm(value: Any) -> float:
    """The largest of a gradient; 0: no clipping. Without end, as those write it who want the norm for a log, is a very large one."""
    return 0.0 if value is None else min(number("clip_norm", value, 0, math.inf, "clip_norm=1.0"), CLIP_MAX)


def _power(limit: int) -> str:
    """As people write it, where it is a power of two."""
    size = abs(limit) + (limit > 0 and limit & (limit + 1) == 0)
    exact = size > 1 << 20 and size & (size - 1) == 0
    return f"{'-' if limit < 0 else ''}2**{size.bit_length() - 1}{' - 1' if limit > 0 and size != limit else ''}" if exact else str(limit)
