"""What the core is told of a script's optimizer and its schedule."""

import json
import pathlib
import sys
from typing import Any

import torch

from motley import _core
from motley._computing._work import Work
from motley._errors import Error
from motley._models import _files
from motley._optimizers import _begun, _optimizer, _outside
from motley._runs import _body, _export
from motley._samples import _data


class Rules:
    """schedule, asked: the run's `schedule` and `schedule_every`."""

    def __init__(self, read: _optimizer.ReadOptimizer, schedule: Any, asked: str | None, train: _data.BatchSource):
        self.read, self.schedule, self._asked, self._train = read, schedule, asked, train
        self.outside: _outside.Outside | None = None  # the optimizer that runs on the head, if one does
        self._resumed = ""
        self._told: tuple[int, int, list[_optimizer.Rates]] | None = None  # as _table() has it

    def resume(self, directory: str) -> None:
        """Before anything is told of a run; `directory`: of one that goes on, if any."""
        self._resumed = directory
        self._train.resume_orders(directory)
        if directory:
            _begun.put_back(directory, self.read.optimizer, self.schedule)
            self.read.look()
            if (checkpoint := _files.newest_checkpoint(pathlib.Path(directory))) is not None:
                self.read.updates_before = json.loads((checkpoint / "run.json").read_text(encoding="utf-8")).get("updates_before", 0)

    def take(self, directory: str) -> None:
        """The script's own objects get what a run left that is over, since the next one may go on with them."""
        optimizer = self.read.optimizer
        try:
            content = _export.read(pathlib.Path(directory))
            groups = [{**own, **saved} for own, saved in zip(optimizer.param_groups, content["optimizer"]["param_groups"], strict=True)]
            optimizer.load_state_dict({**content["optimizer"], "param_groups": groups})
            if "scheduler" in content and self.schedule is not None:
                self.schedule.load_state_dict(content["scheduler"])
        except Exception as error:  # optimizers load in ways of their own
            print(f"{directory} is over: {type(optimizer).__name__} does not take up what that left of it: {error}", file=sys.stderr)

    def keep(self, directory: str) -> None:
        """When the run's directory is there."""
        self._train.write_orders(directory)
        if not self._resumed:
            _begun.keep(directory, self.read.optimizer, self.schedule, self._told, _optimizer.counts_alone(self.read, self.schedule))

    def tell(self, script: _core.Script, work: Work, steps: int, resumed: str) -> list[str]:
        """On the head; what the user should know of it. `resumed`: the directory of the run that goes on, if any."""
        self.every(steps)
        self._tell_optimizer(script, work)
        if self.follows_evaluations:
            if work.test is None:
                raise Error("schedule: ReduceLROnPlateau follows evaluations, and the run has none", "motley.Run(..., test=loader)")
            plateau = _optimizer.Plateau(self.read, self.schedule, work.scores)
            script.follow_evaluations(plateau, plateau.resume(resumed) if resumed else [])
        elif (table := self._table(steps)) is not None:
            script.set_schedule(*table)
            self._told = table
        if resumed and self.schedule is None:
            script.set_followed(_body.remembered(resumed))
        if self.read.begun is not None:
            self.read.begun.release()
        return self._notes()

    def _notes(self) -> list[str]:
        notes = self.outside.notes() if self.outside is not None else []
        if self.read.has_begun:
            steps = f" from step {self.read.updates_before}" if self.read.begun and self.read.kind != "sgd" else ""
            notes.append(f"{type(self.read.optimizer).__name__} goes on{steps} with the state that it has")
        return notes

    def _tell_optimizer(self, script: _core.Script, work: Work) -> None:
        if self.read.kind == _optimizer.OUTSIDE or work.parts.decay is not None:
            self.outside = self._outside_of(work)
        script.set_optimizer(_optimizer.OUTSIDE if self.outside else self.read.kind, self.read.all_groups(), self.outside)
        if self.outside is None and self.read.begun is not None:
            script.set_begun(self.read.begun.updates, self.read.begun.vectors(work.layout, work.names))

    def tell_of_rounds(self, script: _core.Script) -> None:
        """On the head of a run in rounds, whose optimizer is the workers' own: the core counts its groups alone."""
        self.outside = None
        script.set_optimizer(self.read.kind, self.read.all_groups(), None)

    def tell_to_measure(self, script: _core.Script, work: Work, steps: int, files: bytes) -> None:
        """On the head, before a run that is measured first: exact steps, of which nothing is kept."""
        script.set_files(files)
        self.tell_own(script, work, steps)
        self._tell_optimizer(script, work)

    def tell_own(self, script: _core.Script, work: Work, steps: int) -> None:
        """Wherever somebody computes."""
        script.set_own(lambda: (self.read.kind, self.read.all_groups(), self._table(steps)), lambda: self._outside_of(work))

    def every(self, steps: int) -> str:
        """After what the schedule is stepped. Errors: that was not said, and is not clear."""
        self._asked = _optimizer.every(self.schedule, self._asked, self.read, steps)
        return self._asked

    def scheduler_steps(self, before: int, now: int, steps: int) -> int:
        """Between two of the run's `steps`."""
        each = 1 if self.every(steps) == "step" else self._train.steps_per_epoch
        return now // each - before // each

    def asks(self) -> dict[str, bool]:
        """What rounds do not do."""
        return {"ReduceLROnPlateau as schedule": self.follows_evaluations, "an optimizer that has made steps": self.read.has_begun}

    @property
    def follows_evaluations(self) -> bool:
        return isinstance(self.schedule, torch.optim.lr_scheduler.ReduceLROnPlateau)

    def _outside_of(self, work: Work) -> _outside.Outside:
        return _outside.Outside(self.read, work.layout, work.names, work.unused, work.parts)

    def _table(self, steps: int) -> tuple[int, int, list[_optimizer.Rates]] | None:
        """Steps of a row, groups, and the rates of all rows."""
        if self.schedule is None or self.follows_evaluations:
            return None
        per_row = 1 if self.every(steps) == "step" else self._train.steps_per_epoch
        stepped = steps // per_row if isinstance(self.schedule, torch.optim.lr_scheduler.LRScheduler) else -(-steps // per_row) - 1
        return per_row, len(self.read.all_groups()), _optimizer.table(self.read, self.schedule, stepped + 1)
