"""What the loss and the score give for a few samples before and after the script had its turn. Whatever they read that changed meanwhile
shows in that, of whatever type it is and wherever it lies: an object, a file, a variable of the environment.

A gradient takes twice as long as a loss. It is looked at as well unless the code says that it follows (_gradients.py): a change that
showed in a later body only, or seldom, would have trained something else by then.

Names are looked for only where something changed: what else the code reaches (_traces.py), files that it opened, the environment.
"""

import builtins
import contextlib
import io
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from motley._computing import _compiled
from motley._computing._work import TRIED, Work
from motley._errors import Error
from motley._models import _binding
from motley._samples import _data, _shards
from motley._trials import _traces
from motley._trials._loss import PRECISIONS, measure_loss, score_of
from motley._trials._trial import Trial

CLOSE = {"cpu": 1e-5}  # of the largest number: threads and vectors do not change between two looks
ROUGHLY = 1e-3  # elsewhere: kernels may add in any order
NOISE = 8  # times what two looks in a row differ by
LONG_S, FEW = 0.05, 2  # a look that takes longer has so many samples from then on


class Watched:
    """Of one run, on the head. Only where nothing computes with the model."""

    def __init__(self, work: Work):
        self._work = work
        self._backward: bool | None = None  # gradients are looked at, too; None: nobody knows yet
        self._trial: Trial | None = None
        self._test: list[Any] = []  # samples
        self._samples, self._figures = 0, 0
        self._of: dict[str, Any] = {}  # what the loss gets by name
        self._before: torch.Tensor | None = None
        self._files: dict[str, Any] = {}
        self._environment: dict[str, str] = {}
        self._fails = False  # it cannot be looked at so

    def before(self, seen: _traces.Seen, **known: Any) -> None:
        """What looking changes of `seen` is put back. known: what the loss gets by name, also afterwards."""
        self._look_first(known)
        for change in reversed(seen.changes()):
            change.put_back()

    def check(self, seen: _traces.Seen, where: str, advice: str, shown: contextlib.AbstractContextManager[None] | None = None) -> None:
        """REQUIRES before(), and that nothing of `seen` has changed. shown: what the loss is to find while it is looked at. Errors: the
        model was left in other modes, or the loss is another."""
        for module, mode in self._work.parts.modes.items():
            if module.training != mode:
                words = {True: "train()", False: "eval()"}
                raise Error(f"{where} left {type(module).__name__} in {words[not mode]}, and the run has it in {words[mode]} "
                            "as it was at the start; a plain loop would train on in the new mode",
                            f"{words[mode]} of it at the end of {where}; another motley.Run where modes change for good")
        with shown or contextlib.nullcontext():
            how = self.changed()
        if how:
            names = [*seen.suspects(), *self.names()]
            what = ", ".join(names[:3]) or "something that the loss reads"
            raise Error(f"{where} changed {what}, which the other machines do not see: {how}", advice)
        for change in reversed(seen.changes()):
            change.put_back()

    def _look_first(self, known: dict[str, Any]) -> None:
        self._before, self._of = None, {**self._work.known, **known}
        if self._work.parts.loss is None or self._fails:
            return
        if self._backward is None:
            self._backward = self._work.found.needs_grad or not self._gradients_follow()
        opened: list[str] = []
        begun = time.perf_counter()
        try:
            with _opened(opened):
                self._before = self._look()
            if self._samples > FEW and time.perf_counter() - begun > LONG_S:
                self._samples = FEW
                self._before = self._look()
        except Exception:  # of a model of one batch size, for instance
            self._before, self._fails = None, True
            return
        self._files = {path: _stamp(path) for path in dict.fromkeys(opened)}
        self._environment = os.environ.copy()

    def changed(self) -> str:
        """How the loss differs from before, in words; empty: it does not."""
        if self._before is None:
            return ""
        try:
            now = self._look()
            if self._close(self._before, now, 0.0):
                return ""
            noise = float((self._look() - now).abs().max())
        except Exception as error:
            return f"the loss now fails: {type(error).__name__}: {error}"
        if self._close(self._before, now, NOISE * noise):
            return ""
        before, after = float(self._before[0]), float(now[0])
        if before == after:
            return f"the gradient or the score of {self._samples} samples is another"
        return f"the loss of {self._samples} samples was {before:.6g} and is {after:.6g}"

    def names(self) -> list[str]:
        """Of what changed beside the script's objects."""
        names = [f"the file {path}" for path, stamp in self._files.items() if _stamp(path) != stamp]
        now = os.environ
        return names + [f"the variable {name} of the environment" for name in sorted({*self._environment, *now})
                        if self._environment.get(name) != now.get(name)]

    def _close(self, before: torch.Tensor, now: torch.Tensor, noise: float) -> bool:
        if before.shape != now.shape:
            return False
        if torch.equal(before, now):
            return True
        of_gradients = slice(2, 2 + self._figures)
        size = before.abs()
        size[of_gradients] = size[of_gradients].max() if self._figures else 0.0
        same = (before == now) | (before.isnan() & now.isnan())
        device = next(iter(self._work.parts.root.parameters())).device.type
        return bool((same | ((before - now).abs() <= (CLOSE.get(device, ROUGHLY) * size).clamp_min(noise))).all())

    def _gradients_follow(self) -> bool:
        work = self._work
        roots = {name: work.roots[name] for name in ("loss", "model")}
        return _traces.Traces(roots, work.parts.root, work.memory, (work.of_run,)).gradients_follow()

    def _look(self) -> torch.Tensor:
        """float64 [N]: the loss first, then figures of its gradients, then what is evaluated."""
        work, threads = self._work, torch.get_num_threads()
        parameters = list(dict.fromkeys(work.parts.root.parameters()))
        gradients = [p.grad for p in parameters]
        root = work.parts.root
        kept = [(buffer, buffer.clone()) for name, buffer in (root.named_buffers() if work.found.changing else ())
                if name in work.found.changing]
        places = [(module, name, buffer) for module in root.modules() for name, buffer in module._buffers.items()]
        try:
            with _data.GENERATORS, _data.RandomWatch(), _compiled.without(), torch.inference_mode(False), contextlib.ExitStack() as moved:
                if threads != 1:
                    torch.set_num_threads(1)  # a team of this thread's would stay, beside the computing thread's
                if work.device is not None and work.device != parameters[0].device:
                    moved.enter_context(_binding.on(root, work.device))
                return torch.tensor([*self._trained(), *self._evaluated()], dtype=torch.float64)
        finally:
            if threads != 1:
                torch.set_num_threads(threads)
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient
            for module, name, place in places:
                module._buffers[name] = place
            for buffer, values in kept:
                buffer.data.copy_(values)

    def _call(self, batch: Any, averaged: bool = False) -> Any:
        return self._work.parts.call(batch, averaged, **self._of)

    def _trained(self) -> list[float]:
        if self._trial is None:
            work = self._work
            self._trial = Trial(self._call, work.parts.root, work.train, work.precision, work.found.samples)
            self._samples = self._trial.samples
        self._trial.device = next(iter(self._trial.parameters.values())).device
        found = self._trial.gradient(self._trial.fetch(0, self._samples), self._samples, backward=bool(self._backward))
        gradients = list(found.gradients.values())
        # Of each gradient its norm, and that of its positive part, which is another where it points elsewhere.
        figures = [*torch._foreach_norm(gradients), *torch._foreach_norm(torch._foreach_clamp_min(gradients, 0.0))] if gradients else []
        self._figures = len(figures)
        return [found.mean, found.weight, *(torch.stack(figures).tolist() if figures else [])]

    def _evaluated(self) -> list[float]:
        work = self._work
        if work.test is None or isinstance(work.test.dataset, _shards.Shards):  # which would be read from the beginning
            return []
        if not self._test:
            numbers = list(range(min(TRIED, work.test.size, self._samples)))
            self._test = work.test.read(numbers, numbers if work.test.draws else None)
        parts = work.parts
        device = next(iter(parts.root.parameters())).device
        _data.seed_host(0, _data.GENERATED)
        batch = _data.move(work.test.collate(self._test[: self._samples]), device)
        dtype = PRECISIONS[work.precision]
        parts.set_modes(False)
        try:
            with torch.enable_grad() if work.found.needs_grad else torch.no_grad(), \
                    torch.autocast(device.type, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
                mean, weight = measure_loss(self._call(batch, parts.decay is not None), len(self._test))
                with torch.no_grad():
                    scores = parts.score(parts.given if parts.decay is None else parts.teacher, batch) if parts.score else {}
        finally:
            parts.set_modes(True)
        return [mean.item(), weight, *(score_of(name, value) for name, value in scores.items())]


@contextlib.contextmanager
def _opened(paths: list[str]) -> Iterator[None]:
    """Files that are opened meanwhile."""
    real = builtins.open

    def opening(file: Any, *arguments: Any, **named: Any) -> Any:
        if isinstance(file, (str, bytes, os.PathLike)):
            paths.append(os.path.abspath(os.fsdecode(file)))
        return real(file, *arguments, **named)

    kept: list[tuple[Any, Callable[..., Any]]] = [(builtins, real), (io, io.open)]
    for module, _ in kept:
        module.open = opening
    try:
        yield
    finally:
        for module, function in kept:
            module.open = function


def _stamp(path: str) -> Any:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
