"""`motley export RUN FILE.pt`: a checkpoint of a script's run as torch.load reads it, for model and optimizer."""

import argparse
import json
import math
import os
import pathlib
from typing import Any

import torch

from motley._errors import Error
from motley._models import _files
from motley._optimizers import _begun, _rounds
from motley._runs import _body, _head


def main(words: list[str]) -> dict[str, Any]:
    """Writes the file; returns the fields of the event: step and path. Errors: not a run of a script, a place that cannot be written."""
    parser = argparse.ArgumentParser("motley export", description=__doc__)
    parser.add_argument("run", help="the directory of a run that a script began")
    parser.add_argument("file", help="what to write: FILE.pt")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(words)
    content = read(pathlib.Path(asked.run))
    fresh = f"{asked.file}.new"
    try:
        torch.save(content, fresh)
        os.replace(fresh, asked.file)
    except (OSError, RuntimeError) as error:
        raise Error(f"{asked.file}: {error}", "choose another place", "io") from None
    return {"step": content["step"], "path": asked.file}


def read(run: pathlib.Path) -> dict[str, Any]:
    """The newest checkpoint: {"model": state_dict, "optimizer": state_dict, "step": int}. The optimizer's is for one that is made like
    that of the script, and of a run in rounds without state, since each worker had its own; its learning rates are those of the schedule
    at that step, or of the start. Where a scheduler does nothing but count, its state is there as "scheduler"."""
    description, checkpoint = run / _head.DESCRIPTION, _files.newest_checkpoint(run)
    if not description.is_file() or checkpoint is None:
        raise Error(f"{run}: expected the run of a script, with a checkpoint", "motley export RUN FILE.safetensors for other runs")
    state = _files.read_safetensors(checkpoint / "optimizer.safetensors")
    written = json.loads((checkpoint / "run.json").read_text(encoding="utf-8"))
    step, before = written["step"], written.get("updates_before", 0)
    by_parameter: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in state.items():
        parameter, kind = name.rsplit(".", 1)
        by_parameter.setdefault(parameter, {})[kind] = tensor
    optimizer: dict[str, Any] = {"state": {}, "param_groups": []}
    about = json.loads(description.read_text(encoding="utf-8"))
    if "rounds" in about:  # what is there is the momentum of the rounds
        by_parameter.clear()
        step = _rounds.Rounds(**about["rounds"]).steps(step)
    number = 0
    for group in about["groups"]:
        numbers = list(range(number, number + len(group["params"])))
        number += len(numbers)
        for index, parameter in zip(numbers, group["params"], strict=True):
            found = by_parameter.get(parameter)
            if found is not None and step + before > 0 and "state" in about:
                likes = about["state"].get(str(index), {})
                optimizer["state"][index] = {kind: _first(found[kind], shape) for kind, shape in likes.items()}
            elif found is not None and step + before > 0:
                steps = {"step": torch.tensor(float(step + before))} if "exp_avg" in found else {}
                optimizer["state"][index] = steps | found
        options = {key: tuple(value) if isinstance(value, list) else value for key, value in group["options"].items()}
        optimizer["param_groups"].append({**options, "params": numbers})
    scheduler = _begun.at(run, step, optimizer["param_groups"]) if "rounds" not in about else None
    for since, rates in _body.remembered(str(run)):
        for own, rate in zip(optimizer["param_groups"], rates if since <= step else (), strict=False):
            own["lr"] = rate
    return {"model": _files.read_safetensors(checkpoint / "model.safetensors"), "optimizer": optimizer, "step": step,
            **({"scheduler": scheduler} if scheduler is not None else {})}


def _first(values: torch.Tensor, shape: list[int] | None) -> torch.Tensor | int:
    """A value of this shape from the first elements; None: a whole number."""
    flat = values.reshape(-1)
    return int(flat[0]) if shape is None else flat[: math.prod(shape)].view(shape).clone()
