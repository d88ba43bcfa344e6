"""A script's run in words: its run file, and the optimizer as torch knows it."""

from typing import Any

import torch

from motley._models import _model
from motley._optimizers import _options, _rounds
from motley._runs import _head
from motley._samples import _data


def run_file(arguments: list[str], number: int, train: dict[str, Any], tested: bool) -> str:
    """The run file that this run would have. `number`: of the run in its script. `train`: its section of that name."""
    return _head.config_text({"model": {"kind": "script", "arguments": arguments, "run": number, "tested": tested}, "train": train})


def optimizer(made: torch.optim.Optimizer, names: list[_model.Named], state: dict[str, Any] | None,
              rounds: _rounds.Rounds) -> dict[str, Any]:
    """Its class, and the options and parameters of each group in its order. `state`: of one that runs on the head. In rounds each
    worker has one of its own, and what the run keeps is of another."""
    known = {id(named.tensor): named.name for named in names if not named.alias_of}
    groups = [{"options": {key: value for key, value in options.items() if isinstance(value, (bool, int, float, tuple, type(None)))},
               "params": [known.get(id(parameter), "") for parameter in group["params"]]}
              for group, options in zip(made.param_groups, _options.options(made), strict=True)]
    return {"optimizer": type(made).__name__, "groups": groups, **({} if state is None else {"state": state}),
            **({"rounds": rounds.told()} if rounds else {})}


def train_section(length: dict[str, int], train: _data.BatchSource, seed: int, clip: tuple[float, str], precision: str, evaluate_every: int,
                  mode: str | None) -> dict[str, Any]:
    """Of the run file. clip: the norm, and that of which step."""
    section: dict[str, Any] = {**length, "global_batch": train.batch_size, "seed": seed, "clip_norm": clip[0], "clip_norm_of": clip[1]}
    if precision != "fp32":
        section["verify"] = 0.0  # two devices may differ by more than is told from a lie
    if evaluate_every:
        section["evaluate_every"] = evaluate_every
    if train.drops_last:
        section["drop_last"] = True
    if not train.shuffles:
        section["shuffle"] = False
    if mode is not None:
        section["mode"] = mode
    return section
