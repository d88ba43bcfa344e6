"""An optimizer that has made steps, here or in plain torch: what the head goes on from."""

import pathlib
import pickle
from typing import Any

import torch

from motley import _core
from motley._errors import Error
from motley._models import _model
from motley._optimizers import _options, _own_numbers

MOMENTS = ("exp_avg", "exp_avg_sq")
BUFFER = "momentum_buffer"
FILE = "start.pt"  # in the run's directory: options and schedule that it began with
COUNTS, LAST_RATES = ("last_epoch", "_step_count"), "_last_lr"  # in the state of schedulers
RATES_MAX = 1_000_000  # that are kept


class Begun:
    """updates: that the optimizer has made, as far as it counts them; the state by name and id of the parameter."""

    def __init__(self, updates: int, states: dict[str, dict[int, torch.Tensor]]):
        self.updates, self._states = updates, states

    def vectors(self, layout: _core.Layout, names: list[_model.Named]) -> list[tuple[str, torch.Tensor]]:
        """By name, each in the layout of the weights."""
        return [(name, self._vector(state, layout, names)) for name, state in self._states.items()]

    def release(self) -> None:
        """The head has them."""
        self._states.clear()

    def _vector(self, state: dict[int, torch.Tensor], layout: _core.Layout, names: list[_model.Named]) -> torch.Tensor:
        flat = _model.vector(layout.flat_elements)
        for named, piece in _model.pieces(layout, names, flat):
            if named.kind == _model.TRAINED and id(named.tensor) in state:
                piece.copy_(state[id(named.tensor)])
        return flat


def has(optimizer: Any) -> bool:
    """Some make their state beforehand, and count the steps in it."""
    states = (state for _, each in _own_numbers.within(optimizer) for state in each.state.values())
    return any(_steps(state) != 0 for state in states if any(value is not None for value in state.values()))


def _steps(state: dict[str, Any]) -> float:
    """As far as it is known."""
    steps = state.get("step", 1)
    return float(steps) if isinstance(steps, (int, float, torch.Tensor)) else 1.0


def read(optimizer: Any, kind: str) -> Begun | None:
    """Of SGD, Adam and AdamW. None: it is not what the core could go on from, such as parameters of different numbers of steps."""
    names = (BUFFER,) if kind == "sgd" else MOMENTS
    found: dict[str, dict[int, torch.Tensor]] = {name: {} for name in names}
    updates = set()
    for p, group in ((p, group) for group in optimizer.param_groups for p in group["params"] if p.requires_grad):
        state = optimizer.state.get(p) or {}
        here = {name: state[name] for name in names if state.get(name) is not None}
        if state.keys() - {"step", *names} or not all(_fits(value, p) for value in here.values()):
            return None
        if kind == "sgd":  # without a dampening the first step is one from a buffer of zeros
            updates.add(1.0 if here or not group["dampening"] else 0.0)
        else:
            updates.add(_steps(state) if len(here) == len(names) else 0.0)
        for name, value in here.items():
            if kind != "sgd" or group["momentum"] != 0:
                found[name][id(p)] = value.detach()
    if len(updates) != 1 or not (made := updates.pop()).is_integer():
        return None
    return Begun(int(made), {name: state for name, state in found.items() if state})


def _fits(value: Any, parameter: torch.Tensor) -> bool:
    return type(value) is torch.Tensor and value.dtype == torch.float32 and value.shape == parameter.shape


def keep(directory: str, optimizer: Any, schedule: Any, table: tuple[int, int, list[_options.Rates]] | None, counted: bool) -> None:
    """What the run begins with, for when a script resumes it whose objects have gone on meanwhile, and for an export. table: steps of a
    row, groups, and the rates of all rows. counted: the schedule does nothing but count."""
    start = {"groups": [{key: value for key, value in group.items() if _is_plain(value)} for group in _options.options(optimizer)],
             "counts": _counts(optimizer, schedule), "counted": counted}
    if table is not None and len(table[2]) <= RATES_MAX:
        start["steps of a row"], start["rates"] = table[0], torch.tensor(table[2], dtype=torch.float64).view(-1, table[1], 4)
    file = pathlib.Path(directory, FILE)
    try:
        torch.save({**start, "schedule": schedule.state_dict() if hasattr(schedule, "state_dict") else None}, file)
        torch.load(file, weights_only=True)
    except (OSError, RuntimeError, AttributeError, TypeError, pickle.PickleError):  # of a function that a class of the script's own makes
        torch.save({**start, "schedule": None}, file)


def at(directory: pathlib.Path, step: int, groups: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Gives the groups the rates that they had at a step of the run, as far as they follow from a schedule alone; returns its state
    then. None: there was none, or that is not known."""
    file = directory / FILE
    start = torch.load(file, weights_only=True) if file.is_file() else {}
    if "rates" not in start:
        return None
    steps = step // start["steps of a row"]
    rates = start["rates"][min(steps, len(start["rates"]) - 1)].tolist()
    for group, fresh in zip(groups, rates, strict=False):  # the last is nobody's
        _options.set_rates(group, tuple(fresh))
    if start["schedule"] is None or not start["counted"]:
        return None
    counts = {name: start["schedule"][name] + steps for name in COUNTS if name in start["schedule"]}
    return {**start["schedule"], **counts, LAST_RATES: [group["lr"] for group in groups]}


def put_back(directory: str, optimizer: Any, schedule: Any) -> None:
    """Where the script's optimizer or schedule stands elsewhere than at the start of the run that goes on, since it loaded a later
    checkpoint of its own, options and schedule are again as they were; what the optimizer keeps comes from the run's checkpoint. Errors:
    that cannot be done with this schedule."""
    file = pathlib.Path(directory, FILE)
    start = torch.load(file, weights_only=True) if file.is_file() else None
    if start is None or start["counts"] == _counts(optimizer, schedule):
        return
    if schedule is not None and not callable(schedule) and start["schedule"] is None:
        raise Error(f"schedule: this run began with {type(schedule).__name__} at {start['counts']}, and the script has it at "
                    f"{_counts(optimizer, schedule)}", "load what the script loaded when the run began, and --resume again")
    for group, options in zip(optimizer.param_groups, start["groups"], strict=False):
        for key, value in options.items():
            if isinstance(group.get(key), torch.Tensor):
                group[key].fill_(value)
            else:
                group[key] = value
    if start["schedule"] is not None:
        schedule.load_state_dict(start["schedule"])


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str, type(None))) or isinstance(value, tuple) and all(map(_is_plain, value))


def _counts(optimizer: Any, schedule: Any) -> dict[str, float]:
    """Where they stand."""
    state = schedule.state_dict() if hasattr(schedule, "state_dict") else {}
    steps = max((_steps(each) for each in optimizer.state.values() if each), default=0.0) if has(optimizer) else 0.0
    return {"steps of the optimizer": steps, **{name: state[name] for name in COUNTS if isinstance(state.get(name), int)}}
