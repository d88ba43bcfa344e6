"""What is done for a device whose answers cannot be taken as they come, which is what Apple's GPUs are (docs/design/0061-a-mac.md)."""

import random
from typing import Any

import torch

PASS_SIZES, PASS_SECONDS = 2, 0.5
ELEMENTS = 8192  # of the canary: two pages of 16 KB, since a fault was seen that left out all but the first
MARKS_MAX = 4000  # what they come to is exact in float32
NUMBER_MAX = 4096
SPREADS = ("SumBackward0", "SumBackward1")  # what they hand down is one number, many times


def of(device: torch.device) -> "NoCare":
    return Care(device) if device.type == "mps" else NoCare()


class NoCare:
    """Of a device that is believed."""

    def asked(self, fills_up: bool) -> tuple[int, float, bool] | None:
        """Of the core: sizes of pass, seconds of a pass, whether samples may go through several times to make one up."""
        return None

    def begin(self) -> None:
        """Of a task."""

    def mark(self) -> None:
        """Among the work of a pass."""

    def fault(self) -> str | None:
        """Waits for the device. What is wrong with what it did since begin()."""
        return None

    def hand_down_whole(self, loss: torch.Tensor) -> None:
        """Before the backward pass of this loss."""

    def empty_caches(self) -> None:
        """Between tasks."""


class Care(NoCare):
    """Of one computation, on its thread. A canary sings through each task: a vector that starts with a number nobody had before, and to
    which every pass adds another."""

    def __init__(self, device: torch.device):
        self._random = random.Random()  # not the script's
        self._added, self._sum, self._seen = (torch.zeros(ELEMENTS, device=each) for each in (device, device, "cpu"))
        self._expected = self._number = self._marks = 0

    def asked(self, fills_up: bool) -> tuple[int, float, bool] | None:
        return PASS_SIZES, PASS_SECONDS, fills_up

    def begin(self) -> None:
        self._number, self._expected, self._marks = self._random.randrange(1, NUMBER_MAX), self._random.randrange(NUMBER_MAX), 0
        self._added.fill_(self._number)
        self._sum.fill_(self._expected)

    def mark(self) -> None:
        if self._marks < MARKS_MAX:
            self._marks += 1
            self._expected += self._number
            self._sum.add_(self._added)

    def fault(self) -> str | None:
        try:
            self._seen.copy_(self._sum)
        except RuntimeError as error:
            return str(error)
        least, most = (value.item() for value in self._seen.aminmax())
        if least == most == self._expected:
            return None
        found = f"{least:g}" if least == most else f"{least:g} to {most:g}"
        return f"a sum that each pass adds to came to {found}, expected {self._expected}"

    def hand_down_whole(self, loss: torch.Tensor) -> None:
        """The gradients that sums of its graph hand down are made whole: some kernels of Metal read expanded ones wrongly."""
        seen, ahead = set[Any](), [loss.grad_fn]
        while ahead:
            node = ahead.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if node.name() in SPREADS:
                node.register_hook(_whole)
            ahead += [before for before, _ in node.next_functions]


    def empty_caches(self) -> None:
        if self._sum.device.type == "mps":
            torch.mps.empty_cache()


def _whole(handed_down: tuple[Any, ...], _: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(each.contiguous() if isinstance(each, torch.Tensor) else each for each in handed_down)
