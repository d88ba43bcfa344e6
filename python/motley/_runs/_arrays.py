"""The lower door: whatever can return gradients in arrays trains, without torch."""

import contextlib
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy

from motley import _core, _launch, _numbers
from motley._errors import Error, in_words
from motley._machines import _fetch
from motley._runs import _head
from motley._runs._epoch import Epoch
from motley._trials import _compared

F32, TRAINED = 1, 1
TRACEBACK_MAX = 3000  # characters of it, in a message
OPTIMIZERS = ("sgd", "adam", "adamw")
DEFAULTS = (0.01, 0.0, 0.0, 0.9, 0.999, 1e-8)


class Computation(Protocol):
    """What computes. Arrays that it is given are float32 views of memory that the core reads and writes; those that it gives may be
    of any library that numpy.asarray takes."""

    layout: Sequence[tuple[str, tuple[int, ...]]]
    """Names and shapes of what is trained; equal on all machines."""

    def initial(self) -> Mapping[str, Any]:
        """The weights to start from, by name; asked on the head alone."""

    def load(self, weights: Mapping[str, numpy.ndarray]) -> None:
        """New weights; they stay as they are until the next call."""

    def gradients(self, samples: Sequence[int], sums: Mapping[str, numpy.ndarray]) -> tuple[float, float]:
        """Adds the **sum** of the gradients of these samples to `sums`; returns (sum of their losses, weight), the weight being their
        number, or whatever the loss is a mean over."""


class ArrayRun:
    """A run whose gradients come from a Computation.

    samples: in the training set; the computation gets their numbers.  global_batch: samples of one update, over all machines.
    optimizer: "sgd", "adam" or "adamw", with torch's meaning of the options.  micro_batch: samples of one call of gradients().
    """

    def __init__(self, computation: Computation, samples: int, *, global_batch: int = 256, micro_batch: int = 256, optimizer: str = "sgd",
                 lr: float = 0.01, momentum: float = 0.0, weight_decay: float = 0.0, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, clip_norm: float = 0.0, seed: int = 1):
        if optimizer not in OPTIMIZERS:
            raise Error(f"optimizer: expected one of {', '.join(OPTIMIZERS)}, found {optimizer!r}", 'optimizer="adam"')
        options = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "beta1": betas[0], "beta2": betas[1], "eps": eps}
        lr, momentum, weight_decay, beta1, beta2, eps = (_numbers.number(name, value, 0, _numbers.RATE_MAX, f"{name}={default}")
                                                         for (name, value), default in zip(options.items(), DEFAULTS, strict=True))
        self._computation, self._samples = computation, _numbers.count("samples", samples, "samples=60000")
        self._micro_batch = _numbers.count("micro_batch", micro_batch, "micro_batch=256")
        self._group = (lr, momentum, 0.0, False, weight_decay, beta1, beta2, eps)
        self._optimizer = optimizer
        self._train = {"global_batch": _numbers.count("global_batch", global_batch, "global_batch=256"), "seed": _numbers.seed(seed),
                       "clip_norm": _numbers.norm(clip_norm)}
        self._layout = _core.Layout([(name, list(shape), F32, TRAINED, 0, 0.0, "", 0) for name, shape in computation.layout])

    def epochs(self, count: int) -> Iterator[Epoch]:
        """As Run.epochs(): yields on the head; in a worker, serves the run and exits."""
        count = _numbers.count("epochs", count, "run.epochs(10)")
        launch = _launch.use_alone()
        script = _core.Script(self._layout, False, False, lambda _, threads: ArrayModel(self._computation, self._layout, self._micro_batch))
        script.set_arguments(launch.arguments)
        script.set_code(_compared.words({"computation": self._computation}, used=_compared.OF_ARRAYS))
        script.set_train(self._samples, f"{self._samples} samples")
        script.add_device("cpu", "arrays", 0, 1)
        if launch.role == "join":
            _head.serve(launch, script)
        return self._epochs(launch, script, count)

    def _epochs(self, launch: _core.Launch, script: _core.Script, count: int) -> Iterator[Epoch]:
        flat = numpy.zeros(self._layout.flat_elements, numpy.float32)
        initial = self._computation.initial()
        for name, view in views(self._layout, self._computation.layout, flat).items():
            view[...] = numpy.asarray(initial[name])
        script.set_weights(flat)
        script.set_optimizer(self._optimizer, [self._group], None)
        config = _head.config_text({"model": {"kind": "script", "arguments": launch.arguments, "tested": False},
                                    "train": {"epochs": count, **self._train}})
        with contextlib.closing(_head.epochs(launch, script, config, tested=False, notes=[], description={},
                                             files=_fetch.pack(launch.script, launch.arguments))) as happened:
            for head, epoch, _ in happened:
                assert epoch.state is not None
                epoch.state.copy_weights(self._layout, flat)
                self.weights = {name: view.copy() for name, view in views(self._layout, self._computation.layout, flat).items()}
                yield Epoch(epoch, None)


def views(layout: _core.Layout, named: Sequence[tuple[str, tuple[int, ...]]], flat: numpy.ndarray) -> dict[str, numpy.ndarray]:
    """The tensors that lie in a flat vector, by name."""
    found = {named[entry][0]: flat[offset : offset + elements].reshape(named[entry][1]) for entry, offset, elements in layout.placements}
    return {name: found[name] for name, _ in named}


class ArrayModel:
    """A Computation as the core calls it."""

    device, description = "cpu", "arrays"
    flow, group = "in_step", 0

    def __init__(self, computation: Computation, layout: _core.Layout, micro_batch: int):
        self.micro_batch = micro_batch
        self.weights = numpy.zeros(layout.flat_elements, numpy.float32)
        self.gradients = numpy.zeros(layout.flat_elements, numpy.float32)
        self._computation = computation
        self._weights = views(layout, computation.layout, self.weights)
        self._sums = views(layout, computation.layout, self.gradients)

    def memory(self, for_others: int) -> tuple[int, int, int, int]:
        return 0, 0, 0, 0

    def open(self, task: _core.Task) -> tuple[int, bool]:
        self._task, self._weight, self._loss_sum = task, 0.0, 0.0
        return task.micro_batch, False

    def read(self, at: int, size: int, wanted: int) -> int:
        return self._task.micro_batch

    def start(self, came: list[tuple[int, int]]) -> tuple[str, str, str] | None:
        self.gradients[:] = 0
        return _told(lambda: self._computation.load(self._weights))

    def forward(self, at: int, size: int, wanted: int) -> tuple[bool, int] | tuple[str, str, str]:
        """And backward."""

        def add() -> None:
            losses, part = self._computation.gradients(self._task.indices(at, size), self._sums)
            self._weight, self._loss_sum = self._weight + float(part), self._loss_sum + float(losses)

        return _told(add) or (True, self._task.micro_batch)

    def backward(self, last: bool) -> None:
        pass

    def sums(self) -> tuple[float, float, list[float]]:
        return self._weight, self._loss_sum, []

    def finish(self, count: int) -> None:
        pass

    def close(self) -> None:
        pass


def _told(call: Callable[[], None]) -> tuple[str, str, str] | None:
    """What went wrong, for the core, which is no place for exceptions."""
    try:
        call()
    except MemoryError as error:
        return "memory", str(error), ""
    except Error as error:
        return error.code, error.args[0], error.hint
    except Exception as error:
        text = traceback.format_exc()
        sys.stderr.write(text)
        return "input", f"the script raised {in_words(error)}\n{text[-TRACEBACK_MAX:]}", ""
    return None
