"""The weights with the best evaluation, and when to stop waiting for better ones."""

import json
import os
import pathlib
from typing import Any

import torch

from motley import _numbers
from motley._errors import Error
from motley._models import _files
from motley._models._parts import Parts
from motley._runs._epoch import Epoch

WEIGHTS, NOTE = "best.safetensors", "best.json"  # in the run's directory
LOSS = "test_loss"


class Best:
    """what: a score (larger is better) or "test_loss"; None: nothing is kept."""

    def __init__(self, what: str | None, patience: int | None, tested: bool):
        if patience is not None and what is None:
            raise Error("patience: it waits for a better value of keep_best, and there is none", 'keep_best="test_loss"')
        if what is not None and not tested:
            raise Error("keep_best: the run has no evaluations", "motley.Run(..., test=loader)")
        self._what = what
        self._patience = None if patience is None else _numbers.count("patience", patience, "patience=5")
        self.value: float | None = None
        self.over = False
        self._without = 0  # evaluations since
        self._state: dict[str, torch.Tensor] | None = None

    def look(self, epoch: Epoch, parts: Parts, directory: str) -> None:
        """The model has the weights of this evaluation."""
        if self._what is None:
            return
        value = epoch.test_loss if self._what == LOSS else epoch.scores.get(self._what)
        if value is None:
            raise Error(f"keep_best: expected test_loss or one of the scores ({', '.join(epoch.scores) or 'none'}), found {self._what!r}",
                        'keep_best="test_loss"')
        before = self.value
        better = before is None or (value < before if self._what == LOSS else value > before) or (before != before and value == value)
        self._without = 0 if better else self._without + 1
        if better:
            self.value = value
            saved = parts.teacher_root or parts.saved
            self._state = {name: tensor.detach().clone() for name, tensor in saved.state_dict().items()}
            _files.save(saved, os.path.join(directory, WEIGHTS))
            pathlib.Path(directory, NOTE).write_text(json.dumps({"step": epoch.step, self._what: value}) + "\n", encoding="utf-8")
        self.over = self._patience is not None and self._without >= self._patience

    def resume(self, directory: str) -> None:
        """Of a run that goes on: its weights. What the next ones are compared with, the eval points know."""
        path = pathlib.Path(directory, WEIGHTS)
        if self._what is not None and directory and path.is_file():
            self._state = _files.read_safetensors(path)

    def count(self) -> list[float | int | None]:
        return [self.value, self._without]

    def go_on(self, counted: list[Any]) -> None:
        """With what count() was at an eval point."""
        self.value, self._without = counted

    def leave_in(self, parts: Parts) -> bool:
        """At the end of the run; whether there is one."""
        if self._state is not None:
            parts.saved.load_state_dict(self._state)
        return self._state is not None


