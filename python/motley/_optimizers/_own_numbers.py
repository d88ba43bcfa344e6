"""What an optimizer keeps beside the tensors of its parameters: numbers of its own and of its groups, optimizers inside of it, and which
tensors are not there yet. Packed into numbers of float32, it goes into checkpoints like any other state."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import torch

from motley._errors import Error
from motley._trials import _spots

NAME = "numbers"  # of the state in checkpoints
DEEPEST = 3  # optimizers inside of optimizers
SET = ("lr", "momentum", "betas")  # options that the run sets before each step
NUMBERS = (bool, int, float)
HINT = "use an optimizer whose state is tensors of its parameters' sizes, or one of torch.optim.SGD, Adam and AdamW"

Address = tuple[str, str | int, str]  # prefix of the optimizer, its group or "" for its own, name


def within(optimizer: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The optimizer and those that it holds, with what stands before the names of their states."""
    yield prefix, optimizer
    for name, value in list(optimizer.__dict__.items()):
        if isinstance(value, torch.optim.Optimizer) and value is not optimizer and depth < DEEPEST:
            yield from within(value, f"{prefix}{name}:", depth + 1)


class OwnNumbers:
    """Compares an optimizer before and after trial steps. `known`: attributes of torch's own and its schedulers'."""

    def __init__(self, tried: Any):
        self._tried = tried
        self._before = {address: _spots.copied(value) for address, value in _values(tried)}
        self._addresses: list[Address] = []
        self._late: list[str] = []  # states that come after the first step

    def find(self, name: str, first: set[str], last: set[str]) -> None:
        """After the trial. first, last: names of states after the first step and after the last. Errors: what cannot be kept."""
        for address, value in _values(self._tried):
            if address in self._before and _spots.same(self._before[address], _spots.copied(value)):
                continue
            if address[1] != "" and address[2] in SET:
                raise Error(f"the optimizer {name} changes {address[2]!r} of its groups, which the run sets before each step", HINT)
            if not isinstance(value, NUMBERS):
                raise Error(f"the optimizer {name} keeps {address[2]!r} ({type(value).__name__}) beside its state, which a checkpoint does "
                            "not hold exactly", HINT)
            self._addresses.append(address)
        self._late = sorted(last - first)

    def __bool__(self) -> bool:
        return bool(self._addresses or self._late)

    def pack(self, optimizer: Any, parameters: list[torch.Tensor]) -> torch.Tensor:
        """[n], float32: whole numbers below 65,536."""
        now = dict(_values(optimizer))
        states = {prefix: each.state for prefix, each in within(optimizer)}
        missing = {kind: [number for number, p in enumerate(parameters) if not _has(states, kind, p)] for kind in self._late}
        text = json.dumps([[now.get(address) for address in self._addresses], missing], separators=(",", ":")).encode()
        padded = text + b" " * (len(text) % 2)
        values = torch.frombuffer(bytearray(padded), dtype=torch.uint8).view(-1, 2).float()
        return torch.cat([torch.tensor([len(padded) // 2], dtype=torch.float32), values[:, 0] * 256 + values[:, 1]])

    def unpack(self, values: torch.Tensor, optimizer: Any) -> Callable[[str, int], bool]:
        """Puts the numbers back; returns which states (name, number of the parameter) are not there."""
        words = values[1 : 1 + int(values[0])].to(torch.int32)
        text = torch.stack([words // 256, words % 256], 1).to(torch.uint8).flatten().numpy().tobytes()
        numbers, missing = json.loads(text)
        optimizers = dict(within(optimizer))
        for (prefix, group, name), value in zip(self._addresses, numbers, strict=True):
            held = optimizers[prefix]
            options = held.__dict__ if group == "" else held.param_groups[group]
            if value is None:
                options.pop(name, None)
            else:
                options[name] = value
        return lambda kind, number: number in missing.get(kind, ())


def _has(states: dict[str, Any], kind: str, parameter: torch.Tensor) -> bool:
    prefix, _, name = kind.rpartition(":")
    return name in states[f"{prefix}:" if prefix else ""].get(parameter, {})


def _values(optimizer: Any) -> Iterator[tuple[Address, Any]]:
    own = torch.optim.SGD([torch.zeros(1)]).__dict__.keys() | {"step", "_opt_called", "_step_count"}
    for prefix, each in within(optimizer):
        for name, value in each.__dict__.items():
            if name not in own and not isinstance(value, torch.optim.Optimizer):
                yield (prefix, "", name), value
        if prefix and each.param_groups is optimizer.param_groups:
            continue
        for number, group in enumerate(each.param_groups):
            for name, value in group.items():
                if name != "params":
                    yield (prefix, number, name), value
