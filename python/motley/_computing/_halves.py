"""Whether a loss is still what was found at the start, now and then while a run goes on: a mean over samples, of which none vanish."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from motley import _core
from motley._computing._work import Work
from motley._errors import Error
from motley._machines import _devices
from motley._samples import _data
from motley._samples._batches import rows_of
from motley._trials._loss import measure_loss

FIRST, EVERY = 20, 2000  # micro-batches until one is looked at
DRAWN = 3  # micro-batches in a row: one may be somebody else's, on another thread
TOLERANCE = {"fp32": 1e-3, "bf16": 5e-2}  # of the loss: rounding is far below, and what is no mean seldom is


class Halves:
    """Of one computation, called by its thread."""

    def __init__(self, work: Work, device: torch.device):
        self._work, self._device = work, device
        self._left = FIRST
        # Somebody draws while samples are read, or in an evaluation beside it.
        self._watches = not work.found.draws and not any(recipe.draws for recipe in (work.train, work.test) if recipe)
        self._drawn = 0

    @contextlib.contextmanager
    def without_draws(self) -> Iterator[None]:
        """Around a loss that drew no random numbers at the start. Errors: now it does, and every machine draws others."""
        if not self._watches:
            yield
            return
        generators = _devices.generators(self._device)
        before = [generator.get_state() for generator in generators]
        yield
        drew = any(not torch.equal(state, generator.get_state()) for generator, state in zip(generators, before, strict=True))
        self._drawn = self._drawn + 1 if drew else 0
        if self._drawn >= DRAWN:
            raise Error("the loss draws random numbers now, and drew none when it was tried at the start; they are not seeded",
                        "draw in every step, also where nothing comes of it: x + (epoch > 1) * torch.randn_like(x)")

    def look(self, task: _core.Task, at: int, size: int, loss: Callable[[Any], Any],
             autocast: Callable[[], contextlib.AbstractContextManager[Any]], of_one_size: bool = False, repeats: int = 1) -> None:
        """After a micro-batch of `size` samples from `at` on. `of_one_size`: the device is to see no other; then the samples of a half go
        through twice. Errors: its loss is not that of its two halves."""
        self._left -= 1
        if self._left > 0 or size < 2 or self._work.acts_on_groups or self._work.train.draws or (of_one_size and (size % 2 or repeats > 1)):
            return
        self._left = EVERY
        sums = []
        for first, last in ((at, at + size), (at, at + size // 2), (at + size // 2, at + size)):
            times = size // (last - first) if of_one_size else 1
            numbers = self._work.train.of_task(task, first, last - first) * times
            batch = _data.move(self._work.train.fetch(numbers), self._device)
            with torch.enable_grad() if self._work.found.needs_grad else torch.no_grad(), autocast():
                mean, weight = measure_loss(loss(batch), len(numbers))
            sums.append(mean.item() * weight / times if weight else 0.0)
        whole, *parts = sums
        if abs(whole - sum(parts)) > TOLERANCE[self._work.precision] * sum(map(abs, parts)):
            raise Error(f"the loss is not a mean over the samples of a batch: of {size} samples of this step it came to {whole:g}, and of "
                        f"two parts of these to {sum(parts):g}",
                        "where it is a mean over tokens or weighted samples, return (mean, weight)")

    def check_rows(self, found: Any, batch: Any, size: int) -> None:
        """`found`: what the loss gave. Errors: samples vanished, and it gave no weight."""
        if self._work.found.rows and not isinstance(found, tuple) and (rows := rows_of(batch)) not in (None, size):
            raise Error(f"collate_fn left {rows} of {size} samples, which the mean over the samples of a whole batch does not know",
                        "return (mean, weight) from the loss: the number of samples that are in it; or leave bad samples out of the data")
