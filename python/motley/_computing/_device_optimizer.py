"""Steps whose optimizer runs beside the weights: gradient and state stay on the device, as include/motley/device_optimizer.h says."""

from dataclasses import dataclass, field
from typing import Protocol

import torch

from motley import _core
from motley._machines import _devices
from motley._models import _model, _statistics


class FlatVectors(Protocol):
    """Flat vectors on the device, and those of the host by which they come and go."""

    @property
    def device_weights(self) -> torch.Tensor: ...
    @property
    def device_gradients(self) -> torch.Tensor: ...
    @property
    def weights(self) -> torch.Tensor: ...
    @property
    def gradients(self) -> torch.Tensor: ...
    @property
    def statistics(self) -> _statistics.Statistics: ...


@dataclass
class Numbers:
    """Of a parameter group at one step: src/ps/kernels.h, StepScalars."""

    lr: float
    weight_decay: float
    keep: float
    momentum: float
    fresh: float
    beta2: float
    fresh2: float
    correction: float
    eps: float
    nesterov: bool


@dataclass
class Group:
    weights: list[torch.Tensor] = field(default_factory=list)
    gradients: list[torch.Tensor] = field(default_factory=list)
    states: dict[str, list[torch.Tensor]] = field(default_factory=dict)


class DeviceOptimizer:
    """What python/core/python_device_optimizer.h asks for. Formulas are torch.optim's, by the kernels of its foreach implementations."""

    def __init__(self, layout: _core.Layout, names: list[_model.Named], bound: FlatVectors):
        weights, gradients = bound.device_weights, bound.device_gradients
        self._layout, self._names, self._bound, self._like = layout, names, bound, weights
        self.losses: list[torch.Tensor] = []  # of the newest task, on the device: asking for them early would let it run dry
        self._groups: dict[int, Group] = {}
        for (named, weight), (_, gradient) in zip(self._pieces(weights), self._pieces(gradients), strict=True):
            group = self._groups.setdefault(named.group, Group())
            group.weights.append(weight)
            group.gradients.append(gradient)
        self._trained = [gradient for group in self._groups.values() for gradient in group.gradients]
        self._flat: dict[str, torch.Tensor] = {}
        self._aside: dict[str, torch.Tensor] = {}
        self._way: torch.cuda.Stream | None = None  # from the second place to the host
        self._kind = ""

    def _pieces(self, flat: torch.Tensor) -> list[tuple[_model.Named, torch.Tensor]]:
        return [(named, piece) for named, piece in _model.pieces(self._layout, self._names, flat) if named.kind == _model.TRAINED]

    def settle(self, kind: str) -> None:
        self._like.copy_(self._bound.weights)
        self._kind = kind

    def set_state(self, name: str) -> None:
        flat = self._flat[name] = torch.empty_like(self._like).copy_(self._bound.gradients)
        for named, piece in self._pieces(flat):
            self._groups[named.group].states.setdefault(name, []).append(piece)

    def put_aside(self) -> bool:
        """Keeps all as it is now in a second place: what is `aside`, of which another thread may read. False: no room for that."""
        flats = {"": self._like, **self._flat}
        if not self._aside:
            if not _devices.has_room(self._like.device, len(flats) * self._like.nbytes):
                return False
            self._aside = {name: torch.empty_like(flat) for name, flat in flats.items()}
        for name, flat in flats.items():
            self._aside[name].copy_(flat)
        if self._like.device.type == "cuda":
            self._way = self._way or torch.cuda.Stream(self._like.device)
            self._way.wait_stream(torch.cuda.current_stream(self._like.device))
        return True

    def get_weights(self, aside: bool) -> None:
        self._get("", self._bound.weights, aside)

    def get_state(self, name: str, aside: bool) -> None:
        self._get(name, self._bound.gradients, aside)

    def _get(self, name: str, to: torch.Tensor, aside: bool) -> None:
        if aside and self._way is not None:
            with torch.cuda.stream(self._way):
                to.copy_(self._aside[name], non_blocking=True)
            self._way.synchronize()
        else:
            to.copy_(self._aside[name] if aside else self._flat.get(name, self._like))

    def leave(self) -> None:
        self._flat.clear()
        self._aside.clear()
        for group in self._groups.values():
            group.states.clear()

    def reduce(self, weight: float, samples: int) -> tuple[float, float]:
        """(loss_sum, norm)."""
        torch._foreach_div_(self._trained, weight)
        norm = torch.stack(torch._foreach_norm(self._trained)).norm()
        sums = self._bound.statistics.sums
        if sums:
            torch._foreach_div_(sums, samples)
            norm = norm + 0 * torch.stack(torch._foreach_norm(sums)).norm()  # not finite where they are not
        loss_sum = torch.stack(self.losses).sum() if self.losses else torch.zeros_like(norm)
        found = torch.stack([loss_sum, norm.to(loss_sum.dtype)]).tolist()
        return found[0], found[1]

    def update(self, groups: list[tuple[float, ...]], factor: float) -> None:
        if factor != 1:
            torch._foreach_mul_(self._trained, factor)
        for number, group in self._groups.items():
            (_sgd if self._kind == "sgd" else _adam)(group, Numbers(*groups[number]))
        self._bound.statistics.move()


def _sgd(group: Group, numbers: Numbers) -> None:
    """torch.optim.SGD. The buffer starts from zero, where torch starts from the first gradient: `fresh` is 1 then."""
    if numbers.weight_decay != 0:
        torch._foreach_add_(group.gradients, group.weights, alpha=numbers.weight_decay)
    if numbers.momentum == 0 or not group.states:
        torch._foreach_add_(group.weights, group.gradients, alpha=numbers.lr)
        return
    (momentum,) = group.states.values()
    torch._foreach_mul_(momentum, numbers.momentum)
    torch._foreach_add_(momentum, group.gradients, alpha=numbers.fresh)
    if not numbers.nesterov:
        torch._foreach_add_(group.weights, momentum, alpha=numbers.lr)
        return
    torch._foreach_add_(group.gradients, momentum, alpha=numbers.momentum)
    torch._foreach_add_(group.weights, group.gradients, alpha=numbers.lr)


def _adam(group: Group, numbers: Numbers) -> None:
    """torch.optim.Adam and AdamW."""
    mean, square = group.states["exp_avg"], group.states["exp_avg_sq"]
    if numbers.weight_decay != 0:
        torch._foreach_add_(group.gradients, group.weights, alpha=numbers.weight_decay)
    if numbers.keep != 1:
        torch._foreach_mul_(group.weights, numbers.keep)
    torch._foreach_lerp_(mean, group.gradients, numbers.fresh)
    torch._foreach_mul_(square, numbers.beta2)
    torch._foreach_addcmul_(square, group.gradients, group.gradients, numbers.fresh2)
    denominator = torch._foreach_sqrt(square)
    torch._foreach_div_(denominator, numbers.correction)
    torch._foreach_add_(denominator, numbers.eps)
    torch._foreach_addcdiv_(group.weights, mean, denominator, numbers.lr)
