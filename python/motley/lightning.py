"""Lightning modules as they are: what a Trainer would do with them, on all machines.

    run = motley.lightning.Run(module, train_loader, val_loader, clip_norm=1.0)
    for epoch in run.epochs(10):
        print(epoch.number, epoch.loss, epoch.test_loss, epoch.val_acc)

Any nn.Module with training_step() and configure_optimizers() will do; Lightning itself is not imported.
"""

import contextlib
import copy
import inspect
import numbers
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from motley import _launch
from motley._errors import Error
from motley._models import _parts
from motley._runs import _run
from motley._samples import _data
from motley._trials import _overridden

__all__ = ["Run"]

TAKEN = {"loss": "training_step", "optimizer": "configure_optimizers", "schedule": "configure_optimizers",
         "schedule_every": "configure_optimizers", "test": "val_loader"}
MEANS = ("mean", "avg", torch.mean)
LOSS = "val_loss"  # under this name validation_step logs its loss
SAMPLES, PART = 8, 3
TOLERANCE = 1e-3  # as a share of what is compared


class Run(_run.Run):
    """A motley.Run of a Lightning module.

    module: its training_step gives the loss (a tensor, or a dictionary with "loss"), configure_optimizers the optimizer and its schedule.
        Where the loss is a mean over something else than samples, training_step returns {"loss": mean, "weight": how many}. It may ask
        for `step`, `epoch`, `state` and `teacher` by name, as a loss does: def training_step(self, batch, batch_idx, epoch=1).
    val_loader: to evaluate on with validation_step: epoch.test_loss is what it returns, or what it logs as "val_loss", or else what
        training_step gives; everything else that it logs is an attribute of the epoch.
    options: those of motley.Run, but for what the module says itself. score: more sums over a batch, beside what is logged.

    setup("fit") and configure_model() are called as by a Trainer. Errors: motley.Error for whatever a Trainer would do and a run does not.
    """

    def __init__(self, module: nn.Module, train_loader: Any, val_loader: Any = None, **options: Any):
        for name, source in TAKEN.items():
            if name in options:
                raise Error(f"{name}: it comes from {source}", f"leave {name} out, or use motley.Run(model, loss, train_loader, optimizer)")
        _overridden.check(module)
        for hook, arguments in (("setup", ("fit",)), ("configure_model", ())):
            if _overridden.has(module, hook):
                getattr(module, hook)(*arguments)
        chosen = _chosen(module.configure_optimizers())
        evaluates = val_loader is not None and _overridden.has(module, "validation_step")
        steps = _Steps(type(module).training_step, type(module).validation_step if evaluates else None, chosen)
        score = options.pop("score", None)
        if evaluates:
            val_loader, score = _with_counts(val_loader), steps.score(score)
            if _launch.role() != "join":
                _look(module, steps, _data.BatchSource(val_loader, "test"), chosen)
        super().__init__(module, steps.loss(), train_loader, chosen.optimizer, schedule=chosen.schedule, schedule_every=chosen.every,
                         test=val_loader, score=score, **options)


# --- the optimizer -----------------------------------------------------------------------------------------------------------


@dataclass
class _Chosen:
    optimizer: Any
    schedule: Any = None
    every: str | None = None
    monitor: str | None = None  # what a ReduceLROnPlateau follows

    @property
    def loss(self) -> str:
        """Under which name the loss of an evaluation is logged."""
        return self.monitor if self.monitor is not None and self.schedule.mode == "min" else LOSS


def _chosen(configured: Any) -> _Chosen:
    """What configure_optimizers gave, in any of Lightning's forms. Errors: several optimizers or schedulers, none."""
    optimizers, schedulers, monitor = _taken_apart(configured)
    if len(optimizers) != 1:
        raise Error(f"configure_optimizers: expected one optimizer, found {len(optimizers) or 'none'}",
                    "one optimizer with parameter groups; for steps by turns, run.leases() or a motley.Run for each")
    if len(schedulers) > 1:
        raise Error(f"configure_optimizers: expected one scheduler at most, found {len(schedulers)}",
                    "torch.optim.lr_scheduler.ChainedScheduler or SequentialLR")
    if not schedulers:
        return _Chosen(optimizers[0])
    about = {"monitor": monitor, **schedulers[0]} if isinstance(schedulers[0], dict) else {"scheduler": schedulers[0], "monitor": monitor}
    scheduler, interval, frequency = about.get("scheduler"), about.get("interval", "epoch"), about.get("frequency", 1)
    plateau = isinstance(scheduler, ReduceLROnPlateau)
    if scheduler is None:
        raise Error('configure_optimizers: the dictionary of the scheduler has no "scheduler"',
                    '{"scheduler": scheduler, "interval": "step"}')
    if interval not in ("epoch", "step") or plateau and interval != "epoch":
        raise Error(f"configure_optimizers: interval {interval!r} of {type(scheduler).__name__}, which a run does not have",
                    '"interval": "epoch"' + ("" if plateau else ', or "step"'))
    if frequency != 1:
        raise Error(f"configure_optimizers: frequency {frequency} of {type(scheduler).__name__}; a run steps it after every {interval}",
                    "\"frequency\": 1 and a scheduler with longer periods" + (", or another patience" if plateau else ""))
    if about.get("reduce_on_plateau", plateau) and not plateau:
        raise Error(f"configure_optimizers: {type(scheduler).__name__} is to follow evaluations, and is no ReduceLROnPlateau",
                    "torch.optim.lr_scheduler.ReduceLROnPlateau, or run.set_lr() in the body of the epochs")
    if plateau and about["monitor"] is None:
        raise Error("configure_optimizers: ReduceLROnPlateau without a monitor", f'"monitor": "{LOSS}"')
    return _Chosen(optimizers[0], scheduler, interval, about["monitor"] if plateau else None)


def _taken_apart(configured: Any) -> tuple[list[Any], list[Any], str | None]:
    """(optimizers, schedulers, monitor)."""
    if configured is None:
        return [], [], None
    if isinstance(configured, dict):
        scheduler = configured.get("lr_scheduler")
        return [configured.get("optimizer")], [] if scheduler is None else [scheduler], configured.get("monitor")
    if not isinstance(configured, (list, tuple)):
        return [configured], [], None
    if len(configured) == 2 and isinstance(configured[0], (list, tuple)):
        optimizers, schedulers = configured
        return list(optimizers), list(schedulers) if isinstance(schedulers, (list, tuple)) else [schedulers], None
    parts = [_taken_apart(each) for each in configured]
    return [each for part in parts for each in part[0]], [each for part in parts for each in part[1]], None


# --- the steps ---------------------------------------------------------------------------------------------------------------


class _Evaluated(NamedTuple):
    """A batch of the validation set, with what validation_step gave for it, once that was asked for."""

    batch: Any
    samples: int
    found: list[Any]


class _Collate:
    def __init__(self, collate: Callable[[list[Any]], Any]):
        self._collate = collate

    def __call__(self, samples: list[Any]) -> _Evaluated:
        return _Evaluated(self._collate(samples), len(samples), [])


def _with_counts(loader: Any) -> Any:
    if not isinstance(loader, torch.utils.data.DataLoader):
        raise Error(f"val_loader: expected one torch.utils.data.DataLoader, found {type(loader).__name__}",
                    "a motley.Run evaluates on one set; join several by torch.utils.data.ConcatDataset")
    counting = copy.copy(loader)
    counting.collate_fn = _Collate(loader.collate_fn)
    return counting


@dataclass
class _Steps:
    """The module's own functions, called with whatever module a worker has."""

    train: Callable[..., Any]
    validate: Callable[..., Any] | None
    chosen: _Chosen

    def loss(self) -> Callable[..., Any]:
        train, validate, name = self.train, self.validate, self.chosen.loss  # closed over: what a run can reach is looked at
        takes_index, asked = _signature(train)

        def loss(model: Any, batch: Any, **known: Any) -> Any:
            if isinstance(batch, _Evaluated):
                assert validate is not None
                returned, logged = _validated(validate, model, batch)
                if returned is not None or name in logged:
                    return logged[name] if returned is None else returned
                batch = batch.batch
            with _attached(model, Log(None)):
                return _loss_of(train(model, batch, *([_overridden.INDEX] if takes_index else []), **known))

        kinds = inspect.Parameter
        loss.__signature__ = inspect.Signature([kinds("model", kinds.POSITIONAL_OR_KEYWORD),  # type: ignore[attr-defined]
                                                kinds("batch", kinds.POSITIONAL_OR_KEYWORD),
                                                *(kinds(each, kinds.KEYWORD_ONLY) for each in asked)])
        return loss

    def score(self, more: Callable[[Any, Any], Mapping[str, Any]] | None) -> Callable[[Any, Any], dict[str, Any]]:
        validate, loss, first = self.validate, self.chosen.loss, self.chosen.monitor
        assert validate is not None

        def score(model: Any, batch: _Evaluated) -> dict[str, Any]:
            _, logged = _validated(validate, model, batch)
            names = sorted((name for name in logged if name not in (loss, LOSS)), key=lambda name: name != first)
            sums = {name: logged[name] * batch.samples for name in names}
            return {**sums, **(more(model, batch.batch) if more is not None else {})}

        return score


def _signature(step: Callable[..., Any]) -> tuple[bool, list[str]]:
    """Whether the function takes the batch's index, and what it asks for by name."""
    parameters = list(inspect.signature(step).parameters.values())[1:]
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD, each.VAR_POSITIONAL)]
    takes_index = len(positional) > 1 and positional[1].name not in _parts.ASKED_BY_NAME or positional[:1] != [] and (
        positional[0].kind is inspect.Parameter.VAR_POSITIONAL)
    rest = [each for each in parameters[1 + takes_index :] if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    strange = [each.name for each in rest if each.name not in _parts.ASKED_BY_NAME and each.default is each.empty]
    if not positional or strange or positional[0].name == "dataloader_iter":
        raise Error(f"{step.__name__}: it wants {', '.join(strange) or 'dataloader_iter'}, which a run does not have",
                    f"def {step.__name__}(self, batch, batch_idx), and by name what it needs of {', '.join(_parts.ASKED_BY_NAME)}")
    return takes_index, [each.name for each in rest if each.name in _parts.ASKED_BY_NAME]


def _loss_of(found: Any) -> Any:
    if isinstance(found, Mapping) and "loss" in found:
        return (found["loss"], found["weight"]) if "weight" in found else found["loss"]
    if found is None or isinstance(found, Mapping):
        raise Error(f"training_step returned {'None' if found is None else 'a dictionary without a loss'}, expected the loss of the batch",
                    'return loss, or {"loss": loss}; a batch cannot be skipped, but {"loss": loss, "weight": 0} leaves it out')
    return found


def _validated(validate: Callable[..., Any], model: Any, batch: _Evaluated) -> tuple[Any, dict[str, Any]]:
    """(the loss or None, numbers by name) that validation_step gives for the batch, computed once."""
    if not batch.found:
        log = Log(batch.samples)
        takes_index, _ = _signature(validate)
        with _attached(model, log):
            returned = validate(model, batch.batch, *([_overridden.INDEX] if takes_index else []))
        if isinstance(returned, Mapping):
            returned = _loss_of(returned) if "loss" in returned else None
        pair = isinstance(returned, tuple) and len(returned) == 2
        batch.found.append((returned if pair or isinstance(returned, torch.Tensor) and returned.dim() == 0 else None, log.found))
    return batch.found[0]


# --- what is logged ------------------------------------------------------------------------------------------------------------


class Log:
    """Stands for a module's log() and log_dict(). samples: of the batch; None: what is logged is passed over."""

    def __init__(self, samples: int | None):
        self._samples = samples
        self.found: dict[str, torch.Tensor | float] = {}

    def log(self, name: str, value: Any, prog_bar: bool = False, logger: Any = None, on_step: Any = None, on_epoch: Any = None,
            reduce_fx: Any = "mean", batch_size: int | None = None, **_: Any) -> None:
        if self._samples is None:
            return
        single = value.numel() == 1 if isinstance(value, torch.Tensor) else isinstance(value, numbers.Real)
        if not single:
            raise Error(f"validation_step logs {name!r}, a {type(value).__name__}, expected a number: the mean over the batch",
                        "log the batch's own value, e.g. (logits.argmax(1) == y).float().mean(), not a metric that gathers several")
        if reduce_fx not in MEANS:
            raise Error(f"validation_step logs {name!r} with reduce_fx={getattr(reduce_fx, '__name__', reduce_fx)}; an epoch has means",
                        f"self.log({name!r}, the mean over the batch)")
        if batch_size is not None and int(batch_size) != self._samples:
            raise Error(f"validation_step logs {name!r} with batch_size={batch_size} for {self._samples} samples; an epoch has means over "
                        "samples", f"self.log({name!r}, the sum divided by the number of samples)")
        self.found[name] = value.detach().reshape(()).float() if isinstance(value, torch.Tensor) else float(value)

    def log_dict(self, dictionary: Mapping[str, Any], *arguments: Any, **options: Any) -> None:
        for name, value in dictionary.items():
            self.log(name, value, *arguments, **options)


@contextlib.contextmanager
def _attached(module: Any, log: Log) -> Iterator[None]:
    """Meanwhile the module logs there, and knows on which device it is; afterwards it has no attributes that it had not before."""
    attributes = vars(module)
    stands = {"log": log.log, "log_dict": log.log_dict}
    if "_device" in attributes:  # what self.device of Lightning's is
        stands["_device"] = next(module.parameters()).device
    before = {name: attributes[name] for name in stands if name in attributes}
    attributes.update(stands)
    try:
        yield
    finally:
        for name in stands:
            attributes.pop(name, None)
        attributes.update(before)


# --- at the start --------------------------------------------------------------------------------------------------------------


def _look(module: nn.Module, steps: _Steps, source: _data.BatchSource, chosen: _Chosen) -> None:
    """Tries validation_step on eight samples, three and five. Errors: what is logged is no mean over samples, what a scheduler follows is
    not there."""
    modes = {each: each.training for each in module.modules()}
    assert steps.validate is not None
    module.eval()
    try:
        with _data.RandomWatch(), torch.no_grad():
            samples = _data.read(source.dataset, (), list(range(min(SAMPLES, source.samples))), None)
            parts = [part for part in (samples, samples[:PART], samples[PART:]) if part]
            device = next(module.parameters()).device
            batches = [_data.move(source.collate(part), device) for part in parts]
            with _data.RandomWatch() as drawing:
                found = [_validated(steps.validate, module, batch) for batch in batches]
    finally:
        for each, mode in modes.items():
            each.training = mode
    returned, logged = found[0]
    if chosen.monitor is not None:
        _check_monitor(chosen, returned[0] if isinstance(returned, tuple) else returned, logged)
    if drawing.draws or len(parts) < 3:
        return
    names = [name for name in logged if name not in (chosen.loss, LOSS)]
    for name in names:
        whole, *rest = ((float(values.get(name, float("nan"))), len(part)) for (_, values), part in zip(found, parts, strict=True))
        expected = sum(value * count for value, count in rest) / whole[1]
        size = sum(abs(value) * count for value, count in rest) / whole[1]
        if abs(whole[0] - expected) > TOLERANCE * size:
            raise Error(f"validation_step logs {name!r}, which is not a mean over the samples: it is {whole[0]:.6g} of {whole[1]}, and "
                        f"{rest[0][0]:.6g} and {rest[1][0]:.6g} of {rest[0][1]} and {rest[1][1]} of them",
                        f'score=: sums over the batch, of which the body of the epochs makes {name}; log the loss itself as "{LOSS}"')


def _check_monitor(chosen: _Chosen, returned: Any, logged: dict[str, Any]) -> None:
    monitor = chosen.monitor
    if monitor not in logged:
        raise Error(f"configure_optimizers: ReduceLROnPlateau follows {monitor!r}, which validation_step does not log",
                    f"self.log({monitor!r}, value) in validation_step")
    if chosen.schedule.mode == "min" and returned is not None:
        value, loss = float(logged[monitor]), float(returned)
        if abs(value - loss) > TOLERANCE * max(abs(value), abs(loss)):
            raise Error(f"configure_optimizers: ReduceLROnPlateau follows {monitor!r}, and validation_step returns another number; what a "
                        "run follows downwards is the loss of its evaluations", f"return what is logged as {monitor!r}, or nothing")
