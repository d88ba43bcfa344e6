"""What a script trains, as one module: its model, or several modules and parameters, and the parameters of its loss."""

import contextlib
import copy
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

from motley import _numbers
from motley._errors import Error

ASKED_BY_NAME = ("step", "epoch", "state", "teacher")  # a loss gets these where it has parameters of these names
LOSS, CRITERION = "loss", "criterion"  # under which name the loss's own parameters stand beside the model's
AVERAGE = "ema"  # likewise the average of the model's weights


class Together(nn.Module):
    """Several modules and parameters under one root, by names."""

    def __init__(self, parts: dict[str, Any]):
        super().__init__()
        for name, part in parts.items():
            if isinstance(part, nn.Parameter):
                self.register_parameter(name, part)
            else:
                self.add_module(name, part)


class Beside(nn.Module):
    """A model and one module more. The model's tensors keep the names that they have in its own state_dict()."""

    def __init__(self, model: nn.Module, name: str, other: nn.Module):
        super().__init__()
        self._parameters, self._buffers = model._parameters, model._buffers
        self._non_persistent_buffers_set = model._non_persistent_buffers_set
        self._modules = {**model._modules, name: other}
        self.training = model.training


@dataclass
class Parts:
    """root: holds every tensor of the run.  given: what the loss gets as its model.  loss, score: the script's; None without."""

    root: nn.Module
    given: Any
    loss: Callable[..., Any] | None
    score: Callable[..., Any] | None
    saved: nn.Module  # what is written as the model
    asked: tuple[str, ...] = ()
    teacher: Any = None  # what stands for the model where the average of its weights is meant
    decay: float | None = None  # of that average
    modes: dict[nn.Module, bool] = field(default_factory=dict)  # as the script set them
    loop: types.FrameType | None = None  # in which a script computes its leases itself

    def modules(self) -> list[nn.Module]:
        """All of them, also the model itself where the root only has its children."""
        tops: tuple[Any, ...] = self.given if isinstance(self.given, tuple) else (self.given,)
        tops = (self.root, *(top for top in tops if isinstance(top, nn.Module)), *([self.loss] if isinstance(self.loss, nn.Module) else []))
        return list(dict.fromkeys(module for top in tops for module in top.modules()))

    @property
    def teacher_root(self) -> nn.Module | None:
        return self.root._modules[AVERAGE] if self.decay is not None else None

    def average(self, decay: float) -> None:
        """From here on there is an average of the weights beside them."""
        decay = _numbers.number("ema", decay, 0, 1, "ema=0.999")
        if decay in (0, 1):
            raise Error(f"ema: expected a decay between 0 and 1, found {decay:g}", "ema=0.999")
        try:
            self.teacher = copy.deepcopy(self.given)
        except Exception as error:
            raise Error(f"ema: the model cannot be copied for its average: {type(error).__name__}: {error}",
                        "keep averages beside the model, by on_step=") from error
        self.decay = decay
        teacher = _root_of(self.teacher)
        teacher.requires_grad_(False)
        teacher.eval()
        self.root = Beside(self.root, AVERAGE, teacher)
        self.keep_modes()

    def averaged(self) -> dict[int, str]:
        """Of the parameters of the average that follow a trained one: the name of that, by id."""
        if self.decay is None:
            return {}
        trained = {name for name, parameter in self.root.named_parameters() if parameter.requires_grad}
        assert self.teacher_root is not None
        return {id(parameter): name for name, parameter in self.teacher_root.named_parameters() if name in trained}

    def keep_modes(self) -> None:
        self.modes = {module: module.training for module in self.modules()}

    def set_modes(self, training: bool) -> None:
        """Training: each module in the mode that the script set."""
        for module, mode in self.modes.items():
            if module.training != (training and mode):  # setting it is slow
                module.training = training and mode

    def set_still(self) -> None:
        """Training without dropout. Left in their modes: layers with statistics, and those that cuDNN trains in that mode alone."""
        for module, mode in self.modes.items():
            module.training = mode and isinstance(module, (_NormBase, nn.RNNBase))

    def call(self, batch: Any, averaged: bool = False, **known: Any) -> Any:
        """What the loss gives for a batch; `averaged`: of the average. `known`: of what it may ask for by name."""
        assert self.loss is not None
        given = self.teacher if averaged else self.given
        return self.loss(given, batch, **{name: self.teacher if name == "teacher" else known.get(name) for name in self.asked})

    def copied(self) -> "Parts":
        """A second model with its own tensors. What the loss has from elsewhere still leads to the first: see Trial of copies."""
        memo: dict[int, Any] = {}
        try:
            given = copy.deepcopy(self.given, memo)
            loss = copy.deepcopy(self.loss, memo) if isinstance(self.loss, nn.Module) else self.loss
        except Exception as error:
            raise Error(f"this model cannot be copied for a second device of this process: {type(error).__name__}: {error}",
                        "one device in each process: start the script as a file, or name one --device") from error
        parts = together(given, loss, self.score)
        if self.decay is not None:
            parts.average(self.decay)
        parts.modes = {memo.get(id(module), theirs): mode
                       for (module, mode), theirs in zip(self.modes.items(), parts.modules(), strict=True)}
        return parts


def together(model: Any, loss: Any, score: Any = None) -> Parts:
    """Errors: no module, nothing that could be a loss."""
    several = isinstance(model, (tuple, list))
    pieces = tuple(model) if several else (model,)
    if not pieces or not all(isinstance(piece, nn.Module) or (several and isinstance(piece, nn.Parameter)) for piece in pieces):
        found = f"a {type(model).__name__} of {', '.join(type(piece).__name__ for piece in pieces)}" if several else type(model).__name__
        raise Error(f"model: expected a torch.nn.Module, or a tuple of modules and parameters, found {found}",
                    "motley.Run(model, loss, train_loader, optimizer)")
    for name, value in (("loss", loss), ("score", score)):
        if value is not None and not callable(value):
            raise Error(f"{name}: expected a function of (model, batch), found {type(value).__name__}", f"def {name}(model, batch): ...")
    given = pieces if several else model
    root = saved = _root_of(given)
    if isinstance(loss, nn.Module) and (any(True for _ in loss.parameters()) or any(True for _ in loss.buffers())):
        known = {id(tensor) for tensor in (*root.parameters(), *root.buffers())}
        if any(id(tensor) not in known for tensor in (*loss.parameters(), *loss.buffers())):
            taken = dict(root.named_children())
            root = saved = Beside(root, CRITERION if LOSS in taken else LOSS, loss)
    parts = Parts(root, given, loss, score, saved, _asked(loss))
    parts.keep_modes()
    return parts


def _root_of(given: Any) -> nn.Module:
    return Together({str(number): piece for number, piece in enumerate(given)}) if isinstance(given, tuple) else given


def _asked(loss: Any) -> tuple[str, ...]:
    if loss is None:
        return ()
    try:
        parameters = list(inspect.signature(loss).parameters.values())[2:]
    except (TypeError, ValueError):
        return ()
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    unknown = [name for name in needed if name not in ASKED_BY_NAME]
    if unknown:
        raise Error(f"loss: it wants {', '.join(unknown)}, which a run does not have",
                    f"loss(model, batch), and by name what it needs of {', '.join(ASKED_BY_NAME)}")
    return tuple(p.name for p in parameters if p.name in ASKED_BY_NAME and p.kind is not p.POSITIONAL_ONLY)


def check_memory(root: nn.Module) -> None:
    """Errors: a tensor of the model has no shape yet, or is in no memory; or two are in the same, of which one is trained: torch's
    optimizers would step it twice, or change the other along, and where a run computes they lie apart."""
    found: dict[tuple[torch.device, int], list[tuple[str, torch.Tensor]]] = {}
    for name, tensor in (*root.named_parameters(), *root.named_buffers()):
        if isinstance(tensor, nn.parameter.UninitializedTensorMixin):
            raise Error(f"{name} has no shape yet: its layer is lazy", "call the model with a batch before motley.Run")
        if tensor.is_meta:
            raise Error(f"{name} has no values: it is on the device meta",
                        'model.to_empty(device="cpu"), and load_state_dict(...), before motley.Run')
        with contextlib.suppress(RuntimeError, NotImplementedError):  # of tensors that are made of others
            if tensor.numel() and tensor.layout == torch.strided and (place := tensor.untyped_storage().data_ptr()) != 0:
                found.setdefault((tensor.device, place), []).append((name, tensor))
    for together in found.values():
        for at, (name, tensor) in enumerate(together):
            for other, another in together[at + 1 :]:
                if (tensor.requires_grad or another.requires_grad) and _overlap(tensor, another):
                    raise Error(f"{name} and {other} are in the same memory, and not the same tensor: where a run computes they lie apart",
                                f"one parameter for both: model.{other} = model.{name}, also after load_state_dict(..., assign=True); or "
                                "clone() one of them")


def _overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Of two tensors in one storage."""
    first, second = ((t.storage_offset(), t.storage_offset() + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) + 1)
                     for t in (a, b))
    if a.dtype != b.dtype:
        return True
    if first[1] <= second[0] or second[1] <= first[0]:
        return False
    there = torch.zeros(max(first[1], second[1]), dtype=torch.bool)
    there.as_strided(a.shape, a.stride(), a.storage_offset()).fill_(True)
    return bool(there.as_strided(b.shape, b.stride(), b.storage_offset()).any())


def check_optimizer(parts: Parts, optimizer: torch.optim.Optimizer) -> None:
    """Errors: it has parameters that no worker would compute gradients of, or hooks that nobody would call."""
    known = {id(parameter) for parameter in parts.root.parameters()}
    others = [parameter for group in optimizer.param_groups for parameter in group["params"] if id(parameter) not in known]
    if others:
        shapes = ", ".join(str(list(parameter.shape)) for parameter in others[:3])
        raise Error(f"the optimizer has {len(others)} parameter{'s' if len(others) > 1 else ''} that the model does not have "
                    f"({shapes}{' …' if len(others) > 3 else ''})",
                    "motley.Run((model, criterion), ...): the loss gets the same tuple as its model; or a loss that is an nn.Module")
    own = [getattr(optimizer, f"_optimizer_step_{when}_hooks", None) for when in ("pre", "post")]  # a wrapper may have none
    if any(own) or _global_optimizer_pre_hooks or _global_optimizer_post_hooks:
        raise Error("the optimizer has hooks on its steps, which the coordinator makes, without calling them",
                    "do the same after each step, by motley.Run(..., on_step=lambda model, step: ...), or before it, in the loss")
    if _is_replaced(optimizer):
        raise Error("the optimizer's step was replaced by another function, which nobody would call",
                    f"a subclass of {type(optimizer).__name__} with a step() of its own: it runs on the head, with the whole gradient")
    for name, parameter in parts.root.named_parameters():
        if getattr(parameter, "_post_accumulate_grad_hooks", None):
            raise Error(f"{name} has a hook that is called with its accumulated gradient, which no single machine has",
                        "use register_hook, if what it does may be done to the gradient of each part of the batch")


def _is_replaced(optimizer: torch.optim.Optimizer) -> bool:
    """A scheduler of torch's has put a function around it that counts."""
    step = optimizer.__dict__.get("step")
    if step is None:
        return False
    counts = inspect.getfile(torch.optim.lr_scheduler)
    theirs = getattr(getattr(step, "__code__", None), "co_filename", "") == counts
    return not theirs or inspect.unwrap(step) is not inspect.unwrap(type(optimizer).step)
