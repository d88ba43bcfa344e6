"""Optimizers and schedulers are read, not run: the coordinator makes the updates. A scheduler is stepped ahead on a copy."""

import copy
import warnings
from typing import Any

import torch
from torch.optim import lr_scheduler

from motley._errors import Error

# (lr, momentum, dampening, nesterov, weight_decay, beta1, beta2, eps) of a parameter group.
Group = tuple[float, float, float, bool, float, float, float, float]
# (lr, momentum, beta1, beta2) of a parameter group at a step.
Rates = tuple[float, float, float, float]
LEFT_ALONE: Group = (0.0, 0.0, 0.0, False, 0.0, 0.9, 0.999, 1e-8)

SUPPORTED = "torch.optim.SGD, Adam and AdamW"


class ReadOptimizer:
    """What an optimizer would do: `kind` ("sgd", "adam", "adamw"), `groups`, and the group number of each parameter.

    Errors: a class or an option that the coordinator does not know, an optimizer that has made steps already.
    """

    def __init__(self, optimizer: Any):
        self.optimizer = optimizer
        self.kind = _kind(optimizer)
        if optimizer.state:
            raise Error("the optimizer has made steps already; the coordinator starts with fresh state",
                        "make a new optimizer for the run")
        for group in optimizer.param_groups:
            refused = [name for name in ("maximize", "amsgrad", "differentiable") if group.get(name)]
            if refused:
                raise Error(f"the optimizer's option {refused[0]}=True is not supported", f"{SUPPORTED} without {refused[0]}")
        self.groups: list[Group] = [_numbers(group) for group in optimizer.param_groups]
        self.numbers = {id(parameter): number for number, group in enumerate(optimizer.param_groups) for parameter in group["params"]}

    @property
    def left_alone(self) -> int:
        """The number of a group that no update changes, behind the optimizer's own."""
        return len(self.groups)

    def all_groups(self) -> list[Group]:
        return [*self.groups, LEFT_ALONE]


def _kind(optimizer: Any) -> str:
    kinds = {torch.optim.SGD: "sgd", torch.optim.Adam: "adam", torch.optim.AdamW: "adamw"}
    kind = kinds.get(type(optimizer))
    if kind is None:
        raise Error(f"the optimizer {type(optimizer).__name__} is not supported: the coordinator updates, and knows {SUPPORTED}",
                    f"use one of {SUPPORTED}")
    if kind == "adam" and any(group.get("decoupled_weight_decay") for group in optimizer.param_groups):
        kind = "adamw"
    return kind


def _numbers(group: dict[str, Any]) -> Group:
    beta1, beta2 = group.get("betas", (0.9, 0.999))
    return (float(group["lr"]), float(group.get("momentum", 0)), float(group.get("dampening", 0)), bool(group.get("nesterov", False)),
            float(group["weight_decay"]), float(beta1), float(beta2), float(group.get("eps", 1e-8)))


def table(read: ReadOptimizer, scheduler: Any, rows: int) -> list[Rates]:
    """The rates of all groups (those of `read.all_groups()`) before each of `rows` steps of the scheduler, row by row."""
    if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
        raise Error("the scheduler ReduceLROnPlateau follows evaluations, which cannot be known beforehand",
                    "use a scheduler of the number of steps or epochs, such as CosineAnnealingLR")
    if not isinstance(scheduler, lr_scheduler.LRScheduler):
        raise Error(f"schedule: expected a scheduler of torch.optim.lr_scheduler, found {type(scheduler).__name__}",
                    "motley.Run(..., schedule=CosineAnnealingLR(optimizer, steps))")
    if scheduler.optimizer is not read.optimizer:
        raise Error("schedule: the scheduler is of another optimizer", "make it with the optimizer that motley.Run gets")
    shadow = _shadow(read.optimizer)
    ahead = copy.deepcopy(scheduler, {id(read.optimizer): shadow})
    rates: list[Rates] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the shadow makes no steps
        for row in range(rows):
            for group in [_numbers(group) for group in shadow.param_groups] + [LEFT_ALONE]:
                rates.append((group[0], group[1], group[5], group[6]))
            if row + 1 < rows and not _step(ahead):
                rates += rates[-len(shadow.param_groups) - 1 :]  # held: the core takes the last row for all that follow
                break
    return rates


def _step(scheduler: Any) -> bool:
    try:
        scheduler.step()
    except ValueError:  # OneCycleLR beyond its end
        return False
    return True


def _shadow(optimizer: Any) -> Any:
    """An optimizer with the same groups over nothing, so that stepping its scheduler touches no weights."""
    groups = [{**group, "params": [torch.zeros(1)]} for group in optimizer.param_groups]
    shadow = type(optimizer)([{"params": group["params"]} for group in groups], lr=0.1)
    for fresh, group in zip(shadow.param_groups, groups, strict=True):
        fresh.update(group)
    return shadow
