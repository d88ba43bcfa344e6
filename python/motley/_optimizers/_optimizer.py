"""Optimizers and schedulers are read, not run: the coordinator makes the updates. A scheduler is stepped ahead on a copy; one that follows
evaluations is stepped when they are there."""

import copy
import json
import os
import pathlib
import warnings
from typing import Any

import torch
from torch.optim import lr_scheduler

from motley import _core
from motley._errors import Error
from motley._models import _model
from motley._optimizers import _begun, _options
from motley._optimizers._options import LEFT_ALONE, Group, Rates

KINDS = {torch.optim.SGD: "sgd", torch.optim.Adam: "adam", torch.optim.AdamW: "adamw"}
OUTSIDE = "script"
WARM_UP = 0.5  # of the largest learning rate: a schedule that begins below is a warm-up
WARM_UP_ROWS = 100_000


class ReadOptimizer:
    """What an optimizer would do: `kind` ("sgd", "adam", "adamw", or OUTSIDE for what only it knows itself), `groups`, and the group
    number of each parameter. `has_begun`: it has made steps; `begun`: what the core goes on from, where it can.

    Errors: no optimizer of torch's; options with which torch makes no step.
    """

    def __init__(self, optimizer: Any):
        if not isinstance(optimizer, torch.optim.Optimizer):
            several = 'one with a group for each: torch.optim.Adam([{"params": a.parameters()}, {"params": b.parameters(), "lr": 1e-4}])'
            raise Error(f"optimizer: expected one of torch.optim, found {type(optimizer).__name__}",
                        several if isinstance(optimizer, (list, tuple, dict)) else "torch.optim.AdamW(model.parameters())")
        self.optimizer = optimizer
        self.kind, self.why_outside = _kind(optimizer)
        if type(optimizer) in KINDS:
            _options.check(optimizer)
        self.has_begun, self.begun = _begun.has(optimizer), None
        if self.has_begun and self.kind != OUTSIDE:
            self.begun = _begun.read(optimizer, self.kind)
            if self.begun is None:
                self.kind = OUTSIDE
                self.why_outside = f"{type(optimizer).__name__} has not made the same number of steps with all parameters"
        self.updates_before = self.begun.updates if self.begun else 0
        self.numbers = {id(parameter): number for number, group in enumerate(optimizer.param_groups) for parameter in group["params"]}
        self.look()

    def look(self) -> None:
        """At the options it has."""
        whole = self.kind != OUTSIDE
        self.groups: list[Group] = [_options.read(group, whole) for group in self.optimizer.param_groups]

    @property
    def left_alone(self) -> int:
        """The number of a group that no update changes, behind the optimizer's own."""
        return len(self.groups)

    def all_groups(self) -> list[Group]:
        return [*self.groups, LEFT_ALONE]


    def check_rates(self, before: list[dict[str, Any]]) -> None:
        """Where a body has set others than those `before`. Errors: torch would make no step with them, or in fewer digits."""
        for group, options in zip(self.optimizer.param_groups, before, strict=True):
            _options.refuse_coarse("the body of the epoch", group, options)
        if type(self.optimizer) in KINDS:
            _options.check(self.optimizer)


def _kind(optimizer: Any) -> tuple[str, str]:
    """And why it is nothing that the core knows."""
    name = type(optimizer).__name__
    kind = KINDS.get(type(optimizer))
    if kind is None:
        return OUTSIDE, f"{name} is not an optimizer that the coordinator knows (SGD, Adam, AdamW)"
    for group in optimizer.param_groups:
        other = next((option for option in ("maximize", "amsgrad", "differentiable") if group.get(option)), None) or _options.coarse(group)
        if other is not None:
            return OUTSIDE, f"{name} with {other} is not what the coordinator knows as {name}"
    if kind == "adam" and any(group.get("decoupled_weight_decay") for group in optimizer.param_groups):
        kind = "adamw"
    return kind, ""


def table(read: ReadOptimizer, scheduler: Any, rows: int, whole: bool = True) -> list[Rates]:
    """The rates of all groups (those of `read.all_groups()`), row by row: those at first, and after each of `rows` - 1 steps of the
    scheduler; not `whole`: of as many as it has. Errors: a schedule of what only the start of a run sets; one that ends sooner."""
    if callable(scheduler) and not isinstance(scheduler, lr_scheduler.LRScheduler):
        return [(_rate(scheduler, row), group[1], group[5], group[6]) if group is not LEFT_ALONE else _options.rates(LEFT_ALONE)
                for row in range(rows) for group in read.all_groups()]
    if not isinstance(scheduler, lr_scheduler.LRScheduler):
        raise Error(f"schedule: expected a scheduler of torch.optim, or a function of the step, found {type(scheduler).__name__}",
                    "motley.Run(..., schedule=CosineAnnealingLR(optimizer, steps))")
    ahead, shadow = _on_shadow(read, scheduler)
    rates: list[Rates] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the shadow makes no steps
        for row in range(rows):
            rates += _row(read, type(scheduler).__name__, shadow) + [_options.rates(LEFT_ALONE)]
            if row + 1 == rows:
                break
            try:
                ahead.step()
            except Exception as error:
                if not whole:
                    break
                raise Error(f"schedule: {type(scheduler).__name__} goes {row} steps on, and the run takes it {rows - 1} steps on: "
                            f"{type(error).__name__}: {error}",
                            f"one that is made for {rows - 1} steps (OneCycleLR: total_steps), or fewer epochs; schedule_every=\"epoch\" "
                            "steps it once an epoch") from error
    return rates


def _row(read: ReadOptimizer, name: str, shadow: Any) -> list[Rates]:
    found = []
    for group, own, kept in zip(shadow.param_groups, read.optimizer.param_groups, read.groups, strict=True):
        now = _options.read(group, whole=read.kind != OUTSIDE)
        if now[2:5] != kept[2:5] or now[7] != kept[7]:
            raise Error(f"schedule: {name} changes weight_decay or another option that a run keeps",
                        "schedule the learning rate, the momentum or the betas; start another motley.Run for the rest")
        _options.refuse_coarse(f"schedule: {name}", group, own)
        found.append(_options.rates(now))
    return found


def _rate(schedule: Any, step_number: int) -> float:
    try:
        return _options.number(schedule(step_number), "schedule: the learning rate")
    except Error:
        raise
    except Exception as error:
        raise Error(f"schedule: the function failed for step {step_number}: {type(error).__name__}: {error}",
                    "a function of the step (0 for the first) that returns the learning rate") from error


def every(schedule: Any, asked: str | None, read: ReadOptimizer, steps: int) -> str:
    """After what a schedule is stepped. Errors: that was not said, and the learning rate of the first step is small beside later ones: a
    warm-up by steps, of which a whole epoch would be lost."""
    if asked is not None or schedule is None or isinstance(schedule, lr_scheduler.ReduceLROnPlateau):
        return asked or "epoch"
    if not isinstance(schedule, lr_scheduler.LRScheduler):
        return "step" if callable(schedule) else "epoch"
    rates = [row[0] for row in table(read, schedule, min(steps, WARM_UP_ROWS), whole=False)]
    groups = len(read.all_groups())
    first, peak = max(rates[:groups]), max(rates)
    if first < WARM_UP * peak:
        raise Error(f"schedule: it begins with a learning rate of {first:g} and rises to {peak:g}; is it stepped after each step, or after "
                    "each epoch?", 'schedule_every="step" or schedule_every="epoch"')
    return "epoch"


def counts_alone(read: ReadOptimizer, scheduler: Any) -> bool:
    """Whether a step changes nothing of its state but how many there were, and the rates."""
    if not isinstance(scheduler, lr_scheduler.LRScheduler) or isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
        return False
    ahead, _ = _on_shadow(read, scheduler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ahead.step()
    except Exception:  # it has no further step, and the run makes none with it
        return False
    before, now = scheduler.state_dict(), ahead.state_dict()
    changed = {name for name in before if name not in now or repr(before[name]) != repr(now[name])}
    return changed <= {*_begun.COUNTS, _begun.LAST_RATES}


def _on_shadow(read: ReadOptimizer, scheduler: Any) -> tuple[Any, Any]:
    """A copy of the scheduler, and its optimizer: one with the same groups over nothing, so that stepping the scheduler touches no
    weights. Errors: a scheduler of another optimizer."""
    if scheduler.optimizer is not read.optimizer:
        raise Error("schedule: the scheduler is of another optimizer", "make it with the optimizer that motley.Run gets")
    shadow = _shadow(read.optimizer)
    return copy.deepcopy(scheduler, {id(read.optimizer): shadow}), shadow


class Plateau:
    """A ReduceLROnPlateau: after each evaluation it says how to go on. It is run through all of them each time, so that a list of them is
    its whole state; the list is in the run's directory."""

    FILE = "evaluations.json"

    def __init__(self, read: ReadOptimizer, scheduler: Any, scores: list[str]):
        self._scheduler = scheduler
        self._history: list[tuple[int, float]] = []  # (step, what it follows) of evaluations
        self._fresh = _on_shadow(read, scheduler)  # the script's own is stepped as well
        if scheduler.mode == "max" and not scores:
            raise Error('schedule: ReduceLROnPlateau(mode="max") follows the first of the scores, and there is none',
                        'score=..., or mode="min", which follows the loss on the test set')

    def resume(self, directory: str) -> list[tuple[int, list[float]]]:
        """Takes up what a run before had; the learning rates by group that followed from it, by step."""
        try:
            text = pathlib.Path(directory, self.FILE).read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        self._history = [(int(step), float(value)) for step, value in json.loads(text)]
        return [(step, self._rates(number + 1)) for number, (step, _) in enumerate(self._history)]

    def __call__(self, directory: str, step: int, loss: float, scores: list[tuple[str, float]]) -> list[float]:
        value = loss if self._scheduler.mode == "min" else scores[0][1]
        self._history = [each for each in self._history if each[0] < step] + [(step, value)]
        path = pathlib.Path(directory, self.FILE)
        fresh = path.with_suffix(".new")
        with open(fresh, "w", encoding="utf-8") as out:
            out.write(json.dumps(self._history) + "\n")
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(path)
        return self._rates(len(self._history))

    def _rates(self, evaluations: int) -> list[float]:
        scheduler, shadow = copy.deepcopy(self._fresh)
        for _, value in self._history[:evaluations]:
            scheduler.step(value)
        return [_options.number(group["lr"], "schedule: lr") for group in shadow.param_groups] + [LEFT_ALONE[0]]


def _shadow(optimizer: Any) -> Any:
    shadow = torch.optim.SGD([{"params": [torch.zeros(1)]} for _ in optimizer.param_groups], lr=0.1)
    for fresh, group in zip(shadow.param_groups, optimizer.param_groups, strict=True):
        fresh.update({key: copy.deepcopy(value) for key, value in group.items() if key != "params"})
    shadow.defaults = dict(optimizer.defaults)
    return shadow


def state(read: ReadOptimizer, layout: _core.Layout, names: list[_model.Named], state: _core.State) -> dict[torch.Tensor, dict[str, Any]]:
    """The coordinator's state of SGD, Adam and AdamW as torch has it, by parameter, as after as many steps of its own."""
    flat = _model.vector(layout.flat_elements)
    found: dict[torch.Tensor, dict[str, Any]] = {}
    for kind in state.optimizer_states:
        state.copy_optimizer(kind, layout, flat)
        for named, piece in _model.pieces(layout, names, flat):
            if named.kind != _model.TRAINED or named.group == read.left_alone or kind == _begun.BUFFER and not read.groups[named.group][1]:
                continue
            kept = found.setdefault(named.tensor, {})
            kept[kind] = piece.to(named.tensor.device, copy=True)
            if kind.startswith("exp_avg"):
                kept["step"] = torch.tensor(float(read.updates_before + state.version))
    return found
