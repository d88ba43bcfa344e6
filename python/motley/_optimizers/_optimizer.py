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

# (lr, momentum, dampening, nesterov, weight_decay, beta1, beta2, eps) of a parameter group.
Group = tuple[float, float, float, bool, float, float, float, float]
# (lr, momentum, beta1, beta2) of a parameter group at a step.
Rates = tuple[float, float, float, float]
LEFT_ALONE: Group = (0.0, 0.0, 0.0, False, 0.0, 0.9, 0.999, 1e-8)

KINDS = {torch.optim.SGD: "sgd", torch.optim.Adam: "adam", torch.optim.AdamW: "adamw"}
OUTSIDE = "script"
WARM_UP = 0.5  # of the largest learning rate: a schedule that begins below is a warm-up
WARM_UP_ROWS = 100_000


class ReadOptimizer:
    """What an optimizer would do: `kind` ("sgd", "adam", "adamw", or OUTSIDE for what only it knows itself), `groups`, and the group
    number of each parameter.

    Errors: no optimizer of torch's, one that has made steps already.
    """

    def __init__(self, optimizer: Any):
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise Error(f"optimizer: expected one of torch.optim, found {type(optimizer).__name__}",
                        "torch.optim.AdamW(model.parameters())")
        self.optimizer = optimizer
        self.kind = _kind(optimizer)
        # Some make their state beforehand, and count the steps in it.
        if any(float(state.get("step", 1)) > 0 for state in optimizer.state.values()):
            raise Error("the optimizer has made steps already; the coordinator starts with fresh state",
                        "make a new optimizer for the run")
        self.groups: list[Group] = [_numbers(group) for group in optimizer.param_groups]
        self.numbers = {id(parameter): number for number, group in enumerate(optimizer.param_groups) for parameter in group["params"]}

    @property
    def left_alone(self) -> int:
        """The number of a group that no update changes, behind the optimizer's own."""
        return len(self.groups)

    def all_groups(self) -> list[Group]:
        return [*self.groups, LEFT_ALONE]


def _kind(optimizer: Any) -> str:
    kind = KINDS.get(type(optimizer), OUTSIDE)
    if any(group.get(option) for group in optimizer.param_groups for option in ("maximize", "amsgrad", "differentiable")):
        return OUTSIDE
    if kind == "adam" and any(group.get("decoupled_weight_decay") for group in optimizer.param_groups):
        kind = "adamw"
    return kind


def _numbers(group: dict[str, Any]) -> Group:
    def number(key: str, default: float) -> float:
        value = group.get(key)
        return float(value) if isinstance(value, (int, float, torch.Tensor)) else default

    betas = group.get("betas")
    beta1, beta2 = betas if isinstance(betas, tuple) and len(betas) == 2 else (0.9, 0.999)
    return (number("lr", 0), number("momentum", 0), number("dampening", 0), bool(group.get("nesterov", False)),
            number("weight_decay", 0), float(beta1), float(beta2), number("eps", 1e-8))


def table(read: ReadOptimizer, scheduler: Any, rows: int) -> list[Rates]:
    """The rates of all groups (those of `read.all_groups()`) before each of `rows` steps of the scheduler, row by row. Errors: a schedule
    of what only the start of a run sets."""
    if callable(scheduler) and not isinstance(scheduler, lr_scheduler.LRScheduler):
        return [(_rate(scheduler, row), group[1], group[5], group[6]) if group is not LEFT_ALONE else _rates(LEFT_ALONE)
                for row in range(rows) for group in read.all_groups()]
    if not isinstance(scheduler, lr_scheduler.LRScheduler):
        raise Error(f"schedule: expected a scheduler of torch.optim, or a function of the step, found {type(scheduler).__name__}",
                    "motley.Run(..., schedule=CosineAnnealingLR(optimizer, steps))")
    ahead, shadow = _on_shadow(read, scheduler)
    rates: list[Rates] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the shadow makes no steps
        for row in range(rows):
            for number, group in enumerate([_numbers(group) for group in shadow.param_groups]):
                if group[2:5] != read.groups[number][2:5] or group[7] != read.groups[number][7]:
                    raise Error(f"schedule: {type(scheduler).__name__} changes weight_decay or another option that a run keeps",
                                "schedule the learning rate, the momentum or the betas; start another motley.Run for the rest")
                rates.append(_rates(group))
            rates.append(_rates(LEFT_ALONE))
            if row + 1 < rows and not step(ahead):
                rates += rates[-len(shadow.param_groups) - 1 :]  # held: the core takes the last row for all that follow
                break
    return rates


def _rates(group: Group) -> Rates:
    return group[0], group[1], group[5], group[6]


def _rate(schedule: Any, step_number: int) -> float:
    try:
        return float(schedule(step_number))
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
    rates = [row[0] for row in table(read, schedule, min(steps, WARM_UP_ROWS))]
    groups = len(read.all_groups())
    first, peak = max(rates[:groups]), max(rates)
    if first < WARM_UP * peak:
        raise Error(f"schedule: it begins with a learning rate of {first:g} and rises to {peak:g}; is it stepped after each step, or after "
                    "each epoch?", 'schedule_every="step" or schedule_every="epoch"')
    return "epoch"


def step(scheduler: Any) -> bool:
    """False: it has no further step."""
    try:
        scheduler.step()
    except ValueError:  # OneCycleLR beyond its end
        return False
    return True


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
        return [float(group["lr"]) for group in shadow.param_groups] + [LEFT_ALONE[0]]


def _shadow(optimizer: Any) -> Any:
    shadow = torch.optim.SGD([{"params": [torch.zeros(1)]} for _ in optimizer.param_groups], lr=0.1)
    for fresh, group in zip(shadow.param_groups, optimizer.param_groups, strict=True):
        fresh.update({key: copy.deepcopy(value) for key, value in group.items() if key != "params"})
    shadow.defaults = dict(optimizer.defaults)
    return shadow


def state(read: ReadOptimizer, layout: _core.Layout, names: list[_model.Named], state: _core.State) -> dict[torch.Tensor, dict[str, Any]]:
    """The coordinator's state of SGD, Adam and AdamW as torch has it, by parameter, as after as many steps of its own."""
    flat = torch.zeros(layout.flat_elements)
    found: dict[torch.Tensor, dict[str, Any]] = {}
    for kind in state.optimizer_states:
        state.copy_optimizer(kind, layout, flat)
        for named, piece in _model.pieces(layout, names, flat):
            if named.kind != _model.TRAINED or id(named.tensor) not in read.numbers:
                continue
            kept = found.setdefault(named.tensor, {})
            kept[kind] = piece.to(named.tensor.device, copy=True)
            if kind.startswith("exp_avg"):
                kept["step"] = torch.tensor(float(state.version))
    return found
