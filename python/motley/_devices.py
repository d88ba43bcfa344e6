"""The devices of this machine, as the torch of this Python sees them."""

import os
import platform

import torch

FREE_OF_CUDA = 0.9
RECOMMENDED_OF_MPS = 0.7  # it is the memory of everything else on that machine, too


def usable_processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(": ", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "processor"


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 0


def devices() -> list[tuple[str, str, int, int]]:
    """(name, description, bytes of memory, threads) of each, accelerators first; threads is 0 for these."""
    found = []
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            about = torch.cuda.get_device_properties(index)
            found.append((f"cuda:{index}", about.name, about.total_memory, 0))
    if torch.backends.mps.is_available():
        found.append(("mps", f"{_processor()} GPU", _memory_bytes(), 0))
    found.append(("cpu", _processor(), _memory_bytes(), usable_processors()))
    return found


def memory(device: torch.device) -> tuple[int, int, int]:
    """Bytes in use, their peak since the last call, and what may be used in all (0: nobody knows)."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        used, peak = torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
        budget = torch.cuda.memory_reserved(device) + FREE_OF_CUDA * free
        torch.cuda.reset_peak_memory_stats(device)
        return used, peak, int(budget)
    if device.type == "mps":
        budget = RECOMMENDED_OF_MPS * torch.mps.recommended_max_memory()
        return torch.mps.current_allocated_memory(), torch.mps.driver_allocated_memory(), int(budget)
    return 0, 0, 0


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    # The allocators of the CPU and of MPS throw plain errors; only their words tell.
    words = str(error) if isinstance(error, RuntimeError) else ""
    return any(part in words for part in ("out of memory", "can't allocate memory", "STATUS_ALLOC_FAILED"))
