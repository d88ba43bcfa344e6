"""The loss of the same samples once more, where all is different that must not matter: another thread computes, clocks show another time,
and the weights lie where the run will have them, so that whoever kept a view of them has something else in it.

What draws from a generator that nobody seeds gives another loss as well.
"""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from motley._errors import Error
from motley._trials._trial import Pass, Trial

EQUAL = 1e-5  # of the largest element of a gradient: float32 computed twice
ROUGHLY = {"fp32": 1e-3, "bf16": 3e-2}  # where kernels may add in any order
STILL = 5  # times that a loss is the same where clocks stand
AHEAD_S = 86_400 * 365  # that clocks are ahead meanwhile: behind, a loss that waits for a time would wait a year
ASKED_MAX = 1000  # that a clock which stands is asked before it goes: what waits for it would wait for ever
CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")

UNSEEDED = ("is another one each time it is computed on the same samples: it draws from a generator that nobody seeds "
            "(numpy's default_rng(), secrets, uuid), or reads what changes by itself",
            "draw from random, numpy.random or torch without a generator of your own: these are seeded alike on all machines")
CLOCK = ("reads a clock, and no two machines read the same at the same step",
         "the loss gets `step` and `epoch` where it asks for them by name")
VIEW = ("reads a view of a weight that the script kept (detach(), .data, a flat tensor), and a run has the weights elsewhere",
        "read the weight itself in the loss: model.layer.weight.detach()")
THREAD = ("reads what only the script's own thread has (a ContextVar, threading.local, a `with` around the run), and another one "
          "computes",
          "motley.Run(..., state={...}), or a global that is set before the run")

Again = Callable[[], Pass]


def check(trial: Trial, first: Pass) -> None:
    """first: what the first samples gave before. Errors: they give something else now, with what that depends on."""
    def again() -> Pass:
        return trial.gradient(trial.fetch(0, trial.samples), trial.samples)

    close = EQUAL if trial.device.type == "cpu" else ROUGHLY[trial.precision]
    with _other_time(), _elsewhere(trial):
        if same(_tried(again, thread=True), first, close):
            return
    found = _tried(again)
    if not same(found, first, close):
        with _other_time(stands=True):
            still, *others = [_tried(again) for _ in range(STILL)]
        stands = not isinstance(still, Exception) and all(same(other, still, close) for other in others)
        raise _refusal(CLOCK if stands else UNSEEDED, found, first)
    ways = [(CLOCK, _other_time(), False), (VIEW, _elsewhere(trial), False), (THREAD, contextlib.nullcontext(), True)]
    for words, where, thread in ways:
        with where:
            found = _tried(again, thread)
        if not same(found, first, close):
            raise _refusal(words, found, first)


def _refusal(words: tuple[str, str], found: Pass | Exception, first: Pass) -> Error:
    told = ""
    if isinstance(found, Exception):
        told = f" ({type(found).__name__}: {found})"
    elif found.mean == found.mean != first.mean:
        told = f" ({first.mean:.6g}, then {found.mean:.6g})"
    return Error(f"the loss {words[0]}{told}", words[1])


def _tried(again: Again, thread: bool = False) -> Pass | Exception:
    found: list[Pass | Exception] = []

    def run() -> None:
        try:
            found.append(again())
        except Exception as error:
            found.append(error)

    if thread:
        other = threading.Thread(target=run, name="motley-trial")
        other.start()
        other.join()
    else:
        run()
    return found[0]


def same(found: Pass | Exception, first: Pass, close: float) -> bool:
    if isinstance(found, Exception) or found.gradients.keys() != first.gradients.keys():
        return False
    largest = max((float(g.abs().max()) for g in first.gradients.values() if g.numel()), default=0.0)
    numbers = [(found.mean, first.mean), (found.weight, first.weight)]
    if not all(abs(a - b) <= close * abs(b) or a != a and b != b for a, b in numbers):
        return False
    return all(float((g - first.gradients[name]).abs().nan_to_num(torch.inf).max()) <= close * largest or not _finite(first.gradients[name])
               for name, g in found.gradients.items() if g.numel())


def _finite(gradient: torch.Tensor) -> bool:
    return bool(gradient.isfinite().all())


@contextlib.contextmanager
def _other_time(stands: bool = False) -> Iterator[None]:
    """Of this thread and new ones, as far as it is asked for as time.time() and the like. stands: it is the same at the first ASKED_MAX."""
    kept = {name: getattr(time, name) for clock in CLOCKS for name in (clock, f"{clock}_ns") if hasattr(time, name)}
    others = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}

    def told(function: Callable[[], Any], by: int) -> Callable[[], Any]:
        begun, asked = function(), itertools.count()

        def clock() -> Any:
            if threading.get_ident() in others or stands and next(asked) >= ASKED_MAX:
                return function()
            return begun if stands else function() + by

        return clock

    for name, function in kept.items():
        setattr(time, name, told(function, AHEAD_S * (1_000_000_000 if name.endswith("_ns") else 1)))
    try:
        yield
    finally:
        for name, function in kept.items():
            setattr(time, name, function)


@contextlib.contextmanager
def _elsewhere(trial: Trial) -> Iterator[None]:
    """The trained weights have memory of their own, and there is no number where they were."""
    kept = [(parameter, parameter.data, parameter.detach().clone()) for parameter in dict.fromkeys(trial.parameters.values())]
    for parameter, _, values in kept:
        parameter.data = values.clone()
    with torch.no_grad():
        for _, data, _ in kept:
            with contextlib.suppress(RuntimeError):  # one number in several places
                data.fill_(torch.nan)
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, data, values in kept:
                with contextlib.suppress(RuntimeError):
                    data.copy_(values)
                parameter.data = data
