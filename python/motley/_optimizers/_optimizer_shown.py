"""The script's optimizer in the body of an epoch: its state is there for whoever looks, and what the body does with it is noticed."""

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from motley._errors import Error
from motley._trials import _spots

State = Mapping[Any, Mapping[str, Any]]
RESTART = "start another motley.Run with a new optimizer"


class _OnDemand(defaultdict[Any, Any]):
    """A state that is filled as soon as anybody looks: most bodies do not, and to fetch it costs a copy of the model or two."""

    def __init__(self, fetch: Callable[[], State]):
        super().__init__(dict)
        self._fetch, self.filled = fetch, False

    def fill(self) -> None:
        if not self.filled:
            self.filled = True
            self.update({key: dict(values) for key, values in self._fetch().items()})

    def plain(self) -> defaultdict[Any, Any]:
        return defaultdict(dict, self.items() if self.filled else ())

    def copy(self) -> Any:
        self.fill()
        return self.plain()

    __copy__ = copy

    def __reduce__(self) -> Any:
        self.fill()
        return defaultdict, (dict,), None, None, iter(self.items())


def _filling(name: str) -> Callable[..., Any]:
    own = getattr(defaultdict, name)

    @functools.wraps(own)
    def filled(self: _OnDemand, *given: Any, **named: Any) -> Any:
        self.fill()
        return own(self, *given, **named)

    return filled


for _name in ("__getitem__", "__setitem__", "__delitem__", "__iter__", "__len__", "__contains__", "__eq__", "__ne__", "__or__", "__ior__",
              "__repr__", "__reversed__", "keys", "values", "items", "get", "pop", "popitem", "clear", "update", "setdefault"):
    setattr(_OnDemand, _name, _filling(_name))


class Shown:
    """A context, the body of an epoch. `fetch`: what the optimizer's state is. `last`: it stays afterwards, since no step follows."""

    def __init__(self, optimizer: torch.optim.Optimizer, fetch: Callable[[], State], last: bool):
        self._optimizer, self._fetch, self._last = optimizer, fetch, last
        self._others: list[str] = []  # new optimizers of the same parameters
        self._state: _OnDemand | None = None

    def __enter__(self) -> "Shown":
        self._original = torch.optim.Optimizer.add_param_group
        torch.optim.Optimizer.add_param_group = self._adding()  # type: ignore[method-assign]
        self._state = _OnDemand(self._fetch)
        if self._last:
            self._state.fill()
        self._optimizer.state = self._state
        return self

    def __exit__(self, *_: Any) -> None:
        torch.optim.Optimizer.add_param_group = self._original  # type: ignore[method-assign]
        if self._optimizer.state is self._state:
            self._optimizer.state = self._state.plain()

    def fill(self) -> None:
        assert self._state is not None
        self._state.fill()

    def _adding(self) -> Callable[..., None]:
        def add_param_group(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> None:
            self._original(optimizer, group)
            if optimizer is not self._optimizer and self._shares(optimizer.param_groups[-1]["params"]):
                self._others.append(type(optimizer).__name__)

        return add_param_group

    def _shares(self, parameters: list[torch.Tensor]) -> bool:
        own = {id(p) for group in self._optimizer.param_groups for p in group["params"]}
        return any(id(p) in own for p in parameters)

    def check(self, last: bool) -> None:
        """At the body's end; `last`: no step follows after all. Errors: what the body did and the steps that follow would not know of."""
        if self._others:
            raise Error(f"the body of the epoch made a new optimizer ({self._others[0]}) of the model's parameters; the run goes on with "
                        "the one that it got", RESTART)
        if last:
            self.fill()
        looked = self._state is not self._optimizer.state or self._state.filled
        if looked and (name := _difference(self._fetch(), self._optimizer.state)) is not None:
            raise Error(f"the body of the epoch changed {name} in the optimizer's state; the run goes on with the state that it has",
                        RESTART)


def _difference(expected: State, found: State) -> str | None:
    for key in dict.fromkeys([*expected, *found]):
        before, now = expected.get(key, {}), found.get(key, {})
        for name in _names(before, now):
            if not _spots.same(before.get(name), now.get(name)):
                return repr(name)
    return None


def _names(*states: Mapping[str, Any]) -> Iterable[str]:
    return dict.fromkeys(name for state in states for name in state)
