"""A run of the user's model: `Run` on the head and in workers, and the epochs that its script sees."""

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from motley import _core, _launch, _numbers, _state
from motley._computing import _computation, _work
from motley._errors import Error
from motley._machines import _devices
from motley._models import _binding, _files, _model, _parts
from motley._optimizers import _optimizer, _optimizer_shown, _rounds
from motley._runs import _auto, _best, _body, _callbacks, _described, _eval_points, _head, _leases, _rules, _sequence
from motley._runs._epoch import Epoch, Step
from motley._samples import _data
from motley._trials._loss import PRECISIONS

Loss = Callable[..., Any]
Score = Callable[[Any, Any], dict[str, Any]]
CHOICES = {"schedule_every": (None, "epoch", "step"), "clip_norm_of": ("own", "previous"), "precision": tuple(PRECISIONS),
           "unused": (None, "zero"), "mode": _rounds.CHOICES}


class Run:
    """Trains `model` on this machine and on all that join, as if one machine had the whole batch.

    model: a module, or a tuple of modules and parameters; the loss gets what stands here.
    loss(model, batch): the mean over the samples of the batch as a tensor, or (mean, weight) where the mean is over something else
        than samples: tokens, weighted samples. An nn.Module's own parameters train as well. By name it may ask for `step` and `epoch` (from
        1 on), `state`, and `teacher`.
    train_loader: a DataLoader over a map-style data set, over motley.Shards, or over an iterable one with a length. Its batch_size is the
        **global** batch, over all machines; its data set, sampler, collate_fn, drop_last, pin_memory, and the num_workers that read ahead
        (in every process of the run) are used.
    optimizer: of torch.optim, over the model's parameters. SGD, Adam and AdamW are read, not run: the coordinator makes the updates. Any
        other runs on the head, on its copy of the weights. One that has made steps, or was loaded, goes on from there.
    schedule: a scheduler of that optimizer; stepped after every "step" or "epoch", as `schedule_every` says. ReduceLROnPlateau follows the
        evaluations on `test`: their loss, or (mode="max") the first of the scores. Or a function of the step (0 for the first) that returns
        the learning rate.
    test: a DataLoader to evaluate on after each epoch.  score(model, batch): a dictionary of sums over the batch, e.g.
        {"accuracy": number of right answers}; divided by the number of samples.
    clip_norm: largest norm of the whole gradient; 0 or None: no clipping.  clip_norm_of: the norm that is compared with it: "own", as in
        torch, or "previous", that of the step before: then no weight waits for the last gradient, which hides more of a slow link.
    precision: "fp32", or "bf16" to compute under autocast.
    seed: of the order of samples, of dropout and of augmentation.
    init: where the weights come from, instead of the model: a file that `save` wrote, or a run's directory.
    callbacks: for loggers: objects with on_step(motley.Step), on_epoch(motley.Epoch) or both, called on the head by whoever iterates over
        the epochs. Steps that come faster than they are taken are not all told.
    state: numbers, words and tensors by name, which the loss gets as `state`; what the body puts into `run.state` holds on every machine
        from the next step on.
    on_step(model, step): called on the head after every step, with that step's weights in the model; nothing computes meanwhile.
    ema: decay of an average of the weights, (ema * average + (1 - ema) * weights) after every step. It is what is evaluated; the loss may
        ask for it as `teacher`; `save(path, ema=True)` writes it.
    evaluate_every: steps between two bodies, and their evaluations; None: an epoch.
    keep_best: a score (larger is better) or "test_loss": the weights with the best are in the model at the end, and in best.safetensors of
        the run's directory.  patience: stops after so many evaluations in a row without a better one.
    unused: "zero": where a step does not use a parameter, its gradient counts as zero. None: such parameters are refused, since torch
        leaves them out of the step.
    mode: "rounds": every machine makes train.rounds.steps steps with an optimizer of its own between two exchanges, for links that are too
        slow for a gradient a step (docs/guides/slow-links.md). "exact": a gradient of all for each step. "auto": measures, takes
        exact or rounds. None: as `--set train.mode=` says.

    Errors: motley.Error with what to try."""

    state: _state.OfRun = _state.OfRun()
    """What the loss gets as `state`; code may read it here as well. What the body puts there holds on every machine from the next step."""

    def __init__(self, model: Any, loss: Loss | None, train_loader: Any, optimizer: Any, *, schedule: Any = None,
                 schedule_every: str | None = None, test: Any = None, score: Score | None = None, clip_norm: float | None = None,
                 clip_norm_of: str = "own", precision: str = "fp32", seed: int = 1, init: str | os.PathLike[str] | None = None,
                 callbacks: Iterable[Any] = (), state: Mapping[str, Any] | None = None,
                 on_step: Callable[[Any, Step], Any] | None = None, ema: float | None = None, evaluate_every: int | None = None,
                 keep_best: str | None = None, patience: int | None = None, unused: str | None = None, mode: str | None = None):
        chosen = {"schedule_every": schedule_every, "clip_norm_of": clip_norm_of, "precision": precision, "unused": unused, "mode": mode}
        for name, value in chosen.items():
            if value not in CHOICES[name]:
                found = ", ".join(str(choice) for choice in CHOICES[name])
                raise Error(f"{name}: expected one of {found}, found {value!r}", f'{name}="{CHOICES[name][-1]}"')
        self._parts = _parts.together(model, loss, score)
        if ema is not None:
            self._parts.average(ema)
        elif "teacher" in self._parts.asked:
            raise Error("loss: it asks for `teacher`, the average of the weights, and the run keeps none", "motley.Run(..., ema=0.999)")
        self._seed, self._clip_norm = _numbers.seed(seed), _numbers.norm(clip_norm)
        self._train = _data.BatchSource(train_loader, "train_loader", self._seed)
        self._test = _data.BatchSource(test, "test") if test is not None else None
        self._read = _optimizer.ReadOptimizer(optimizer)
        self._rules, self._mode = _rules.Rules(self._read, schedule, schedule_every, self._train), mode
        self._clip_norm_of, self._precision, self._unused = clip_norm_of, precision, unused
        self._evaluate_every = _numbers.count("evaluate_every", evaluate_every or 0, "evaluate_every=1000", least=0)
        self._best = _best.Best(keep_best, patience, self._test is not None)
        self._train.check_order()
        self.state = state or {}
        if init is not None and _launch.role() != "join":  # workers get their weights from the head
            _files.load(self._parts.root, os.fspath(init))
        self._told = _callbacks.Callbacks(callbacks, on_step)
        self._head: _core.Head | None = None
        self._body: _body.Body | None = None
        self._begun = False
        self._rounds = _rounds.Rounds(0, 1)
        self._directory: str | None = None
        self.history: list[Epoch] = []
        """The epochs that ended here; of a run that was over before, and in a worker that outlives one, what the head wrote down."""

    def epochs(self, count: int) -> Iterator[Epoch]:
        """Trains for `count` epochs. On the head, yields each epoch when it is over, with the model's weights as they were then; the
        next one begins when the body has ended. In a worker it never yields: it serves the run, and exits unless the head comes to a
        later run of the script. Then `history` and the model are the head's, and the generators of random numbers stand, here as there,
        where they stood before the run."""
        return self._train_for(*self._train.length(_numbers.count("epochs", count, "run.epochs(10)")))

    def steps(self, count: int) -> Iterator[Epoch]:
        """Likewise for `count` steps, however many epochs these are. Yields every `evaluate_every` steps, or at the end of each epoch."""
        count = _numbers.count("steps", count, "run.steps(5000)")
        return self._train_for({"steps": count}, count)

    def _train_for(self, length: dict[str, int], steps: int) -> Iterator[Epoch]:
        if self._parts.loss is None:
            raise Error("epochs: the run has no loss", "motley.Run(model, loss, ...), or run.leases()")
        launch = self._begin()
        return self._serve(launch, steps) if launch.role == "join" else self._epochs(launch, length, steps)

    def _begin(self) -> _core.Launch:
        if self._begun:
            raise Error("this run has begun already", "make another motley.Run")
        self._begun = True
        return _launch.use()

    def save(self, path: str | os.PathLike[str], ema: bool = False) -> None:
        """Writes the model as it is now: in the body of an epoch, with the weights of its end. `path` ends in .safetensors, or in .pt
        for what torch.load reads. `ema`: the average instead."""
        if ema and self._parts.teacher_root is None:
            raise Error("save: the run keeps no average", "motley.Run(..., ema=0.999)")
        _files.save(self._parts.teacher_root if ema else self._parts.saved, os.fspath(path))

    def set_lr(self, lr: float, group: int | None = None) -> None:
        """In the body of an epoch: the learning rate from the next step on, of one group of the optimizer or of all."""
        self._set_lr(lr, group, "set_lr")

    def freeze(self, group: int) -> None:
        """In the body of an epoch: set_lr(0, group), by which its parameters stay as they are and its momentum goes on."""
        self._set_lr(0.0, group, "freeze")

    def _set_lr(self, lr: float, group: int | None, name: str) -> None:
        if self._body is None:
            raise Error(f"{name}: the run is not in the body of an epoch", f"for epoch in run.epochs(10): run.{name}(...)")
        _rounds.check({f"{name}()": self._rounds})
        self._body.set_lr(lr, group)

    @property
    def directory(self) -> str | None:
        """Where the run's files are, on the head while it goes on; else None."""
        return self._head.directory if self._head is not None else None

    def leases(self, epochs: int) -> Iterator[_leases.Lease]:
        """For loops of one's own, on every machine: the script computes its shares of the steps itself, on the model's device.

            for lease in run.leases(epochs=10):
                for x, y in lease:
                    losses = F.cross_entropy(model(x), y, reduction="none")
                    losses.backward(torch.ones_like(losses))   # no zero_grad(), no optimizer
                    lease.add(losses.sum(), len(losses))

        There is no loss that could be tried beforehand: that the gradient is a sum over samples is the script's affair. Normalisation
        and dropout are found by the classes of the layers. `history` has the epochs that are over. Not with `test`."""
        count = _numbers.count("leases", epochs, "run.leases(epochs=10)")
        launch, self._parts.loop = self._begin(), sys._getframe(1)
        if self._test is not None:
            raise Error("leases: evaluation needs run.epochs()", "leave test out, and evaluate in the script")
        return self._lend(launch, *self._train.length(count))

    # --- in a worker ---------------------------------------------------------------------------------------------------------

    def _serve(self, launch: _core.Launch, steps: int) -> Iterator[Epoch]:
        """Begins when it is asked for the first epoch, as on the head; returns where the script has another run to come to."""
        with _data.RandomWatch():
            with self._limited():
                work, owner, script = self._elsewhere(launch)
                self._rules.tell_own(script, work, steps)
            with _data.reading(self._train, self._test):
                with contextlib.closing(owner):
                    left = _sequence.follow(launch, lambda patience_s: _head.work(launch, script, patience_s))
        self.history = left.give(work.parts.root, work.parts.saved)
        yield from ()

    def _elsewhere(self, launch: _core.Launch, queue: _leases.LeaseQueue | None = None) -> tuple[_work.Work, _binding.Owner, _core.Script]:
        work = self._find_out(launch, check=False)
        owner = _binding.Owner(work.parts, lambda: len(_core.chosen_devices(launch, script)))
        script = _work.script_of(launch, work, self._make(work, owner, looked_at=False, queue=queue))
        return work, owner, script

    # --- on the head ---------------------------------------------------------------------------------------------------------

    def _epochs(self, launch: _core.Launch, length: dict[str, int], steps: int, queue: _leases.LeaseQueue | None = None) -> Iterator[Epoch]:
        over = _launch.is_over()
        if not over:
            with _data.RandomWatch(), _launch.beginning():
                yield from self._trained(launch, length, steps, queue)
        if over:
            self._kept().end(launch.resumed, self.history)
        left = _sequence.read(launch.resumed) if launch.resumed and self._directory is None else None
        if left is not None:
            self.history = left.give(self._parts.root, self._parts.saved)
            self._rules.take(launch.resumed)
            print(f"{launch.resumed} is over: the model has what it left", file=sys.stderr, flush=True)

    def _trained(self, launch: _core.Launch, length: dict[str, int], steps: int, queue: _leases.LeaseQueue | None) -> Iterator[Epoch]:
        with self._limited():
            orders = functools.partial(self._train.orders_from, steps, steps if queue else self._evaluate_every, launch.role == "plan")
            self._rules.resume(launch.resumed)
            work = self._find_out(launch, check=True, orders=orders(0))
            owner = _binding.Owner(work.parts, lambda: len(_core.chosen_devices(launch, script)))
            script = _work.script_of(launch, work, self._make(work, owner, looked_at=True, queue=queue))
            script.set_batches(self._train.changes_of_batch())
            script.set_weights(_model.flatten(work.layout, work.names))
            for named in work.names:
                if named.kind == _model.FROZEN:
                    script.set_frozen(named.name, _model.bytes_of(named.tensor))
            section = _described.train_section(length, self._train, self._seed, (self._clip_norm, self._clip_norm_of), self._precision,
                                               self._evaluate_every, self._mode)
            file = _described.run_file(launch.arguments, _launch.number(), section, work.test is not None)
        files, asks = _sequence.pack(launch), self._asks(work, queue)
        exact = functools.partial(self._rules.tell_to_measure, script, work, steps, files)
        with _data.reading(self._train, self._test), _auto.chosen(launch, script, file, _rounds.against(asks), exact) as said:
            with self._limited():
                self._rounds = _rounds.of(launch, file, self._train.steps_per_epoch)
                notes = _work.notes(work) + said + self._set_optimizer(script, work, steps, launch.resumed, asks)
                self._best.resume(launch.resumed)
            pauses = "never" if queue is not None else "steps" if self._told.pauses_steps else "eval_points"
            outside = self._rules.outside
            points = self._kept(bool(work.draws or self._told.wants_steps), on_way=queue is None)
            described = _described.optimizer(self._read.optimizer, work.names, outside.described() if outside else None, self._rounds)
            happened = _head.epochs(launch, script, file, tested=work.test is not None, notes=notes, description=described,
                                    on_step=self._told.step(work, owner, self._read.optimizer, lambda: self.state, self._rounds.steps),
                                    steps=self._told.wants_steps, pauses=pauses, files=files,
                                    on_begin=functools.partial(points.begin, self.history, self._rules.keep, bool(launch.resumed)))
            try:
                with contextlib.closing(happened):
                    if queue is not None:
                        yield from self._watch(happened, work, owner, points)
                    else:
                        yield from self._bodies(happened, work, owner, steps, orders, points)
            finally:
                directory, self._body, self._head = self._directory, None, None
                points.close()
                owner.release()
                _sequence.write(directory, self.history, best=False)
        if self._best.leave_in(work.parts):
            _sequence.write(directory, self.history, best=True)

    def _bodies(self, happened: Iterator[Any], work: _work.Work, owner: _binding.Owner, steps: int,
                orders: Callable[[int], dict[str, Any]], points: _eval_points.EvalPoints) -> Iterator[Epoch]:
        body, before = _body.Body(work, self._read, self._rules.schedule, owner, self.state, orders), 0
        for self._head, epoch, tested in happened:
            state_then = _head.state_of(epoch, tested)
            made = self._rounds.steps(epoch.version)
            if before == 0 < points.version:
                before, body.sent = self._rounds.steps(points.schedule_from), None
            body.follow_schedule(self._rules.scheduler_steps(before, made, steps), tested)
            before = made
            self._directory = self._head.directory
            points.before_body()
            body.begin(state_then)
            with owner.shown(body.flat, epoch.version), self._optimizer_shown(work, state_then, last=made >= steps) as optimizer:
                body.look(made, last=made >= steps)
                ended = Epoch(epoch, tested, made)
                self.history.append(ended)
                self._best.look(ended, work.parts, self._head.directory)
                for on_epoch in self._told.of("on_epoch"):
                    on_epoch(ended)
                self._body = body
                try:
                    yield ended
                except GeneratorExit:
                    optimizer.fill()
                    raise
                self._body = None
                optimizer.check(self._best.over)
                rates, state = body.end(self._head.directory, epoch.version)
                _rounds.check({"changing the learning rate in the body of an epoch": self._rounds and rates is not None})
                self._train.write_orders(self._head.directory)
                points.after_body(epoch.version, ended)
            if self._best.over:
                _launch.ended()
                return
            self._head.go_on(rates, state, self._train.changes_of_batch())

    def _kept(self, draws: bool = False, on_way: bool = True) -> _eval_points.EvalPoints:
        return _eval_points.EvalPoints(
            self._read.optimizer, self._rules.schedule, self._best, lambda: self.state, [self, *self._parts.modules()],
            [source for source in (self._train, self._test) if source is not None], draws, on_way)

    def _watch(self, happened: Iterator[Any], work: _work.Work, owner: _binding.Owner, points: _eval_points.EvalPoints) -> Iterator[Epoch]:
        """The script computes meanwhile; the model gets the last weights when that is over."""
        flat, last = _model.vector(work.layout.flat_elements), None
        for self._head, last, _ in happened:
            self._directory = self._head.directory
            self.history.append(Epoch(last, None))
            points.after_body(last.version, self.history[-1])
            yield self.history[-1]
        if last is not None:
            last.state.copy_weights(work.layout, flat)
            with owner.shown(flat, last.version):
                pass

    def _optimizer_shown(self, work: _work.Work, state: _core.State, last: bool) -> _optimizer_shown.Shown:
        def fetch() -> _optimizer_shown.State:
            if self._rules.outside is not None:
                return self._rules.outside.state()
            if self._rounds:
                return {}  # each worker has its own
            return _optimizer.state(self._read, work.layout, work.names, state)

        return _optimizer_shown.Shown(self._read.optimizer, fetch, last)

    def _lend(self, launch: _core.Launch, length: dict[str, int], steps: int) -> Iterator[_leases.Lease]:
        """The run goes on in a thread beside the script's, which computes."""
        queue, failed, ended = _leases.LeaseQueue(), list[BaseException](), list[int | None]()

        def drive() -> None:
            try:
                if launch.role == "join":
                    ended.append(self._work_elsewhere(launch, queue))
                else:
                    for _ in self._epochs(launch, length, steps, queue):
                        pass
            except BaseException as error:
                failed.append(error)
            finally:
                queue.end()

        thread = threading.Thread(target=drive, name="motley")
        thread.start()
        try:
            yield from queue.leases()
        finally:
            if self._head is not None:
                self._head.stop(True)
            thread.join()
        if failed:
            raise failed[0]
        if launch.role == "join":
            left = _sequence.follow(launch, lambda _: ended.pop() if ended else None)
            self.history = left.give(self._parts.root, self._parts.saved)

    def _work_elsewhere(self, launch: _core.Launch, queue: _leases.LeaseQueue) -> int | None:
        _, owner, script = self._elsewhere(launch, queue)
        with _data.reading(self._train, self._test):
            at = _head.work(launch, script, _sequence.patience_s())
        owner.release()
        return at

    def _make(self, work: _work.Work, owner: _binding.Owner, looked_at: bool,
              queue: _leases.LeaseQueue | None = None) -> Callable[[str, int], Any]:
        """Makes the computation of a device: with the script's own model, the first time."""
        one_by_one = threading.Lock()  # devices ask on threads of their own

        def make(device: str, threads: int) -> Any:
            with one_by_one:
                own = owner.take()
                parts = work.parts if own else work.copied()
                computation = (_computation.ModelComputation(work, parts, device, threads, looked_at) if queue is None else
                               _leases.LeaseComputation(queue, work, parts, device, threads, looked_at))
                if own:
                    owner.is_of(computation)
                return computation

        return make

    def _limited(self) -> contextlib.AbstractContextManager[None]:
        return _devices.limited(next(iter(self._parts.root.parameters()), torch.empty(0)).device)

    def _find_out(self, launch: _core.Launch, check: bool, orders: Mapping[str, Any] | None = None) -> _work.Work:
        self._parts.keep_modes()
        packed = _body.pack(self.state, orders=orders)
        known = {"step": 1, "epoch": 1, "state": _state.of_script(_state.decode(packed)), "teacher": self._parts.teacher}
        return _work.make_work(self._parts, self._train, self._test, self._read, self._precision, packed, known, self._unused, check,
                               _devices.for_trials(launch.devices), self.state)

    def _set_optimizer(self, script: _core.Script, work: _work.Work, steps: int, resumed: str, asks: dict[str, bool]) -> list[str]:
        """What the user should know of it."""
        self._rules.tell_own(script, work, steps)
        if not self._rounds:
            return self._rules.tell(script, work, steps, resumed)
        _rounds.check(asks)
        self._rules.tell_of_rounds(script)
        return []

    def _asks(self, work: _work.Work, queue: _leases.LeaseQueue | None) -> dict[str, bool]:
        """What rounds do not do."""
        return {"run.leases()": queue is not None, "ema": work.parts.decay is not None, "on_step": self._told.pauses_steps,
                "a loss that asks for `step`, beside a test set": "step" in work.parts.asked and work.test is not None,
                **self._rules.asks(),
                "a train_loader with an order of its own (a sampler, or shuffled Shards)": self._train.orders is not None}
