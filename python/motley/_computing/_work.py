"""What a script wants computed, and what was found out about it."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from motley import _core, _launch, _state
from motley._computing import _compiled
from motley._errors import Error
from motley._machines import _devices
from motley._models import _binding, _model
from motley._models._parts import Parts, check_memory, check_optimizer
from motley._optimizers._optimizer import ReadOptimizer
from motley._samples import _data
from motley._trials import _inspect, _layers, _traces
from motley._trials._loss import GROUP, SUMS, any_size, measure_loss, score_of
from motley._trials._trial import Found

SCORES_MAX = 64
TRIED = 8  # samples, where a copy of the model or the score is
SUM_TOLERANCE = 1e-4
WRITES = "set it in the body of an epoch; the loss gets `step` and `epoch` where it asks for them by name"


@dataclass
class Work:
    parts: Parts
    train: _data.BatchSource
    test: _data.BatchSource | None
    precision: str
    names: list[_model.Named]
    layout: _core.Layout
    found: Found
    scores: list[str]  # names of what `score` gives
    state: bytes  # what the loss gets as `state` at first, encoded
    unused: set[str]  # parameters that had no gradient when that was tried, and are left as they are
    roots: dict[str, Any]  # what a step can reach: see Traces
    known: dict[str, Any]  # what the loss gets by name in a trial
    unused_matter: bool  # a step without the gradient of a parameter is not one where that is zero
    code: str = ""  # what runs of the script, as other machines compare it
    memory: frozenset[int] = frozenset()  # where the script has the model's tensors: addresses
    device: torch.device | None = None  # on which the loss was tried; None: where the model is
    of_run: dict[str, Any] | None = None  # run.state
    followed: _state.Followed | None = None  # it, where the run is another machine's

    @property
    def acts_on_groups(self) -> bool:
        return self.found.mixes

    @property
    def draws(self) -> bool:
        """Whoever computes draws from the generators of the process."""
        return bool(self.found.draws or self.train.draws or (self.test is not None and self.test.draws))

    def copied(self) -> Parts:
        """A model for a second device of this process. Errors: what the loss gives for it depends on the first model's parameters."""
        parts = self.parts.copied()
        parts.set_modes(True)
        device = next(parts.root.parameters()).device
        numbers = list(range(min(TRIED, self.train.samples, self.train.batch_size)))
        with _data.GENERATORS, _data.RandomWatch():
            batch = _data.move(self.train.fetch(numbers, numbers if self.train.draws else None), device)
            loss, _ = measure_loss(parts.call(batch, **self.known), len(numbers))
        reached = _leaves(loss)
        first = {id(p) for p in self.parts.root.parameters()}
        wanted = {id(p) for name, p in parts.root.named_parameters() if p.requires_grad and name not in self.found.unused}
        if reached & first or not wanted <= reached:
            raise Error("the loss or the model refers to the model itself from elsewhere (a bound method, a global), so a second device of "
                        "this process cannot have a model of its own",
                        "one device in each process: start the script as a file, or name one --device")
        return parts


def _leaves(result: torch.Tensor) -> set[int]:
    """Ids of the tensors whose gradients follow from it."""
    found, seen, waiting = set(), set(), [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.add(id(node.variable))
        waiting += [parent for parent, _ in node.next_functions]
    return found


def make_work(parts: Parts, train: _data.BatchSource, test: _data.BatchSource | None, read: ReadOptimizer, precision: str, state: bytes,
              known: dict[str, Any], unused: str | None, check: bool, device: torch.device | None = None,
              of_run: dict[str, Any] | None = None) -> Work:
    """Puts together what the workers need. The layout is the same on every machine with the same script. `known`: what the loss gets by
    name in a trial. `check`: refuses what could not be right; else the run is another machine's. `device`: where that is tried; None: where
    the model is. `of_run`: run.state."""
    check_memory(parts.root)
    check_optimizer(parts, read.optimizer)
    before = _state.encode(of_run)
    roots = {"loss": parts.loss, "score": parts.score, "model": parts.given, "train_loader": train, **({"test": test} if test else {})}
    code = _layers.words({**{name: root for name, root in roots.items() if name != "score" or test is not None}, "precision": precision,
                          "unused": unused}, (*parts.root.parameters(), *parts.root.buffers()), parts.loop)
    found, memory = _inspect.guess(parts.root, train), _traces.memory_of(parts.root)
    if parts.loss is not None:
        with _binding.on(parts.root, device or next(parts.root.parameters()).device), _compiled.without():
            found = _inspect.inspect(lambda batch: parts.call(batch, **known), parts.root, train, precision, check, roots)
    if test is not None:
        test.contents()  # looks whose random numbers the samples are made with
    names = _model.named_tensors(parts.root, read.numbers, read.left_alone, found.changing, parts.averaged())
    left_alone = set() if unused == "zero" else found.unused
    for named in names:
        if named.name in left_alone:
            named.group = read.left_alone
    scores = _score_names(parts, test)
    if _state.encode(of_run) != before:
        raise Error("a step changes run.state, which the other machines would not see", WRITES)
    layout = _core.Layout([named.entry() for named in names])
    return Work(parts, train, test, precision, names, layout, found, scores, state, left_alone, roots, known, unused != "zero", code,
                memory, device, of_run, None if check or of_run is None else _state.Followed(of_run))


def _score_names(parts: Parts, test: _data.BatchSource | None) -> list[str]:
    """The names that `score` gives, tried on a few samples. Errors: what it gives is no mapping of names to sums."""
    if parts.score is None or test is None:
        return []
    score, device = parts.score, next(parts.root.parameters()).device
    count, batch = min(TRIED, test.size), min(test.size, test.batch_size)

    def tried(first: int, last: int) -> Any:
        numbers = list(range(first, last))
        batch = _data.move(test.fetch(numbers, numbers if test.draws else None), device)
        with torch.no_grad():
            return score(parts.given, batch)

    def takes_whole(_: Exception) -> bool:
        with contextlib.suppress(Exception):
            tried(0, batch)
            return count < batch
        return False

    parts.set_modes(False)
    with _data.GENERATORS, _data.RandomWatch() as watch, any_size("score", batch, takes_whole):
        found = tried(0, count)
        if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found) or len(found) > SCORES_MAX:
            raise Error(f"score: expected a dictionary of at most {SCORES_MAX} sums by name, found {type(found).__name__}", SUMS)
        sizes = (count // 3, count - count // 3)
        parted = [tried(0, sizes[0]), tried(sizes[0], count)] if sizes[0] > 0 else []
    parts.set_modes(True)
    sums = {name: score_of(name, value) for name, value in found.items()}
    if parted and not watch.draws:
        for name, value in sums.items():
            _check_sum(name, value, [score_of(name, each[name]) for each in parted], sizes)
    return list(found)


def _check_sum(name: str, whole: float, parted: list[float], sizes: tuple[int, int]) -> None:
    scale = SUM_TOLERANCE * max(abs(whole), *map(abs, parted))
    if not abs(whole - sum(parted)) > scale:
        return
    count = sum(sizes)
    told = f"score: {name} of {count} samples is {whole:g}, and of {sizes[0]} and {sizes[1]} of these {parted[0]:g} and {parted[1]:g}"
    if abs(whole * count - sum(value * size for value, size in zip(parted, sizes, strict=True))) <= count * scale:
        raise Error(f"{told}: a mean over the samples, expected a sum", SUMS)
    raise Error(f"{told}, which is no sum over the samples", f"{SUMS}; what needs the whole set: evaluate it in the body of the epoch")


def script_of(launch: _core.Launch, work: Work, make: Callable[[str, int], Any]) -> _core.Script:
    """What the core is told of it. make(device, threads): see Script."""
    script = _core.Script(work.layout, work.acts_on_groups, bool(work.found.draws), _devices.within_memory(make))
    script.set_scores(work.scores)
    script.set_state(work.state)
    script.set_run(_launch.number())
    script.set_arguments(launch.arguments)
    script.set_code(work.code)
    script.set_train(work.train.size, work.train.fingerprint())
    if work.test is not None:
        script.set_test(work.test.size, work.test.fingerprint())
    for device in _devices.devices():
        script.add_device(*device)
    return script


def notes(work: Work) -> list[str]:
    """What the user should know of it."""
    found = [work.found.line] if work.found.line else []
    if work.acts_on_groups and work.train.batch_size <= GROUP:
        found.append(f"a batch of {work.train.batch_size} cannot be shared: it is one group of {GROUP}, on which BatchNorm and random "
                     "numbers act together")
    elif work.found.alone:
        found.append(f"computes {GROUP} samples at a time, since {work.found.alone}")
    if work.unused:
        names = sorted(work.unused)
        found.append(f"no gradient in a trial, so left as they are: {', '.join(names[:5])}{' …' if len(names) > 5 else ''}")
    return found
