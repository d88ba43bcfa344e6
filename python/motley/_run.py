"""A run of the user's model: `Run` on the head and in workers, and the epochs that its script sees."""

import contextlib
import copy
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn

from motley import _computation, _core, _data, _devices, _files, _head, _inspect, _launch, _leases, _model, _notebook, _optimizer, _outside
from motley._epoch import Epoch, Step
from motley._errors import Error

Loss = Callable[[nn.Module, Any], Any]
Score = Callable[[nn.Module, Any], dict[str, Any]]
SCHEDULE_EVERY = ("epoch", "step")
CLIP_NORM_OF = ("own", "previous")


class Run:
    """Trains `model` on this machine and on all that join, as if one machine had the whole batch.

    loss(model, batch): the mean over the samples of the batch as a tensor, or (mean, weight) where the mean is over something else
        than samples: tokens, weighted samples.
    train_loader: a DataLoader over a map-style data set. Its batch_size is the **global** batch, over all machines; its data set,
        collate_fn, pin_memory, and the num_workers that read ahead (in every process of the run) are used.
    optimizer: of torch.optim, over the model's parameters. SGD, Adam and AdamW are read, not run: the coordinator makes the updates. Any
        other runs on the head, on its copy of the weights.
    schedule: a scheduler of that optimizer; stepped after every "step" or "epoch", as `schedule_every` says. ReduceLROnPlateau follows the
        evaluations on `test`: their loss, or (mode="max") the first of the scores.
    test: a DataLoader to evaluate on after each epoch.  score(model, batch): a dictionary of sums over the batch, e.g.
        {"accuracy": number of right answers}; divided by the number of samples.
    clip_norm: largest norm of the whole gradient; 0: no clipping.  clip_norm_of: the norm that is compared with it: "own", as in torch, or
        "previous", that of the step before: then no weight waits for the last gradient, which hides more of a slow link.
    precision: "fp32", or "bf16" to compute under autocast.
    seed: of the order of samples, of dropout and of augmentation.
    init: where the weights come from, instead of the model: a file that `save` wrote, or a run's directory.
    callbacks: for loggers: objects with on_step(motley.Step), on_epoch(motley.Epoch) or both, called on the head by whoever iterates over
        the epochs. Steps that come faster than they are taken are not all told.

    Errors: motley.Error with what to try.
    """

    def __init__(self, model: nn.Module, loss: Loss | None, train_loader: Any, optimizer: Any, *, schedule: Any = None,
                 schedule_every: str = "epoch", test: Any = None, score: Score | None = None, clip_norm: float = 0.0,
                 clip_norm_of: str = "own", precision: str = "fp32", seed: int = 1, init: str | os.PathLike[str] | None = None,
                 callbacks: Iterable[Any] = ()):
        if not isinstance(model, nn.Module):
            raise Error(f"model: expected a torch.nn.Module, found {type(model).__name__}",
                        "motley.Run(model, loss, train_loader, optimizer)")
        for name, value in (("loss", loss), ("score", score)):
            if value is not None and not callable(value):
                raise Error(f"{name}: expected a function of (model, batch), found {type(value).__name__}",
                            f"def {name}(model, batch): ...")
        if schedule_every not in SCHEDULE_EVERY:
            raise Error(f"schedule_every: expected one of {', '.join(SCHEDULE_EVERY)}, found {schedule_every!r}", 'schedule_every="step"')
        if clip_norm_of not in CLIP_NORM_OF:
            raise Error(f"clip_norm_of: expected one of {', '.join(CLIP_NORM_OF)}, found {clip_norm_of!r}", 'clip_norm_of="own"')
        if precision not in _computation.PRECISIONS:
            raise Error(f"precision: expected one of {', '.join(_computation.PRECISIONS)}, found {precision!r}", 'precision="fp32"')
        self._model, self._loss, self._score = model, loss, score
        self._train = _data.Recipe(train_loader, "train_loader")
        self._test = _data.Recipe(test, "test") if test is not None else None
        self._read = _optimizer.ReadOptimizer(optimizer)
        self._schedule, self._schedule_every = schedule, schedule_every
        self._clip_norm, self._clip_norm_of, self._precision, self._seed = float(clip_norm), clip_norm_of, precision, int(seed)
        self._notes = self._train.check_order()
        if init is not None and _launch.role() != "join":  # workers get their weights from the head
            _files.load(model, os.fspath(init))
        table = _notebook.table() if _launch.role() == "train" else None
        self._callbacks = [*callbacks, *([table] if table is not None else [])]
        for callback in self._callbacks:
            if not any(callable(getattr(callback, name, None)) for name in ("on_step", "on_epoch")):
                raise Error(f"callbacks: {type(callback).__name__} has neither on_step nor on_epoch",
                            "class Logger:\n    def on_epoch(self, epoch): ...")
        self._head: _core.Head | None = None
        self._begun = False
        self.history: list[Epoch] = []

    def epochs(self, count: int) -> Iterator[Epoch]:
        """Trains for `count` epochs. On the head, yields each epoch when it is over, with the model's weights as they were then,
        while training goes on. In a worker it never yields: it serves the run and exits."""
        if self._loss is None:
            raise Error("epochs: the run has no loss", "motley.Run(model, loss, ...), or run.leases()")
        launch = self._begin(count)
        if launch.role == "join":
            self._serve(launch)
        return self._epochs(launch, count)

    def _begin(self, epochs: int) -> _core.Launch:
        if self._begun:
            raise Error("this run has begun already", "make another motley.Run")
        if epochs < 1:
            raise Error(f"epochs: expected at least 1, found {epochs}", "run.epochs(10)")
        self._begun = True
        return _launch.use()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model as it is now: in the body of an epoch, with the weights of its end. `path` ends in .safetensors, or in .pt
        for what torch.load reads."""
        _files.save(self._model, os.fspath(path))

    @property
    def directory(self) -> str | None:
        """Where the run's files are, on the head while it goes on; else None."""
        return self._head.directory if self._head is not None else None

    def leases(self, epochs: int) -> Iterator[_leases.Lease]:
        """For loops of one's own, on every machine: the script computes its shares of the steps itself, on the model's device.

            for lease in run.leases(epochs=10):
                for x, y in lease:
                    losses = F.cross_entropy(model(x), y, reduction="none")
                    losses.sum().backward()                    # no zero_grad(), no optimizer
                    lease.add(losses.sum(), len(losses))

        There is no loss that could be tried beforehand: that the gradient is a sum over samples is the script's affair. Normalisation
        and dropout are found by the classes of the layers. `history` has the epochs that are over. Not with `test`.
        """
        launch = self._begin(epochs)
        if self._test is not None:
            raise Error("leases: evaluation needs run.epochs()", "leave test out, and evaluate in the script")
        return self._leases(launch, epochs)

    # --- in a worker ---------------------------------------------------------------------------------------------------------

    def _serve(self, launch: _core.Launch) -> None:
        with self._limited():
            work = self._work(check=False)
        script = self._script(work, lambda device, threads: _computation.ModelComputation(work, self._model, work.names, device, threads))
        with self._reading():
            _head.serve(launch, script)

    # --- on the head ---------------------------------------------------------------------------------------------------------

    def _epochs(self, launch: _core.Launch, count: int, door: _leases.Door | None = None) -> Iterator[Epoch]:
        copied = door is None
        with self._limited():
            work = self._work(check=True)
            script = self._script(work, lambda device, threads: self._copied(work, device, threads) if copied else
                                  _leases.LeaseComputation(door, work, self._model, work.names, device, threads))
            script.set_weights(_model.flatten(work.layout, work.names))
            for named in work.names:
                if named.kind == _model.FROZEN:
                    script.set_frozen(named.name, _model.bytes_of(named.tensor))
            notes = self._notes + _unused_note(work) + self._set_optimizer(script, work, count, launch.resumed)
            flat = torch.zeros(work.layout.flat_elements)
        happened = _head.epochs(launch, script, self._config(count), tested=work.test is not None,
                                notes=notes, description=self._description(work),
                                on_step=self._on_step if self._wants("on_step") else None)
        with self._reading(), contextlib.closing(happened):
            for self._head, epoch, tested in happened:
                assert epoch.state is not None
                if copied:
                    epoch.state.copy_weights(work.layout, flat)
                    _model.unflatten(work.layout, work.names, flat, epoch.version)
                ended = Epoch(epoch, tested)
                for on_epoch in self._wants("on_epoch"):
                    on_epoch(ended)
                yield ended
        self._head = None

    def _wants(self, what: str) -> list[Callable[[Any], None]]:
        return [getattr(callback, what) for callback in self._callbacks if hasattr(callback, what)]

    def _on_step(self, happening: _core.Happening) -> None:
        step = Step(happening)
        for on_step in self._wants("on_step"):
            on_step(step)

    def _leases(self, launch: _core.Launch, count: int) -> Iterator[_leases.Lease]:
        """The run goes on in a thread beside the script's, which computes."""
        door, failed = _leases.Door(), []
        work = self._work(check=False)
        script = self._script(work, lambda device, threads: _leases.LeaseComputation(door, work, self._model, work.names, device, threads))

        def drive() -> None:
            try:
                if launch.role == "join":
                    with self._reading():
                        _head.work(launch, script)
                else:
                    self.history.extend(self._epochs(launch, count, door))
            except Error as error:
                failed.append(error)
            finally:
                door.end()

        thread = threading.Thread(target=drive, name="motley")
        thread.start()
        try:
            yield from door.leases()
        finally:
            if self._head is not None:
                self._head.stop()
            thread.join()
        if failed:
            raise failed[0]
        if launch.role == "join":
            raise SystemExit(0)

    def _reading(self) -> contextlib.ExitStack:
        """Meanwhile there are the processes that read samples. Comes before the threads and sockets of the run: children inherit these."""
        stack = contextlib.ExitStack()
        for recipe in (self._train, self._test):
            if recipe is not None:
                stack.enter_context(recipe.reading())
        return stack

    def _copied(self, work: _computation.Work, device: str, threads: int) -> _computation.ModelComputation:
        """A worker of the head computes on a copy: the script may look at its model while training goes on."""
        model = copy.deepcopy(self._model)
        tensors = model.state_dict(keep_vars=True)
        names = [copy.copy(named) for named in work.names]
        for named in names:
            named.tensor = tensors[named.name]
        return _computation.ModelComputation(work, model, names, device, threads)

    def _limited(self) -> contextlib.AbstractContextManager[None]:
        return _devices.limited(next(iter(self._model.parameters()), torch.empty(0)).device)

    def _work(self, check: bool) -> _computation.Work:
        return _inspect.make_work(self._model, self._loss, self._score, self._train, self._test, self._read, self._precision, check)

    def _script(self, work: _computation.Work, make: Callable[[str, int], Any]) -> _core.Script:
        script = _core.Script(work.layout, work.acts_on_groups, _devices.within_memory(make))
        script.set_scores(work.scores)
        script.set_train(work.train.size, work.train.fingerprint())
        if work.test is not None:
            script.set_test(work.test.size, work.test.fingerprint())
        for device in _devices.devices():
            script.add_device(*device)
        return script

    def _set_optimizer(self, script: _core.Script, work: _computation.Work, epochs: int, resumed: str) -> list[str]:
        """Optimizer and schedule; what the user should know of them. `resumed`: the directory of the run that goes on, if any."""
        groups = self._read.all_groups()
        self._outside = None
        if self._read.kind == _optimizer.OUTSIDE:
            self._outside = _outside.Outside(self._read.optimizer, work.layout, work.names, work.unused)
        script.set_optimizer(self._read.kind, groups, self._outside)
        if isinstance(self._schedule, torch.optim.lr_scheduler.ReduceLROnPlateau):
            if work.test is None:
                raise Error("schedule: ReduceLROnPlateau follows evaluations, and the run has none", "motley.Run(..., test=loader)")
            plateau = _optimizer.Plateau(self._read, self._schedule, work.scores)
            script.follow_evaluations(plateau, plateau.resume(resumed) if resumed else [])
        elif self._schedule is not None:
            steps_per_epoch = -(-self._train.size // self._train.batch_size)
            every_step = self._schedule_every == "step"
            rates = _optimizer.table(self._read, self._schedule, epochs * (steps_per_epoch if every_step else 1))
            script.set_schedule(1 if every_step else steps_per_epoch, len(groups), rates)
        return [self._outside.note()] if self._outside is not None else []

    def _config(self, epochs: int) -> str:
        """The run file that this run would have. What only torch can say stands in the script."""
        lr, momentum, dampening, nesterov, decay, beta1, beta2, eps = self._read.groups[0]
        sections: dict[str, dict[str, Any]] = {
            "model": {"kind": "script"},
            "data": {"uri": "script", "test_uri": "script" if self._test is not None else ""},
            "train": {"epochs": epochs, "global_batch": self._train.batch_size, "seed": self._seed, "clip_norm": self._clip_norm,
                      "clip_norm_of": self._clip_norm_of},
            "optimizer": {"kind": self._read.kind, "lr": lr, "momentum": momentum, "dampening": dampening, "nesterov": nesterov,
                          "weight_decay": decay, "beta1": beta1, "beta2": beta2, "eps": eps},
        }
        return _head.config_text(sections)

    def _description(self, work: _computation.Work) -> dict[str, Any]:
        """The optimizer as torch knows it: its class, and the options and parameters of each group in its order."""
        names = {id(named.tensor): named.name for named in work.names if not named.alias_of}
        groups = [{"options": {key: value for key, value in group.items() if isinstance(value, (bool, int, float, tuple, type(None)))},
                   "params": [names.get(id(parameter), "") for parameter in group["params"]]}
                  for group in self._read.optimizer.param_groups]
        state = {} if self._outside is None else {"state": self._outside.described()}
        return {"optimizer": type(self._read.optimizer).__name__, "groups": groups, **state}


def fit(model: nn.Module, loss: Loss, train_loader: Any, optimizer: Any, epochs: int, **options: Any) -> list[Epoch]:
    """Run(model, loss, train_loader, optimizer, **options) for so many epochs, in one call. Leaves the trained weights in the model."""
    return list(Run(model, loss, train_loader, optimizer, **options).epochs(epochs))


def _unused_note(work: _computation.Work) -> list[str]:
    if not work.unused:
        return []
    return [f"no gradient in a trial, so left as they are: {', '.join(sorted(work.unused)[:5])}{' …' if len(work.unused) > 5 else ''}"]
