"""Whom a script wants told of steps and epochs, on the head."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from motley import _core, _launch, _state
from motley._computing._work import Work
from motley._errors import Error
from motley._models import _binding, _model
from motley._optimizers import _options
from motley._runs import _body, _notebook, _watched
from motley._runs._epoch import Step
from motley._trials import _traces


LOOKS_PART = 0.01  # of the time
BY_NAME = ("an average of the weights: motley.Run(..., ema=0.999), the loss's `teacher`; else the loss gets `step`, `epoch` and `state` "
           "where it asks for them by name")


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
    def pauses_steps(self) -> bool:
        return self._on_step is not None

    @property
    def wants_steps(self) -> bool:
        return self.pauses_steps or bool(self.of("on_step"))

    def of(self, what: str) -> list[Callable[[Any], None]]:
        return [getattr(callback, what) for callback in self._callbacks if hasattr(callback, what)]

    def step(self, work: Work, owner: _binding.Owner, optimizer: torch.optim.Optimizer, state: Callable[[], dict[str, Any]],
             steps: Callable[[int], int]) -> Callable[[_core.Event], None]:
        """To be called after each step; steps(version): its number. Errors: what the script did then to the model, or to what other
        machines would not see."""
        flat = _model.vector(work.layout.flat_elements if self.pauses_steps else 0)
        beside = _Beside(work, optimizer, state, self.pauses_steps)

        def told(event: _core.Event) -> None:
            step = Step(event, steps(event.version))
            with beside.settings("a callback's on_step"):
                for on_step in self.of("on_step"):
                    on_step(step)
            if self._on_step is None or event.state is None:
                return
            event.state.copy_weights(work.layout, flat)
            with owner.shown(flat, event.version), beside.reached("on_step", step.number), beside.settings("on_step"):
                self._on_step(work.parts.given, step)
                computation = owner.current()
                if computation is not None and (name := computation.differs(flat)) is not None:
                    raise Error(f"on_step changed {name} of the model, which the other machines would not see",
                                "keep what it makes beside the model; constrain weights by torch.nn.utils.parametrize")

        return told


class _Beside:
    """What steps depend on beside the model: nothing of it may change between two bodies, since no machine would get to know."""

    def __init__(self, work: Work, optimizer: torch.optim.Optimizer, state: Callable[[], dict[str, Any]], walks: bool):
        self._work, self._optimizer, self._state = work, optimizer, state
        self._traces = _traces.Traces(work.roots, work.parts.root, work.memory, (work.of_run,)) if walks else None
        self._seen: _traces.Seen | None = None
        self._watched = _watched.Watched(work)
        self._looked, self._begun = 0.0, 0.0

    @contextlib.contextmanager
    def settings(self, where: str) -> Iterator[None]:
        options, state, made = _options.options(self._optimizer), _body.pack(self._state(), made=False), _body.made()
        yield
        if _options.options(self._optimizer) != options:
            raise Error(f"{where} changed the optimizer's learning rate or another option, which the steps of a run do not look at",
                        'motley.Run(..., schedule=lambda step: ..., schedule_every="step"), or a scheduler; or change it in the body')
        if _body.pack(self._state(), made=False) != state or any(a is not b for a, b in zip(made, _body.made(), strict=True)):
            raise Error(f"{where} changed run.state or samples of HeadTensors, which travel with the body of an epoch",
                        "change them in the body, as often as evaluate_every= says; the loss gets `step` where it asks for it by name")

    @contextlib.contextmanager
    def reached(self, where: str, step: int) -> Iterator[None]:
        """REQUIRES nothing computes with the model. step: that was made."""
        assert self._traces is not None
        if self._seen is None or self._seen.changes():  # by the step, as far as it may
            self._seen = self._traces.take()
        looks = self._may_look()
        if looks:
            with self._timed():
                sent = _state.of_script(_state.decode(_body.pack(self._state(), made=False)))
                self._watched.before(self._seen, step=step + 1, epoch=step // self._work.train.steps_per_epoch + 1, state=sent)
        yield
        for change in self._seen.changes():
            raise Error(f"{where} changed {change.what}, which the other machines do not see", BY_NAME)
        if looks:
            with self._timed():
                self._watched.check(self._seen, where, BY_NAME)

    def _may_look(self) -> bool:
        """What nobody walks to is looked at by the loss: after the first step, then as often as costs little."""
        self._begun = self._begun or time.monotonic()
        return self._looked <= LOOKS_PART * (time.monotonic() - self._begun)

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            self._looked += time.monotonic() - begun
