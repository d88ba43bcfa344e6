"""Whether one pass over several groups is what passes over each are: tried on real samples, on two groups of which one is short.

In float64, where equal things differ by some 1e-13 and others by far more; where that tells nothing, as the run computes.
"""

import contextlib
import warnings
from dataclasses import dataclass
from typing import Any

import torch

from motley._models import _cuts, _groups, _model
from motley._samples import _batches, _data
from motley._trials import _wide
from motley._trials._trial import Found, Pass, Trial

SIZES, SIZES_OF_LARGE = (4, 3), (3, 2)  # whose sum seldom divides another dimension
SEEDS = (11, 12)
EXACT = 1e-8
ROUGH = {"fp32": 1e-3, "bf16": 5e-2}  # as the run computes


def look(trial: Trial, found: Found) -> None:
    """Fills in `fused`, or `alone`: why it is not, where the user can do something about it."""
    try:
        with _data.RandomWatch(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.fused = _Look(trial, found).run()
    except _cuts.Refused as refused:
        found.alone = str(refused)
    except Exception:  # what does not go in one pass goes in several, as was tried before
        pass


@dataclass
class _Sums:
    """Over the groups, but for statistics: mean and variance of each group, by buffer."""

    gradients: dict[str, torch.Tensor]
    loss: torch.Tensor
    statistics: dict[str, torch.Tensor]


class _Look:
    def __init__(self, trial: Trial, found: Found):
        self._trial = trial
        self._sizes = list(SIZES if trial.samples > 2 else SIZES_OF_LARGE)
        self._buffers = [name for each in _model.statistics_of(trial.root) if each.mean in found.changing for name in (each.mean, each.var)]
        self._fused = _groups.Fused(draws="torch" in found.draws)
        self._parts = [trial.fetch(first, last) for first, last in _cuts.bounds(self._sizes)]
        self._whole = _batches.join(self._parts, self._sizes)

    def run(self) -> _groups.Fused | None:
        tolerances = {True: EXACT, False: ROUGH[self._trial.precision]}
        for wide, tolerance in tolerances.items():
            try:
                expected = self._one_by_one(wide)
            except Exception:
                if wide:  # an operation without float64
                    continue
                raise
            if not _agree(self._at_once(wide), expected, tolerance):
                return None
            if self._trial.precision == "fp32":
                break
        self._fused.learning = False
        return self._fused

    def _one_by_one(self, wide: bool) -> _Sums:
        passes, statistics = [], []
        for part, size, seed in zip(self._parts, self._sizes, SEEDS, strict=True):
            with self._width(wide):
                for name in self._buffers:
                    self._trial.root.get_buffer(name).zero_()
                passes.append(self._trial.gradient(_wide.widened(part) if wide else part, size, not wide, seed=seed))
                statistics.append({name: self._trial.root.get_buffer(name).clone() for name in self._buffers})
        gradients: dict[str, torch.Tensor] = {}
        for each in passes:
            for name, gradient in each.gradients.items():
                gradients[name] = gradients[name] + gradient if name in gradients else gradient
        return _Sums(gradients, _loss(*passes), {name: torch.stack([each[name] for each in statistics]) for name in self._buffers})

    def _at_once(self, wide: bool) -> _Sums:
        groups = _groups.Groups(self._fused, self._sizes, list(SEEDS), self._trial.device)
        _data.seed_host(0, _data.GENERATED)
        with self._width(wide), _data.RandomWatch() as watch:
            found = self._trial.gradient(_wide.widened(self._whole) if wide else self._whole, sum(self._sizes), not wide, groups=groups)
            statistics = {}
            for name in self._buffers:
                mean = name.rpartition(".")[0] + ".running_mean" if "." in name else "running_mean"
                both = groups.normalised_by(self._trial.root.get_buffer(mean))
                if both is not None:
                    statistics[name] = both[0 if name == mean else 1]
        if {"random", "numpy"} & {*watch.draws}:
            raise _cuts.Refused("the loss draws from random or numpy.random")
        self._fused.recomputes = sum(groups.calls[1:]) > 0
        self._fused.draws = groups.draws is not None and groups.draws.count > 0
        return _Sums(found.gradients, _loss(found), statistics)

    def _width(self, wide: bool) -> contextlib.AbstractContextManager[Any]:
        return _wide.wide(self._trial.root) if wide else contextlib.nullcontext()


def _loss(*passes: Pass) -> torch.Tensor:
    return torch.tensor(sum(each.mean * each.weight for each in passes if each.weight), dtype=torch.float64)


def _agree(found: _Sums, expected: _Sums, tolerance: float) -> bool:
    if found.gradients.keys() != expected.gradients.keys() or found.statistics.keys() != expected.statistics.keys():
        return False
    largest = max((float(each.abs().max()) for each in expected.gradients.values() if each.numel()), default=0.0)
    return (_near(found.loss, expected.loss, tolerance) and
            all(_near(each, expected.gradients[name], tolerance, largest) for name, each in found.gradients.items()) and
            all(_near(each, expected.statistics[name], tolerance) for name, each in found.statistics.items()))


def _near(found: torch.Tensor, expected: torch.Tensor, tolerance: float, largest: float | None = None) -> bool:
    """To that share of `largest`, or of the largest element. What is no number is not near."""
    if found.numel() == 0:
        return True
    scale = float(expected.abs().max()) if largest is None else largest
    return float((found.double() - expected.double()).abs().max()) <= tolerance * scale
