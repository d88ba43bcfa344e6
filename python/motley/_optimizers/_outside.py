"""Optimizers that the core does not know: they run here, on the head's copy of the weights, or in rounds on a worker's own."""

import copy
import time
from typing import Any

import torch

from motley import _core
from motley._errors import Error
from motley._models import _model
from motley._models._parts import Parts
from motley._optimizers import _optimizer, _options, _own_numbers
from motley._optimizers._own_numbers import HINT

EXACT_INT = 1 << 24  # whole numbers up to here are exact in float32, in which all state is kept
TRIAL_STEPS, TRIAL_S = 12, 0.2  # some state comes with a later step only
TRIAL_GRADIENT = 100.0  # more than what an optimizer that has made steps remembers
CHANGED, AMPLIFIED = 1e-4, 20  # a relative change of a gradient, and how many times as large that of a step is for rounding to matter
ROUNDED = 4e-7  # relative, of weights that a step was added to
DENSE = "nn.Embedding(..., sparse=False) with torch.optim.Adam, which moves the rows that a batch lacks by their moments, too"


class Outside:
    """Steps a copy of the script's optimizer, as python/core/python_optimizer.h says.

    What it keeps of a parameter (`optimizer.state`, and that of optimizers inside of it) goes into checkpoints as vectors in the layout of
    the weights: each value takes the first elements of its parameter's place. Numbers of its own take a vector more, one after the other.
    Which there are is found by some steps that are thrown away.

    Errors: an optimizer that cannot be stepped by itself, or whose state could not be put back exactly.
    """

    def __init__(self, read: _optimizer.ReadOptimizer, layout: _core.Layout, names: list[_model.Named], unused: set[str], parts: Parts):
        self.weights, self.gradients = _model.vector(layout.flat_elements), _model.vector(layout.flat_elements)
        self._plain, self._why = read.optimizer, read.why_outside
        weights, gradients = (_model.pieces(layout, names, flat) for flat in (self.weights, self.gradients))
        self._places = {id(named.tensor): (named.name not in unused, weight, gradient)
                        for (named, weight), (_, gradient) in zip(weights, gradients, strict=True) if named.kind == _model.TRAINED}
        places = {named.name: weight for named, weight in weights}
        averaged = [(places[source], weight) for named, weight in weights if (source := parts.averaged().get(id(named.tensor))) is not None]
        self._sources, self._averages = [source for source, _ in averaged], [average for _, average in averaged]
        self._decay = parts.decay
        self.weights.copy_(_model.flatten(layout, names))
        self.gradients.normal_(0, TRIAL_GRADIENT, generator=torch.Generator().manual_seed(1))
        self._amplified = 0.0  # see _amplifies
        self._kinds = self._try()
        self.states = sorted({name for kinds in self._kinds.values() for name in kinds})
        if self._own:
            self.states.append(_own_numbers.NAME)
        self._optimizer, self._parameters = self._copy()
        self.fresh = not read.has_begun
        self._check_whole(read.has_begun)
        self._found: dict[str, dict[int, torch.Tensor]] = {}

    def notes(self) -> list[str]:
        """What it costs, and what the run's numbers mean with it, in a sentence each."""
        return [self._cost()] + ([self._spread_said()] if self._amplified > 0 else [])

    def _spread_said(self) -> str:
        return (f"{type(self._plain).__name__} makes a change of a gradient {self._amplified:.0f} times as large, and more so that of "
                "rounding: with other shares, devices or threads the weights come out up to some per cent apart, as in plain torch with "
                "other micro-batches, and the losses not within 1e-5")

    def _cost(self) -> str:
        if self._decay is not None:
            return f"the average of the weights is kept in Python on the head, {1e3 * self._seconds:.1f} ms a step, which the others wait"
        return f"{self._why}: it runs in Python on the head, {1e3 * self._seconds:.1f} ms a step, in which the others wait"

    def described(self) -> dict[str, dict[str, Any]]:
        """For an export: by parameter's name in the optimizer's order, the shape of each state; None for a number of Python's."""
        return {str(number): {name: None if like is None else list(like.shape) for name, like in kinds.items() if ":" not in name}
                for number, kinds in enumerate(self._kinds.get(id(p), {}) for g in self._plain.param_groups for p in g["params"])}

    def state(self) -> dict[torch.Tensor, dict[str, Any]]:
        """That of the copy which runs here, by the script's own parameters."""
        originals = {id(p): p for group in self._plain.param_groups for p in group["params"]}
        return {originals[original]: {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in state.items()}
                for original, parameter in self._parameters.items() if (state := self._optimizer.state.get(parameter, {}))}

    def step(self, rates: list[tuple[float, float, float, float]]) -> None:
        _on_one_thread()
        for group, fresh in zip(self._optimizer.param_groups, rates, strict=False):  # the last is nobody's
            _options.set_rates(group, fresh)
        self._optimizer.step()
        if self._averages:
            torch._foreach_lerp_(self._averages, self._sources, 1 - self._decay)
        self.fresh = False

    def get_state(self, name: str) -> None:
        self.gradients.zero_()
        if name == _own_numbers.NAME:
            self._spread(self._own.pack(self._optimizer, list(self._parameters.values())))
            return
        state, kind = _state_of(self._optimizer, name)
        for parameter, (_, _, place) in self._placed():
            value = state.get(parameter, {}).get(kind)
            if value is not None:
                flat = value.reshape(-1) if isinstance(value, torch.Tensor) else torch.tensor([value])
                place.view(-1)[: flat.numel()] = flat

    def set_state(self, name: str) -> None:
        self._found[name] = {id(parameter): place.clone().view(-1) for parameter, (_, _, place) in self._placed()}

    def restored(self, version: int) -> None:
        found = self._found.pop(_own_numbers.NAME, None)
        missing = self._own.unpack(torch.cat(list(found.values())), self._optimizer) if found is not None else lambda kind, number: False
        for number, (original, parameter) in enumerate(self._parameters.items()):
            for name, like in self._kinds.get(original, {}).items():
                if missing(name, number):
                    continue
                values = self._found[name][id(parameter)]
                state, kind = _state_of(self._optimizer, name)
                state[parameter][kind] = (
                    int(values[0]) if like is None else values[: like.numel()].view(like.shape).to(like.dtype, copy=True))
        self._found.clear()
        self.fresh = False

    def _spread(self, values: torch.Tensor) -> None:
        """Over the places of all parameters, one after the other."""
        room = sum(place.numel() for _, (_, _, place) in self._placed())
        if values.numel() > room:
            raise Error(f"the optimizer {type(self._plain).__name__} keeps more numbers of its own than the model has parameters", HINT)
        for _, (_, _, place) in self._placed():
            some = values[: place.numel()]
            place.view(-1)[: some.numel()] = some
            values = values[some.numel() :]

    def _placed(self) -> list[tuple[torch.Tensor, tuple[bool, torch.Tensor, torch.Tensor]]]:
        return [(parameter, self._places[original]) for original, parameter in self._parameters.items() if original in self._places]

    def _copy(self) -> tuple[Any, dict[int, torch.Tensor]]:
        """The optimizer over the head's weights and gradients, and its parameters by those of the script."""
        parameters: dict[int, torch.Tensor] = {}
        for original in (p for group in self._plain.param_groups for p in group["params"]):
            used, weight, gradient = self._places.get(id(original), (False, original.detach().clone(), None))
            parameters[id(original)] = torch.nn.Parameter(weight, requires_grad=original.requires_grad)
            parameters[id(original)].grad = gradient if used else None
        made = object.__new__(type(self._plain))
        # Schedulers put a `step` of their own into the optimizer, which is bound to it.
        kept = {name: value for name, value in self._plain.__dict__.items() if name != "step"}
        try:
            made.__dict__.update(copy.deepcopy(kept, {**parameters, id(self._plain): made}))
        except Exception as error:
            raise Error(f"the optimizer {type(self._plain).__name__} cannot be copied: {type(error).__name__}: {error}", HINT) from error
        return made, parameters

    def _check_whole(self, begun: bool) -> None:
        """What a checkpoint has instead of a state that is not there yet are zeros."""
        without = [p for p, (used, _, _) in self._placed() if used and not self._optimizer.state.get(p)]
        if begun and without and self._optimizer.state and type(self._plain) not in _optimizer.KINDS:
            raise Error(f"the optimizer {type(self._plain).__name__} has made steps with some of its parameters, and has no state of "
                        "others",
                        "make a new optimizer, or one step in plain torch with a gradient of each parameter")

    def _tried_copy(self) -> tuple[Any, dict[int, torch.Tensor]]:
        tried, parameters = self._copy()
        for group in tried.param_groups:  # a schedule may begin with groups that rest
            group["lr"] = group["lr"] or group.get("initial_lr") or 1e-3
        return tried, parameters

    def _try(self) -> dict[int, dict[str, torch.Tensor | None]]:
        """Names and likes of what a step leaves of each parameter; None for whole numbers of Python's."""
        tried, parameters = self._tried_copy()
        self._own = _own_numbers.OwnNumbers(tried)
        name = type(self._plain).__name__
        first, last = self._trial_steps(tried)
        self._own.find(name, first, last)
        originals = {id(parameter): original for original, parameter in parameters.items()}
        kinds: dict[int, dict[str, torch.Tensor | None]] = {}
        for prefix, each in _own_numbers.within(tried):
            if any(id(key) not in originals for key in each.state):
                raise Error(f"the optimizer {name} keeps state that is of no parameter, so a run could not be resumed exactly", HINT)
            for key, state in each.state.items():
                if originals[id(key)] in self._places:
                    likes = {f"{prefix}{kind}": _like(name, kind, value, key) for kind, value in state.items()}
                    kinds.setdefault(originals[id(key)], {}).update(likes)
        return kinds

    def _trial_steps(self, tried: Any) -> tuple[set[str], set[str]]:
        """Names of the states there are after the first step, and after the last."""
        seconds: list[float] = []
        first: set[str] = set()
        start = self.weights.clone()
        while not seconds or len(seconds) < TRIAL_STEPS and sum(seconds) < TRIAL_S:
            seconds.append(self._trial_step(tried))
            first = first or _state_names(tried)
            if len(seconds) == 1:
                self._amplified = self._amplifies(start)
        self._seconds = seconds[-1]
        return first, _state_names(tried)

    def _trial_step(self, tried: Any) -> float:
        """Seconds."""
        threads, name = torch.get_num_threads(), type(self._plain).__name__
        _on_one_thread()
        begun = time.perf_counter()
        try:
            with torch.random.fork_rng([]):
                torch.manual_seed(1)
                tried.step()
        except Exception as error:
            if "dense gradients" in str(error):
                raise Error(f"the optimizer {name} updates the rows that a batch has, by sparse gradients; those of all machines are "
                            "summed up dense here", DENSE) from error
            raise Error(f"the optimizer {name} cannot be stepped by itself: {type(error).__name__}: {error}", HINT) from error
        finally:
            torch.set_num_threads(threads)
        return time.perf_counter() - begun

    def _amplifies(self, start: torch.Tensor) -> float:
        """How many times as large as a relative change of the gradient that of the step is which was just made from `start`; 0: about
        as large. The weights and gradients are put back."""
        made, gradients = self.weights.clone(), self.gradients.clone()
        self.gradients.mul_(torch.empty_like(gradients).normal_(1, CHANGED, generator=torch.Generator().manual_seed(2)))
        self.weights.copy_(start)
        self._trial_step(self._tried_copy()[0])
        apart, step = (self.weights - made).norm().item(), (made - start).norm().item()
        self.weights.copy_(made)
        self.gradients.copy_(gradients)
        return apart / (CHANGED * step) if apart > max(AMPLIFIED * CHANGED * step, ROUNDED * start.norm().item()) else 0.0


def _state_names(optimizer: Any) -> set[str]:
    return {f"{prefix}{kind}" for prefix, each in _own_numbers.within(optimizer) for state in each.state.values() for kind in state}


def _state_of(optimizer: Any, name: str) -> tuple[Any, str]:
    """Where a state is: of the optimizer itself, or of one inside of it."""
    prefix, colon, kind = name.rpartition(":")
    return dict(_own_numbers.within(optimizer))[prefix + colon].state, kind


def _on_one_thread() -> None:
    """The helpers of a team would stay, and keep the threads that compute from their processors."""
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)


def _like(optimizer: str, kind: Any, value: Any, parameter: torch.Tensor) -> torch.Tensor | None:
    named = isinstance(kind, str) and kind and "." not in kind and ":" not in kind and kind != _own_numbers.NAME
    if named and isinstance(value, int) and abs(value) < EXACT_INT:
        return None
    whole = type(value) is torch.Tensor and (value.dtype == torch.float32 or not value.is_floating_point()) and not value.is_complex()
    if named and whole and value.numel() <= parameter.numel():
        return torch.empty_like(value, device="meta")
    about = type(value).__name__
    if isinstance(value, torch.Tensor):
        about = f"{about.replace('Tensor', str(value.dtype))} {list(value.shape)}"
    raise Error(f"the optimizer {optimizer} keeps {kind!r} ({about}) of a parameter, which a checkpoint does not hold exactly", HINT)
