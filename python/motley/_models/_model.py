"""What a model consists of, in the words of the core: entries of the layout, and the flat vectors they lie in."""

import dataclasses
from concurrent import futures
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.instancenorm import _InstanceNorm

from motley import _core
from motley._errors import Error
from motley._models._parts import AVERAGE

DTYPES = {torch.float32: 1, torch.float16: 2, torch.bfloat16: 3, torch.float64: 4, torch.int64: 5, torch.int32: 6, torch.uint8: 7,
          torch.bool: 8}
SHARED_COPIES, COPY_THREADS = 1 << 24, 4  # elements from which on threads share a copy, as src/tensor/flat_chunks.cpp has them
TRAINED, FROZEN, RUNNING_MEAN, RUNNING_VAR, COUNTER, ALIAS = 1, 2, 3, 4, 5, 6


@dataclass
class Named:
    """A tensor of the model under its name in state_dict()."""

    name: str
    tensor: torch.Tensor
    kind: int
    group: int = 0
    momentum: float = 0.0
    alias_of: str = ""
    first: int = 0  # a counter's value before the first step
    times: int = 1  # by which it counts in a step

    def entry(self) -> tuple[Any, ...]:
        content = _core.content_hash(bytes_of(self.tensor)) if self.kind == FROZEN else self.first
        momentum = float(self.times) if self.kind == COUNTER else self.momentum
        return self.name, list(self.tensor.shape), _dtype(self), self.kind, self.group, momentum, self.alias_of, content


def vector(elements: int, device: torch.device | str = "cpu", pinned: bool = False) -> torch.Tensor:
    """Of zeros that the core may read, whatever type and device the script made torch's defaults."""
    return torch.zeros(elements, dtype=torch.float32, device=device, pin_memory=pinned)


def check_trained(name: str, tensor: torch.Tensor) -> None:
    if tensor.is_complex():
        raise Error(f"{name} is trained in {tensor.dtype}; weights are float32 here",
                    "keep torch.view_as_real(w) as the parameter, and compute with torch.view_as_complex of it")
    if tensor.dtype != torch.float32:
        raise Error(f"{name} is trained in {tensor.dtype}; weights are float32 here",
                    'model.float(), and precision="bf16" to compute in bfloat16')


def _dtype(named: Named) -> int:
    found = DTYPES.get(named.tensor.dtype)
    if found is None:
        raise Error(f"{named.name} has the type {named.tensor.dtype}, which is not supported", "keep the model in float32")
    if named.kind == TRAINED:
        check_trained(named.name, named.tensor)
    return found


def bytes_of(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).untyped_storage()) if flat.numel() else b""


@dataclass
class Statistics:
    """Buffers of one normalisation layer: names of running_mean, running_var and num_batches_tracked."""

    mean: str
    var: str
    counter: str
    momentum: float | None
    of_instances: bool

    @property
    def moving(self) -> tuple[str, ...]:
        """Those that a pass in training mode changes: with a momentum of 0 the averages stay what they are."""
        return (self.counter,) if self.momentum == 0 else (self.mean, self.var, self.counter)


def statistics_of(model: nn.Module) -> list[Statistics]:
    found = []
    for name, module in model.named_modules():
        if isinstance(module, _NormBase) and module.running_mean is not None:
            prefix = f"{name}." if name else ""
            found.append(Statistics(prefix + "running_mean", prefix + "running_var", prefix + "num_batches_tracked", module.momentum,
                                    isinstance(module, _InstanceNorm)))
    return found


def named_tensors(root: nn.Module, groups: dict[int, int], left_alone: int, changing: dict[str, int],
                  averaged: dict[int, str]) -> list[Named]:
    """All tensors of state_dict() in its order. `groups`: of parameters, by id; those that the optimizer does not have are in
    `left_alone`. `changing`: buffers of normalisation layers that a forward pass in training mode changes, and how often in one pass.
    `averaged`: parameters that are averages, by id. Errors: such layers without a momentum; what is no tensor."""
    statistics = {name: each for each in statistics_of(root) for name in (each.mean, each.var, each.counter)}
    first_name: dict[int, str] = {}
    found = []
    for name, tensor in root.state_dict(keep_vars=True).items():
        if not isinstance(tensor, torch.Tensor):
            raise Error(f"{name} in the model's state_dict is no tensor but {type(tensor).__name__}",
                        "remove get_extra_state from the model")
        if name == "__metadata__":
            raise Error(f"{name}: a file of weights keeps this name for itself", "another name for this tensor of the model")
        if id(tensor) in first_name:
            found.append(Named(name, tensor, ALIAS, alias_of=first_name[id(tensor)]))
            continue
        first_name[id(tensor)] = name
        if isinstance(tensor, nn.Parameter):
            trained = tensor.requires_grad or id(tensor) in averaged
            found.append(Named(name, tensor, TRAINED, group=groups.get(id(tensor), left_alone)) if trained else Named(name, tensor, FROZEN))
        elif averaged and name.startswith(f"{AVERAGE}.") and name.removeprefix(f"{AVERAGE}.") in changing:
            continue  # follows the model's own
        elif name in statistics and name in changing:
            found.append(_statistic(name, tensor, statistics[name], changing[name]))
        else:
            found.append(Named(name, tensor, FROZEN))
    if not any(named.kind == TRAINED for named in found):
        raise Error("no parameter of the model has requires_grad, so there is nothing to train", "look at what was frozen")
    return found


def _statistic(name: str, tensor: torch.Tensor, of: Statistics, times: int) -> Named:
    """A layer that runs k times in a pass moves by momentum m k times, which is once by 1 - (1 - m)^k."""
    if of.of_instances:
        raise Error(f"{name} is of an InstanceNorm with track_running_stats=True, whose statistics are not merged",
                    "track_running_stats=False, as is torch's default, or BatchNorm")
    if name == of.counter:
        return Named(name, tensor, COUNTER, first=int(tensor), times=times)
    if of.momentum is None:
        raise Error(f"{name} is a cumulative average (momentum=None), which is not supported", "give the layer a momentum, e.g. 0.1")
    return Named(name, tensor, RUNNING_MEAN if name == of.mean else RUNNING_VAR, momentum=1 - (1 - of.momentum) ** times)


def of_copy(names: list[Named], root: nn.Module) -> list[Named]:
    """The same tensors of a copy of the model."""
    tensors = root.state_dict(keep_vars=True)
    return [dataclasses.replace(named, tensor=tensors[named.name]) for named in names]


def followers(names: list[Named], root: nn.Module) -> dict[str, torch.Tensor]:
    """Buffers of an average that follow the model's running statistics, by the names of these."""
    tensors = root.state_dict(keep_vars=True)
    statistics = [named.name for named in names if named.kind in (RUNNING_MEAN, RUNNING_VAR)]
    return {name: tensors[f"{AVERAGE}.{name}"] for name in statistics if f"{AVERAGE}.{name}" in tensors}


def pieces(layout: _core.Layout, names: list[Named], flat: torch.Tensor) -> list[tuple[Named, torch.Tensor]]:
    """The tensors that lie in the flat vector, each with its view of `flat` (float32 [layout.flat_elements]), by offset."""
    return [(names[entry], flat.narrow(0, offset, elements).view(names[entry].tensor.shape))
            for entry, offset, elements in layout.placements]


def copy_all(to: list[torch.Tensor], values: list[torch.Tensor]) -> None:
    """Each into the one beside it: large ones by a few threads, as torch may copy a tensor by one."""
    if sum(tensor.numel() for tensor in to) < SHARED_COPIES:
        torch._foreach_copy_(to, values)
        return
    with futures.ThreadPoolExecutor(COPY_THREADS) as threads:
        list(threads.map(_copy, to, values))


def _copy(to: torch.Tensor, values: torch.Tensor) -> None:
    with torch.no_grad():
        to.copy_(values)


def flatten(layout: _core.Layout, names: list[Named]) -> torch.Tensor:
    """The model's state as one float32 vector [layout.flat_elements] on the CPU."""
    flat = vector(layout.flat_elements)
    with torch.no_grad():
        for named, view in pieces(layout, names, flat):
            view.copy_(named.tensor)
    return flat


def unflatten(layout: _core.Layout, names: list[Named], flat: torch.Tensor, version: int) -> None:
    """The other way round; `version` updates have been made."""
    with torch.no_grad():
        for named, view in pieces(layout, names, flat):
            named.tensor.copy_(view)
    set_counters(names, version)


def set_counters(names: list[Named], version: int) -> None:
    """`version` updates have been made."""
    for named in names:
        if named.kind == COUNTER:
            named.tensor.fill_(named.first + named.times * version)
