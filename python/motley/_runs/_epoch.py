"""What a script sees of steps and epochs."""

from typing import Any

from motley import _core


class Step:
    """One update; of a run in rounds, one round, with the number of its last step.

    number, epoch: from 1 on.  loss: mean over its samples.  samples: used.  seconds: it took.  learning_rate: of the first group.
    gradient_norm: before clipping; 0 without.
    """

    def __init__(self, event: _core.Event, number: int | None = None):
        self.number = event.version if number is None else number
        self.epoch = event.epoch + 1
        self.loss = event.loss
        self.samples = event.samples
        self.seconds = event.seconds
        self.learning_rate = event.learning_rate
        self.gradient_norm = event.gradient_norm


class Epoch:
    """One epoch that is over. The values of `score` are attributes too, e.g. `epoch.accuracy`.

    number: from 1 on.  loss: mean over the epoch's training samples.  samples: used.  seconds: of its steps.
    learning_rate: of the first group, at its first step.  step: the number of its last step.
    test_loss: mean over the test set; None without one.  scores: by name; empty without `test` or `score`.
    """

    def __init__(self, event: _core.Event, tested: _core.Event | None, step: int | None = None):
        self.number = event.epoch + 1
        self.loss = event.loss
        self.samples = event.samples
        self.seconds = event.seconds
        self.learning_rate = event.learning_rate
        self.step = event.version if step is None else step
        self.test_loss = tested.loss if tested is not None else None
        self.scores = dict(tested.scores) if tested is not None else {}

    @staticmethod
    def of(values: dict[str, Any]) -> "Epoch":
        """For the package: one that was written down as its vars()."""
        epoch = Epoch.__new__(Epoch)
        epoch.__dict__.update(values)
        return epoch

    def __getattr__(self, name: str) -> float:
        scores = self.__dict__.get("scores", {})
        if name in scores:
            return scores[name]
        raise AttributeError(f"an epoch has no '{name}'; score gave {sorted(scores) or 'nothing'}")

    def __repr__(self) -> str:
        shown = {"loss": self.loss, **({"test_loss": self.test_loss} if self.test_loss is not None else {}), **self.scores}
        return f"Epoch {self.number}: " + ", ".join(f"{name} {value:.6g}" for name, value in shown.items())
