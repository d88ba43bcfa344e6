"""Where a model's tensors are: in flat vectors of the device while it computes, where the script left them while the script looks."""

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from motley import _core
from motley._errors import Error
from motley._models import _model, _statistics
from motley._models._parts import Parts

Final = Callable[[int], None]
UNUSED = 'motley.Run(..., unused="zero"): where it is unused its gradient counts as zero'


class Binding:
    """Binds the model to `device`; `staged`: the core sees copies, and the device may be behind the host. final(place): the gradient of
    placement `place` is there. `looked_at`: the script may look at the model meanwhile, so its tensors are kept.

    weights, gradients: what the core reads and writes, float32 [layout.flat_elements] on the CPU; device_weights, device_gradients: what
    the model's tensors are views of, the same ones where not staged.
    """

    def __init__(self, parts: Parts, layout: _core.Layout, names: list[_model.Named], device: torch.device, staged: bool, final: Final,
                 looked_at: bool):
        self._layout, self._names = layout, names
        self._own = [(p, p.device, p.data if looked_at else None, p.grad) for p in dict.fromkeys(parts.root.parameters())]
        self._own_buffers = _buffers(parts.root)
        self._own_followers = _model.followers(names, parts.root)
        parts.root.to(device)
        moving = {id(named.tensor) for named in names if named.kind in (_model.RUNNING_MEAN, _model.RUNNING_VAR)}
        for module, name, buffer in self._own_buffers:  # what every forward pass overwrites is not the script's
            if id(buffer) in moving and module._buffers[name] is buffer:
                module._buffers[name] = buffer.clone()
        bound = _model.of_copy(names, parts.root)  # moving makes other buffers
        elements, pinned = layout.flat_elements, device.type == "cuda"
        self.device_weights, self.device_gradients = _model.vector(elements, device), _model.vector(elements, device)
        self.weights = _model.vector(elements, pinned=pinned) if staged else self.device_weights
        self.gradients = _model.vector(elements, pinned=pinned) if staged else self.device_gradients
        self.trained: list[tuple[str, nn.Parameter, torch.Tensor]] = []
        self.reached: set[str] = set()  # parameters that a backward pass came to, since that was emptied
        self._hooks: list[Any] = []
        self.statistics = self._bind(bound, final)
        followers = _model.followers(names, parts.root)
        self.followers = [(followers[named.name], weight) for named, weight in _model.pieces(layout, bound, self.device_weights)
                          if named.name in followers]  # (buffer of the average, what it follows)
        self._there = [(p, p.data) for p, *_ in self._own]
        self._there_buffers = _buffers(parts.root)
        fixed = {id(named.tensor) for named in bound if named.kind == _model.FROZEN}
        # What the script left, what is there instead, at which version: of those that a forward pass may fill once.
        self._filled = [(own, there, there._version)
                        for (_, _, own), (_, _, there) in zip(self._own_buffers, self._there_buffers, strict=True)
                        if own is not None and there is not None and own is not there and id(there) in fixed]
        self.shown = False
        self._shown_from: tuple[torch.Tensor, tuple[list[str], list[torch.Tensor], list[torch.Tensor]]] | None = None

    def _bind(self, names: list[_model.Named], final: Final) -> _statistics.Statistics:
        layers, momenta = [], []
        weights = _model.pieces(self._layout, names, self.device_weights)
        gradients = _model.pieces(self._layout, names, self.device_gradients)
        for place, ((named, weight), (_, gradient)) in enumerate(zip(weights, gradients, strict=True)):
            if isinstance(named.tensor, nn.Parameter):
                named.tensor.data = weight
                named.tensor.grad = gradient
                self.trained.append((named.name, named.tensor, gradient))
                if named.tensor.requires_grad:
                    self._hooks.append(named.tensor.register_post_accumulate_grad_hook(_hook(named.name, self.reached, final, place)))
            elif named.kind == _model.RUNNING_MEAN:
                (var, var_now), (_, var_sum) = weights[place + 1], gradients[place + 1]
                layers.append(_statistics.Layer(named.tensor, var.tensor, weight, var_now, gradient, var_sum))
                momenta.append(named.momentum)
        return _statistics.Statistics(layers, momenta)

    def start_statistics(self) -> None:
        """Before the forward pass of a micro-batch."""
        self.statistics.start()
        self._follow()

    def show_statistics(self) -> None:
        """For an evaluation."""
        self.statistics.show()
        self._follow()

    def _follow(self) -> None:
        if self.followers:
            with torch.no_grad():
                torch._foreach_copy_(*(list(column) for column in zip(*self.followers, strict=True)))

    def show(self, flat: torch.Tensor, version: int) -> None:
        """The script finds the model where it left it, with these weights (float32 [layout.flat_elements])."""
        self._put_back()
        with torch.no_grad():
            _, tensors, views = self._pieces_of(flat)
            _model.copy_all(tensors, views)
        _model.set_counters(self._names, version)
        for named in self._names:
            if named.name in self._own_followers:
                self._own_followers[named.name].copy_(named.tensor)

    def _pieces_of(self, flat: torch.Tensor) -> tuple[list[str], list[torch.Tensor], list[torch.Tensor]]:
        """Names, tensors of the model, views of `flat`; made once for a vector: it is the same one in all epochs."""
        if self._shown_from is None or self._shown_from[0] is not flat:
            pieces = _model.pieces(self._layout, self._names, flat)
            self._shown_from = flat, ([named.name for named, _ in pieces], [named.tensor for named, _ in pieces],
                                      [view for _, view in pieces])
        return self._shown_from[1]

    def _put_back(self) -> None:
        self.shown = True
        for parameter, device, data, gradient in self._own:
            parameter.grad = None
            parameter.data = data if data is not None else parameter.data.to(device, copy=True)
            parameter.grad = gradient
        for (module, name, own), (_, _, there) in zip(self._own_buffers, self._there_buffers, strict=True):
            if module._buffers.get(name) is there:  # else a forward pass made another, which stays
                module._buffers[name] = own
        with torch.no_grad():
            for own, there, version in self._filled:
                if there._version != version:
                    own.copy_(there)

    def differs(self, flat: torch.Tensor) -> str | None:
        """The name of a tensor that is not what show() made it."""
        names, tensors, views = self._pieces_of(flat)
        with contextlib.suppress(RuntimeError), torch.no_grad():  # of another device
            if all(map(torch.equal, tensors, views)):
                return None
        for name, tensor, expected in zip(names, tensors, views, strict=True):
            if not _equal(tensor.detach(), expected):
                return name
        return None

    def resume(self) -> None:
        """Back to where it computes; the weights come with the next task."""
        for parameter, data in self._there:
            parameter.grad = None
            parameter.data = data
        for _, parameter, gradient in self.trained:
            parameter.grad = gradient
        for (module, name, own), (_, _, there) in zip(self._own_buffers, self._there_buffers, strict=True):
            if module._buffers.get(name) is own:
                module._buffers[name] = there
        self.shown = False

    def release(self) -> None:
        """The model is the script's again for good."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        if not self.shown:
            self._put_back()

    def check_gradients(self, unused: set[str], expected: bool) -> None:
        """Errors: they are not where the core reads them, are some that nobody expected, or (`expected`) were not computed."""
        for name, parameter, gradient in self.trained:
            if expected and parameter.requires_grad and name not in self.reached and name not in unused:
                raise Error(f"{name} got no gradient in this step, though it did at the start. torch would leave {name} unchanged in such "
                            f"a step; a run cannot, because no machine knows whether {name} was used on the others", UNUSED)
            if parameter.grad is None or parameter.grad.data_ptr() != gradient.data_ptr():
                parameter.grad = gradient
                raise Error(f"the gradient of {name} was replaced during the loss", "no zero_grad() or backward() in the loss")
            if name in unused and bool(gradient.any()):
                raise Error(f"{name} got a gradient in this step, though it did not at the start. torch would leave {name} unchanged in "
                            f"steps without; a run cannot, because no machine knows whether {name} was used on the others", UNUSED)


@contextlib.contextmanager
def on(root: nn.Module, device: torch.device) -> Iterator[None]:
    """Meanwhile the model is on that device; then it is as it was, tensor by tensor."""
    tensors, buffers = [(p, p.data) for p in dict.fromkeys(root.parameters())], _buffers(root)
    root.to(device)
    try:
        yield
    finally:
        for parameter, data in tensors:
            parameter.data = data
        for module, name, buffer in buffers:
            module._buffers[name] = buffer


def _hook(name: str, reached: set[str], final: Final, place: int) -> Callable[[torch.Tensor], None]:
    def hook(_: torch.Tensor) -> None:
        reached.add(name)
        final(place)

    return hook


def _buffers(root: nn.Module) -> list[tuple[nn.Module, str, torch.Tensor | None]]:
    return [(module, name, buffer) for module in root.modules() for name, buffer in module._buffers.items()]


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    # NaN equals itself here.
    return bool(torch.equal(a, b)) if a.device == b.device else bool(torch.equal(a.cpu(), b))


class Owner:
    """Which computation of this process has the script's own model. `devices`: that compute in this process."""

    def __init__(self, parts: Parts, devices: Callable[[], int]):
        self.parts, self._devices = parts, devices
        self._has: weakref.ref[Any] | None = None
        self._bound: Binding | None = None  # outlives the computation, which ends with the run

    def current(self) -> Any:
        return self._has() if self._has is not None else None

    def take(self) -> bool:
        """Whether the next computation gets it: the only one always, since it comes in the place of the one before."""
        if self.current() is not None and self._devices() > 1:
            return False
        self.release()
        return True

    def release(self) -> None:
        """The model is the script's alone."""
        computation, bound = self.current(), self._bound
        self._has = self._bound = None
        if bound is not None:
            with computation.turn if computation is not None else contextlib.nullcontext():
                bound.release()

    close = release

    def is_of(self, computation: Any) -> None:
        self._has, self._bound = weakref.ref(computation), computation.bound

    @contextlib.contextmanager
    def shown(self, flat: torch.Tensor, version: int) -> Iterator[None]:
        """Meanwhile the script may look at the model, with these weights, and nothing computes with it."""
        computation = self.current()
        if computation is None:
            yield
            return
        with computation.resting(flat, version):
            yield
