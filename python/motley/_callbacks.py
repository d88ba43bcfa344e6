"""Whom a script wants told of steps and epochs, on the head."""

from collections.abc import Callable, Iterable
from typing import Any

import torch

from motley import _binding, _core, _launch, _notebook
from motley._epoch import Step
from motley._errors import Error
from motley._work import Work


class Callbacks:
    """callbacks: objects with on_step, on_epoch or both.  on_step: gets the model with the weights of each step, for which the run is held.

    Errors: an object with neither.
    """

    def __init__(self, callbacks: Iterable[Any], on_step: Callable[[Any, Step], Any] | None):
        table = _notebook.table() if _launch.role() == "train" else None
        self._callbacks = [*callbacks, *([table] if table is not None else [])]
        self._on_step = on_step
        for callback in self._callbacks:
            if not any(callable(getattr(callback, name, None)) for name in ("on_step", "on_epoch")):
                raise Error(f"callbacks: {type(callback).__name__} has neither on_step nor on_epoch",
                            "class Logger:\n    def on_epoch(self, epoch): ...")

    @property
    def holds_steps(self) -> bool:
        return self._on_step is not None

    @property
    def wants_steps(self) -> bool:
        return self.holds_steps or bool(self.of("on_step"))

    def of(self, what: str) -> list[Callable[[Any], None]]:
        return [getattr(callback, what) for callback in self._callbacks if hasattr(callback, what)]

    def step(self, work: Work, owner: _binding.Owner) -> Callable[[_core.Happening], None]:
        """To be called after each step. Errors: what the script did to the model then."""
        flat = torch.zeros(work.layout.flat_elements if self.holds_steps else 0)

        def told(happening: _core.Happening) -> None:
            step = Step(happening)
            for on_step in self.of("on_step"):
                on_step(step)
            if self._on_step is None or happening.state is None:
                return
            happening.state.copy_weights(work.layout, flat)
            with owner.shown(flat, happening.version):
                self._on_step(work.parts.given, step)
                computation = owner.current()
                if computation is not None and (name := computation.differs(flat)) is not None:
                    raise Error(f"on_step changed {name} of the model, which the other machines would not see",
                                "keep what it makes beside the model; constrain weights by torch.nn.utils.parametrize")

        return told
