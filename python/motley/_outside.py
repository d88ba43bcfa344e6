"""Optimizers that the coordinator does not know: they run here, on the head's copy of the weights."""

import copy
import time
from typing import Any

import torch

from motley import _core, _model
from motley._errors import Error
from motley._parts import Parts

EXACT_INT = 1 << 24  # whole numbers up to here are exact in float32, in which all state is kept
HINT = "use an optimizer whose state is tensors of its parameters' sizes, or one of torch.optim.SGD, Adam and AdamW"


class Outside:
    """Steps a copy of the script's optimizer, as python/core/python_optimizer.h says.

    What it keeps of a parameter (`optimizer.state`) goes into checkpoints as vectors in the layout of the weights: each value takes the
    first elements of its parameter's place. Which values there are is found by a step that is thrown away.

    Errors: an optimizer that cannot be stepped by itself, or whose state could not be put back exactly.
    """

    def __init__(self, optimizer: Any, layout: _core.Layout, names: list[_model.Named], unused: set[str], parts: Parts):
        self.weights, self.gradients = torch.zeros(layout.flat_elements), torch.zeros(layout.flat_elements)
        self._plain = optimizer
        weights, gradients = (_model.pieces(layout, names, flat) for flat in (self.weights, self.gradients))
        self._places = {id(named.tensor): (named.name not in unused, weight, gradient)
                        for (named, weight), (_, gradient) in zip(weights, gradients, strict=True) if named.kind == _model.TRAINED}
        places = {named.name: weight for named, weight in weights}
        averaged = [(places[source], weight) for named, weight in weights if (source := parts.averaged().get(id(named.tensor))) is not None]
        self._sources, self._averages = [source for source, _ in averaged], [average for _, average in averaged]
        self._decay = parts.decay
        self.weights.copy_(_model.flatten(layout, names))
        self.gradients.fill_(1e-3)
        self._kinds = self._try()
        self.states = sorted({name for kinds in self._kinds.values() for name in kinds})
        self._optimizer, self._parameters = self._copy()
        self.fresh = True
        self._found: dict[str, dict[int, torch.Tensor]] = {}

    def note(self) -> str:
        """What it costs, in a sentence."""
        if self._decay is not None:
            return f"the average of the weights is kept in Python on the head, {1e3 * self._seconds:.1f} ms a step, which the others wait"
        return (f"{type(self._plain).__name__} is not an optimizer that the coordinator knows (SGD, Adam, AdamW): it runs in Python on the "
                f"head, {1e3 * self._seconds:.1f} ms a step, in which the others wait")

    def described(self) -> dict[str, dict[str, Any]]:
        """For an export: by parameter's name in the optimizer's order, the shape of each state; None for a number of Python's."""
        return {str(number): {name: None if like is None else list(like.shape) for name, like in kinds.items()}
                for number, kinds in enumerate(self._kinds.get(id(p), {}) for g in self._plain.param_groups for p in g["params"])}

    def give_state(self) -> None:
        """The script's own optimizer gets the state of the copy that runs here."""
        originals = {id(p): p for group in self._plain.param_groups for p in group["params"]}
        for original, parameter in self._parameters.items():
            state = self._optimizer.state.get(parameter, {})
            self._plain.state[originals[original]] = {
                name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in state.items()}

    def step(self, rates: list[tuple[float, float, float, float]]) -> None:
        _on_one_thread()
        for group, (lr, momentum, beta1, beta2) in zip(self._optimizer.param_groups, rates, strict=False):  # the last is nobody's
            group["lr"] = lr
            if isinstance(group.get("momentum"), float):
                group["momentum"] = momentum
            if isinstance(group.get("betas"), tuple) and len(group["betas"]) == 2:
                group["betas"] = (beta1, beta2)
        self._optimizer.step()
        if self._averages:
            torch._foreach_lerp_(self._averages, self._sources, 1 - self._decay)
        self.fresh = False

    def get_state(self, name: str) -> None:
        self.gradients.zero_()
        for parameter, (_, _, place) in self._placed():
            value = self._optimizer.state.get(parameter, {}).get(name)
            if value is not None:
                flat = value.reshape(-1) if isinstance(value, torch.Tensor) else torch.tensor([value])
                place.view(-1)[: flat.numel()] = flat

    def set_state(self, name: str) -> None:
        self._found[name] = {id(parameter): place.clone().view(-1) for parameter, (_, _, place) in self._placed()}

    def restored(self, version: int) -> None:
        for original, parameter in self._parameters.items():
            for name, like in self._kinds.get(original, {}).items():
                values = self._found[name][id(parameter)]
                self._optimizer.state[parameter][name] = (
                    int(values[0]) if like is None else values[: like.numel()].view(like.shape).to(like.dtype, copy=True))
        self._found.clear()
        self.fresh = version == 0

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
        made.__dict__.update(copy.deepcopy(kept, {**parameters, id(self._plain): made}))
        return made, parameters

    def _try(self) -> dict[int, dict[str, torch.Tensor | None]]:
        """Names and likes of what a step leaves of each parameter; None for whole numbers of Python's."""
        tried, parameters = self._copy()
        for group in tried.param_groups:  # a schedule may begin with groups that rest
            group["lr"] = group["lr"] or group.get("initial_lr") or 1e-3
        options = copy.deepcopy([{**group, "params": None} for group in tried.param_groups])
        name = type(self._plain).__name__
        threads = torch.get_num_threads()
        _on_one_thread()
        begun = time.perf_counter()
        try:
            tried.step()
        except Exception as error:
            raise Error(f"the optimizer {name} cannot be stepped by itself: {type(error).__name__}: {error}", HINT) from error
        finally:
            torch.set_num_threads(threads)
        self._seconds = time.perf_counter() - begun
        if options != [{**group, "params": None} for group in tried.param_groups]:
            raise Error(f"the optimizer {name} changes options of its groups, so a run could not be resumed exactly", HINT)
        originals = {id(parameter): original for original, parameter in parameters.items()}
        if any(id(key) not in originals for key in tried.state):
            raise Error(f"the optimizer {name} keeps state that is of no parameter, so a run could not be resumed exactly", HINT)
        return {originals[id(key)]: {kind: _like(name, kind, value, key) for kind, value in state.items()}
                for key, state in tried.state.items() if originals[id(key)] in self._places}


def _on_one_thread() -> None:
    """The helpers of a team would stay, and keep the threads that compute from their processors."""
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)


def _like(optimizer: str, kind: Any, value: Any, parameter: torch.Tensor) -> torch.Tensor | None:
    named = isinstance(kind, str) and kind and "." not in kind
    if named and isinstance(value, int) and abs(value) < EXACT_INT:
        return None
    whole = isinstance(value, torch.Tensor) and (value.dtype == torch.float32 or not value.is_floating_point()) and not value.is_complex()
    if named and whole and value.numel() <= parameter.numel():
        return torch.empty_like(value, device="meta")
    about = f"{value.dtype} {list(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
    raise Error(f"the optimizer {optimizer} keeps {kind!r} ({about}) of a parameter, which a checkpoint does not hold exactly", HINT)
