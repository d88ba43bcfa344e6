"""Values that a script's code reads, in words that other machines compare: numbers, short words, lists of these. Left out is what one
machine has and another need not: paths, names of machines and devices, what is in the environment, times of day, numbers of helpers."""

import enum
import hashlib
import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any

from motley._machines import _system

SHOWN_MAX = 60  # characters of a value that people are shown as it is
ITEMS_MAX, MAPPED_MAX = 64, 256  # of a list, of a mapping
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_ +-]{0,39}")
DEVICE = re.compile(r"(cpu|cuda|gpu|mps|xpu|hpu|npu|xla|tpu|hip|meta)s?(:\d+)?", re.IGNORECASE)
CODED = re.compile(r"(?=.*\d)[0-9a-fA-F-]{8,}")  # identifiers made by chance, hashes
# Words of names whose values say what a machine is like, not what is computed.
OF_MACHINES = frozenset({"cpu", "cpus", "cuda", "device", "devices", "gpu", "gpus", "mps", "tpu", "xpu", "host", "hostname", "rank",
                         "worker", "workers", "thread", "threads", "processes", "pid", "port", "world", "fused", "flash", "compile",
                         "compiled", "checkpointing", "verbose", "debug", "profile", "available", "prefetch", "username", "uuid"})
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
CLOCKS: tuple[Callable[[], float], ...] = (time.perf_counter, time.monotonic)
BEGUN = [clock() for clock in CLOCKS]
UNITS = (1, 1_000, 1_000_000, 1_000_000_000)  # of a time in seconds, milliseconds …
YEAR_2010, YEAR_2100 = 1_262_304_000, 4_102_444_800
BEFORE, BOOTED = 60.0, 1000.0  # seconds: of the process before this module was imported; below, a number may be a setting


def of_machine(name: str) -> bool:
    """Whether a value of that name is a machine's own affair."""
    return any(part.lower() in OF_MACHINES for part in PARTS.findall(name))


def word(value: Any) -> str | None:
    """A plain value, "=TEXT" or "#0:HASH"; None where it is no such, or differs between machines by right."""
    text = _text(value, 0)
    if text is None:
        return None
    return f"={text}" if len(text) <= SHOWN_MAX else f"#0:{hashed(text)}"


def hashed(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def _text(value: Any, depth: int) -> str | None:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name} {_text(value.value, depth + 1) or ''}"
    if value is None or isinstance(value, bool) or (type(value).__module__, type(value).__name__) == ("torch", "dtype"):
        return str(value).removeprefix("torch.")
    if type(value).__module__ == "numpy" and callable(getattr(value, "item", None)) and getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, (int, float)):
        return None if _is_time(value) else str(value) if isinstance(value, int) and abs(value) < 1 << 63 else f"{value:.6g}"
    if isinstance(value, complex):
        return f"{value:.6g}"
    if isinstance(value, str):
        return value if WORD.fullmatch(value) and not _is_places_own(value) else None
    if isinstance(value, (tuple, list, set, frozenset)) and len(value) <= ITEMS_MAX and depth < 4:
        texts = [_text(each, depth + 1) for each in value]
        if any(text is None for text in texts):
            return None
        parts = [text for text in texts if text is not None]
        return f"[{', '.join(sorted(parts) if isinstance(value, (set, frozenset)) else parts)}]"
    return None


def _is_places_own(text: str) -> bool:
    """Arguments that are no paths are the same on all machines; of one that is, its name may be read."""
    if any(os.sep in word and text in os.path.normpath(word).split(os.sep) for word in sys.argv[1:]):
        return True
    if DEVICE.fullmatch(text) or CODED.fullmatch(text) or os.path.exists(text):
        return True
    return text in os.environ.values() or text.lower() in _system.names()


def _is_time(value: float) -> bool:
    """Of day, or of a clock while this process ran."""
    if any(YEAR_2010 * unit <= value <= YEAR_2100 * unit for unit in UNITS):
        return isinstance(value, float) or value % 1000 != 0
    if not isinstance(value, float) or value < BOOTED or (value * 1024).is_integer():
        return False
    return any(begun - BEFORE <= value <= clock() for begun, clock in zip(BEGUN, CLOCKS, strict=True))
