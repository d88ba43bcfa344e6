"""The body of an epoch: what the script finds while nothing computes, and what it may change for the steps that follow.

The order is the plain loop's: nothing of the next steps begins before the body has ended.
"""

import json
import operator
import os
import pathlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.optim import lr_scheduler

from motley import _core, _numbers, _state
from motley._computing._work import Work
from motley._errors import Error
from motley._models import _binding, _model
from motley._optimizers import _optimizer, _options
from motley._runs import _watched
from motley._trials import _traces

RATES = "rates.json"  # in the run's directory: [step, learning rates by group], for a run that is resumed
BY_STATE = ("motley.Run(..., state={...}): the loss gets it as `state`, and the body sets run.state[...]; or ask for `step` or `epoch` by "
            "name in the loss")


def pack(state: dict[str, Any], made: bool = True, orders: Mapping[str, Any] | None = None) -> bytes:
    """What travels: the script's state, (`made`) the samples that its body makes, and the `orders` of its sampler."""
    samples = [list(each.tensors) for each in _state.HeadTensors.made] if made else []
    return _state.encode({**state, **({_state.DATA: samples} if samples else {}), **(orders or {})})


def made() -> list[tuple[torch.Tensor, ...]]:
    """The samples that the body makes, by set."""
    return [each.tensors for each in _state.HeadTensors.made]


class Body:
    """What is compared around every body. Errors name what changed, before a step is made with it."""

    def __init__(self, work: Work, read: _optimizer.ReadOptimizer, schedule: Any, owner: _binding.Owner,
                 state: dict[str, Any], orders: Callable[[int], dict[str, Any]]):
        """state: the run's. orders(version): of the sampler, as they travel for the steps from there on."""
        self._work, self._read, self._schedule, self._owner, self._state, self._orders = work, read, schedule, owner, state, orders
        self.sent: bytes | None = work.state  # None: nobody knows
        self._flat = _model.vector(work.layout.flat_elements)
        self._traces = _traces.Traces(work.roots, work.parts.root, work.memory, (work.of_run,))
        self._watched = _watched.Watched(work)
        self._watches = False
        self._seen: _traces.Seen | None = None
        self._first_state = self._sent_state = _state.of_script(_state.decode(work.state))  # values that hold, or held at first
        self._options: list[dict[str, Any]] = []
        self._trains = [(name, p, p.requires_grad) for name, p in work.parts.root.named_parameters()]
        self._modules: list[nn.Module] = []
        self._held: list[tuple[dict[str, Any], ...]] = []  # by each of these
        self._fixed: list[tuple[str, torch.Tensor]] = []  # what no step changes
        self._versions: list[int] = []

    def begin(self, state: _core.State) -> None:
        """The script is about to look at the model as it was at `state`."""
        state.copy_weights(self._work.layout, self._flat)
        if self._seen is None or self._seen.changes():  # by a step since, as far as it may
            self._seen = self._traces.take()
        self._options = _options.options(self._read.optimizer)

    def look(self, version: int, last: bool) -> None:
        """The script finds the model as it left it. last: no step comes after."""
        self._sent_state = _state.of_script(_state.decode(_state.encode(self._state)))
        self._watches = not last
        if self._watches:
            assert self._seen is not None
            self._watched.before(self._seen, step=version + 1, epoch=version // self._work.train.steps_per_epoch + 1,
                                 state=self._sent_state)
        if not self._modules or not self._in_place():  # a forward pass may have made a buffer
            root, names = self._work.parts.root, self._work.names
            self._modules = list(self._work.parts.modules())
            self._held = [tuple(map(dict, _held(module))) for module in self._modules]
            moving = {id(named.tensor) for named in names if named.kind not in (_model.FROZEN, _model.ALIAS)}
            moving |= set(map(id, _model.followers(names, root).values()))
            self._fixed = [each for each in (*root.named_parameters(), *root.named_buffers()) if id(each[1]) not in moving]
        self._versions = [tensor._version for _, tensor in self._fixed]

    @property
    def flat(self) -> torch.Tensor:
        return self._flat

    def set_lr(self, lr: float, group: int | None) -> None:
        groups = self._read.optimizer.param_groups
        if self._schedule is not None:
            raise Error("set_lr: the run has a schedule, which sets the learning rate", "leave schedule= out")
        if group is not None:
            group = _numbers.whole("set_lr: group", group, 0, len(groups) - 1, "run.set_lr(lr, group=0)")
        rate = _options.number(lr, "set_lr: lr")
        for number, each in enumerate(groups):
            if group is None or number == group:
                each["lr"] = rate

    def rates(self) -> list[float]:
        """Learning rates by group, as the optimizer has them."""
        return [_options.number(group["lr"], "optimizer: lr") for group in self._read.optimizer.param_groups] + [0.0]

    def end(self, directory: str | None, version: int) -> tuple[list[float] | None, bytes | None]:
        """What changed, for the steps that follow: learning rates by group, and the encoded state. Errors: what no worker would see."""
        self._check_model()
        rates = self._changed_rates()
        self._check_reached()
        self._check_data()
        if rates is not None and directory is not None:
            _remember(directory, version, rates)
        self._check_behaviour()
        packed = pack(self._state, orders=self._orders(version))
        state = packed if packed != self.sent else None
        self.sent = packed
        return rates, state

    def _check_model(self) -> None:
        computation = self._owner.current()
        if computation is not None and (name := computation.differs(self._flat)) is not None:
            raise Error(f"the body of the epoch changed {name} of the model, which the other machines would not see",
                        "constrain weights in the forward pass (torch.nn.utils.parametrize), or start another run with these weights")
        self._check_places()
        for name, parameter, trains in self._trains:
            if parameter.requires_grad != trains:
                raise Error(f"the body of the epoch changed requires_grad of {name}",
                            "run.set_lr(0, group=...) where it has a group of its own, or another motley.Run with the layers that train")

    def _check_places(self) -> None:
        """Layers and tensors in the place of others would be the head's alone, and what is not trained nobody sends."""
        names = [name for (name, tensor), version in zip(self._fixed, self._versions, strict=True) if tensor._version != version]
        if not self._in_place():
            for module, held in zip(self._modules, self._held, strict=True):
                for before, now in zip(held, map(dict, _held(module)), strict=True):  # of scripted modules something else
                    others = [name for name in {**before, **now} if not _same(before.get(name), now.get(name))]
                    names += [f"{name} ({type(module).__name__})" for name in others]
        if names:
            raise Error(f"the body of the epoch changed {names[0]} of the model, which the other machines would not see",
                        "numbers that change: motley.Run(..., state={...}), which the loss gets; else start another motley.Run")

    def _in_place(self) -> bool:
        """Whether that is quickly seen: dictionaries look first whether their values are the same objects."""
        try:
            return all(map(operator.eq, self._held, map(_held, self._modules)))
        except RuntimeError:  # of tensors that are others
            return False

    def _changed_rates(self) -> list[float] | None:
        groups = _options.options(self._read.optimizer)
        if [group.keys() for group in groups] != [group.keys() for group in self._options]:
            raise Error("the body of the epoch changed the optimizer's groups", "start another motley.Run with the new optimizer")
        for number, (group, before) in enumerate(zip(groups, self._options, strict=True)):
            for key in group:
                if key != "lr" and key != "initial_lr" and group[key] != before[key]:
                    raise Error(f"the body of the epoch changed {key} of the optimizer's group {number} from {before[key]} to "
                                f"{group[key]}; only the learning rate may change in a run",
                                "start another motley.Run with the new optimizer")
        if all(group["lr"] == before["lr"] for group, before in zip(groups, self._options, strict=True)):
            return None
        if self._schedule is not None:
            raise Error("the body of the epoch changed the learning rate, which the schedule of the run sets",
                        "leave out either scheduler.step() or schedule=")
        self._read.check_rates(self._options)
        return self.rates()

    def _check_reached(self) -> None:
        assert self._seen is not None
        for change in self._seen.changes():
            raise Error(f"the body of the epoch changed {change.what}, which the other machines do not see", BY_STATE)

    def _check_behaviour(self) -> None:
        """What the loss reads and nobody walked to."""
        if not self._watches:
            return
        assert self._seen is not None
        self._watched.check(self._seen, "the body of the epoch", BY_STATE, _state.shown(self._state, self._sent_state))

    def _check_data(self) -> None:
        for source in (self._work.train, self._work.test):
            if source is None or isinstance(source.dataset, _state.HeadTensors):
                continue
            with _state.shown(self._state, self._first_state):
                position = source.sampled_again()
            if position is not None:
                raise Error(f"{source.name}: sample {position} is another than at the start of the run; other machines have the old one",
                            "motley.HeadTensors(...) for samples that the body makes; run.state[...] for what they are made with; torch's "
                            "and numpy's generators in __getitem__")
            if source.loader.num_workers and source.sampled_again() is not None:
                raise Error(f"{source.name}: its samples follow from run.state, and the processes that read them have its first value",
                            "num_workers=0, or let collate_fn or the loss do what depends on run.state")

    def follow_schedule(self, steps: int, tested: _core.Event | None) -> None:
        """The script's own scheduler, after so many of its steps."""
        if self._schedule is None or callable(self._schedule):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that its optimizer made no steps
            if isinstance(self._schedule, lr_scheduler.ReduceLROnPlateau):
                if tested is not None:
                    self._schedule.step(tested.loss if self._schedule.mode == "min" else tested.scores[0][1])
                return
            for _ in range(steps):
                self._schedule.step()


_held = operator.attrgetter("_parameters", "_buffers", "_modules")


def _same(before: Any, now: Any) -> bool:
    """A tensor may have been away and back."""
    if now is before or not isinstance(before, torch.Tensor) or not isinstance(now, torch.Tensor):
        return now is before
    return before.shape == now.shape and torch.equal(before.detach().cpu(), now.detach().cpu())


def _remember(directory: str, version: int, rates: list[float]) -> None:
    path = pathlib.Path(directory, RATES)
    known = [each for each in remembered(directory) if each[0] < version] + [(version, rates)]
    fresh = path.with_suffix(".new")
    with open(fresh, "w", encoding="utf-8") as out:
        out.write(json.dumps(known) + "\n")
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(path)


def remembered(directory: str) -> list[tuple[int, list[float]]]:
    """What bodies set: learning rates by group, by step."""
    try:
        text = pathlib.Path(directory, RATES).read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [(int(step), [float(rate) for rate in rates]) for step, rates, *_ in json.loads(text)]
