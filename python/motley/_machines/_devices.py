"""The devices of this machine, as the torch of this Python sees them."""

import contextlib
import functools
import importlib.metadata
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import torch

from motley import _core
from motley._errors import Error, in_words

FREE_OF_CUDA = 0.9
RECOMMENDED_OF_MPS = 0.7  # it is the memory of everything else on that machine, too
TRACEBACK_MAX = 3000  # characters of it, in a message
OF_REPORTS = ("numpy", "torchvision", "transformers", "lightning", "mlx", "jax")
SHARED_BY_THREADS = 1 << 15  # elements that torch's kernels give to a thread, at the least


def usable_processors() -> int:
    return _core.machine()[2]


def version() -> str:
    return f"torch {torch.__version__} of this Python"


def devices() -> list[tuple[str, str, int, int]]:
    """(name, description, bytes of memory, threads) of each, accelerators first; threads is 0 for these."""
    found = []
    processor, memory, threads = _core.machine()
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            about = torch.cuda.get_device_properties(index)
            found.append((f"cuda:{index}", about.name, about.total_memory, 0))
    if torch.backends.mps.is_available():
        # What a Mac's GPU computes depends on these two, so whoever reads of a difference reads of them.
        found.append(("mps", f"{processor} GPU, {_core.system()}, torch {torch.__version__.partition('+')[0]}", memory, 0))
    found.append(("cpu", processor, memory, threads))
    return found


def facts() -> list[tuple[str, str]]:
    """What a report of a fault should say of this Python's libraries, by name."""
    cuda = f"ROCm {torch.version.hip}" if torch.version.hip else torch.version.cuda or "not in this torch"
    mps = torch.backends.mps
    found = [("torch", f"{torch.__version__}, {torch.get_num_threads()} threads"), ("cuda", cuda),
             ("mps", "here" if mps.is_available() else "not on this machine" if mps.is_built() else "not in this torch")]
    for name in OF_REPORTS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append((name, importlib.metadata.version(name)))
    return found


def generators(device: torch.device | None = None) -> list[torch.Generator]:
    """Torch's own, which torch.manual_seed seeds: those that a pass on the device may draw from; of None, all that are in use."""
    found = [torch.default_generator]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        if device is None:
            found += torch.cuda.default_generators
        elif device.type == "cuda":
            found.append(torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index])
    if torch.backends.mps.is_available() and (device is None or device.type == "mps"):
        found.append(torch.mps._get_default_mps_generator())
    return found


def seed(number: int) -> None:
    """As torch.manual_seed(), which besides keeps the stack for each kind of card that is not in use: half a millisecond."""
    for generator in generators():
        generator.manual_seed(number)


def has_room(device: torch.device, size: int) -> bool:
    """For so many bytes more, twice over, at the most that was in use. On mps the host's memory is the device's: a copy beside would gain
    little."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return torch.cuda.max_memory_allocated(device) + 2 * size < torch.cuda.memory_reserved(device) + FREE_OF_CUDA * free
    return device.type == "cpu"


def for_trials(asked: list[str]) -> torch.device | None:
    """Where a script's loss is tried: on the first device that will compute, if that has float64; else None."""
    here = [name for name, *_ in devices()]
    first = asked[0] if asked else here[0]
    if first not in here or not first.startswith(("cuda", "cpu")):
        return None
    try:
        torch.empty(1, device=first)
    except Exception:  # a device that cannot be used is told when the model is put on it
        return None
    return torch.device(first)


def memory(device: torch.device, threads: int) -> tuple[int, int, int, int]:
    """Bytes in use, their peak since the last call, what may be used in all (0: nobody knows), and what of that libraries will take
    with so many threads. On the CPU all that the process has is counted."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        used, peak = torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
        budget = torch.cuda.memory_reserved(device) + FREE_OF_CUDA * free
        torch.cuda.reset_peak_memory_stats(device)
        return used, peak, int(budget), 0
    if device.type == "mps":
        budget = RECOMMENDED_OF_MPS * torch.mps.recommended_max_memory()
        return torch.mps.current_allocated_memory(), torch.mps.driver_allocated_memory(), int(budget), 0
    return _core.process_memory(threads)


@contextlib.contextmanager
def limited(device: torch.device) -> Iterator[None]:
    """Meanwhile the process can take no more than the machine can spare, if it computes on the CPU. Errors: out of memory."""
    with _core.MemoryLimit() if device.type == "cpu" else contextlib.nullcontext():
        try:
            yield
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            raise Error(f"the memory of {device} is too small for this model: {error}",
                        "use a smaller model, close other programs, or train on a machine with more memory", "memory") from None


def within_memory(make: Callable[[str, int], Any]) -> Callable[[str, int], Any]:
    """make(device, threads), limited, by the thread that will compute there."""

    def made(device: str, threads: int) -> Any:
        if torch.device(device).type == "cpu":
            threads = threads or usable_processors()
            torch.set_num_threads(threads)
            torch.ones(threads * SHARED_BY_THREADS)  # starts them: later their stacks would count
        with limited(torch.device(device)):
            return make(device, threads)

    return made


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    # The allocators of the CPU and of MPS throw plain errors; only their words tell. The last are oneDNN's.
    words = str(error) if isinstance(error, RuntimeError) else ""
    return any(part in words for part in ("out of memory", "can't allocate memory", "STATUS_ALLOC_FAILED", "could not create a primitive"))


def told(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a computation as the core calls it, which is no place for exceptions."""

    @functools.wraps(method)
    def tried(self: Any, *arguments: Any) -> Any:
        try:
            return method(self, *arguments)
        except Abandoned:
            return "interrupted", "the weights did not come", ""
        except BaseException as error:
            return self._failures.told(error)

    return tried


class Abandoned(BaseException):
    """The task was, before its weights were there. Not an Exception: it is to pass through the script's own handlers."""


class Failures:
    """What a computation says when it could not go on."""

    def __init__(self, device: str):
        self._device, self._said = device, set[str]()

    def told(self, error: BaseException) -> tuple[str, str, str]:
        """(code, what happened, what to try), with the traceback the first time."""
        if is_out_of_memory(error):
            return "memory", f"out of memory on {self._device}: {error}", ""
        if isinstance(error, Error):
            return error.code, error.args[0], error.hint
        text = "".join(traceback.format_exception(error)[-16:])
        if text in self._said:
            return "input", f"the script raised again: {in_words(error)}\n{''.join(traceback.format_tb(error.__traceback__)[-1:])}", ""
        self._said.add(text)
        sys.stderr.write(text)
        return "input", f"the script raised {in_words(error)}\n{text[-TRACEBACK_MAX:]}", ""
