"""The runs of one script, one after the other under one token: what each leaves behind, for a script that is resumed and for machines
that come to the next one."""

import builtins
import contextlib
import json
import pathlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from motley import _core, _launch
from motley._errors import Error
from motley._machines import _fetch
from motley._models import _files
from motley._models._parts import AVERAGE
from motley._runs import _best, _eval_points
from motley._runs._epoch import Epoch

HISTORY = "history.json"  # in a run's directory, once it is over: its epochs, and whether its best weights are its result
PATIENCE_S = 2.5  # between two runs, without a word from the head: then its script has ended
PAUSE_S = 0.2
BYTES_MAX = 1 << 30  # of all results that are sent, but for the newest
END = b"\0"  # of a text in what is sent: the script's files, then what follows; the results come last
OUT_OF_STEP = "start the same script with the same arguments on all machines"


@dataclass
class Result:
    """What a run left. best: which its model has in place of the last ones; empty: it has the last."""

    epochs: list[dict[str, Any]]
    weights: bytes
    best: bytes

    def give(self, root: nn.Module, saved: nn.Module) -> list[Epoch]:
        """Puts it into the model; returns the run's history. Errors: it is of another model."""
        try:
            _put(root, _files.tensors(self.weights, "what the run left"))
            if self.best:
                saved.load_state_dict(_files.tensors(self.best, "what the run left"))
        except RuntimeError as error:
            raise Error(f"what the run left is of another model: {error}", OUT_OF_STEP, "mismatch") from None
        return [Epoch.of(values) for values in self.epochs]


def _put(root: nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    """Of tensors that are one a checkpoint may have the first; of an average not what follows the model's own."""
    state, own = root.state_dict(keep_vars=True), f"{AVERAGE}."
    there = {id(state[name]): tensor for name, tensor in tensors.items() if name in state}
    for name, tensor in state.items():
        if name not in tensors:
            found = there.get(id(tensor), tensors.get(name.removeprefix(own)) if name.startswith(own) else None)
            tensors.update({} if found is None else {name: found})
    root.load_state_dict(tensors)


def write(directory: str | None, history: list[Epoch], best: bool) -> None:
    """The run is over."""
    if directory is None:  # it told of nothing
        return
    path = pathlib.Path(directory, HISTORY)
    epochs = [dict(vars(epoch)) for epoch in history]
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"epochs": epochs, "best": best}) + "\n", encoding="utf-8")
    fresh.replace(path)


def read(directory: str) -> Result | None:
    """None: the run there left nothing."""
    path, checkpoint = pathlib.Path(directory, HISTORY), _files.newest_checkpoint(pathlib.Path(directory))
    if checkpoint is None:
        return None
    known: dict[str, Any] = {"epochs": [], "best": False}
    if path.is_file():
        known = json.loads(path.read_text(encoding="utf-8"))
    best = pathlib.Path(directory, _best.WEIGHTS).read_bytes() if known["best"] else b""
    return Result(_eval_points.history(directory) or known["epochs"], (checkpoint / "model.safetensors").read_bytes(), best)


def pack(launch: _core.Launch) -> bytes:
    """For machines that come to this run: the script's files, and what the runs before it left, the newest first and as far as there is
    room."""
    number, refused = _launch.number(), _launch.refused()
    files = _fetch.pack_recipe(launch.recipe, launch.arguments) if launch.recipe else _fetch.pack(launch.script, launch.arguments)
    if number == 1:
        return files
    about: dict[int, Any] = {}
    contents: list[bytes] = []
    for run in (earlier for earlier in range(number - 1, 0, -1) if earlier not in refused):
        result = read(_launch.directory_of(run))
        if result is None or (contents and sum(map(len, contents)) + len(result.weights) + len(result.best) > BYTES_MAX):
            continue
        about[run] = {"epochs": result.epochs, "sizes": [len(result.weights), len(result.best)]}
        contents += [result.weights, result.best]
    return b"".join([files, END, json.dumps({"run": number, "results": about, "refused": refused}).encode(), END, *contents])


def _again(kind: str, message: str, hint: str, code: str) -> Exception:
    """What the head's script saw, for a script that catches it here, too. Of types that come with Python and torch."""
    for place in (builtins, torch):
        found = getattr(place, kind, None)
        if isinstance(found, type) and issubclass(found, Exception):
            with contextlib.suppress(TypeError):  # it takes more than a message
                return found(message)
    return Error(message, hint, code or "input")


def unpack(packed: bytes) -> tuple[int, dict[int, Result], dict[int, Exception]]:
    """The number of the head's run, what those before it left, and why some did not begin. Errors: it is not what pack() makes."""
    _, _, rest = packed.partition(END)
    if not rest:
        return 1, {}, {}
    text, _, body = rest.partition(END)
    results, at = {}, 0
    try:
        known = json.loads(text)
        for run, about in known["results"].items():
            weights, best = (int(size) for size in about["sizes"])
            results[int(run)] = Result(list(about["epochs"]), body[at : at + weights], body[at + weights : at + weights + best])
            at += weights + best
        refused = {int(run): _again(*map(str, why)) for run, why in known.get("refused", {}).items()}
        return int(known["run"]), results, refused
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Error("what the head sent of its earlier runs makes no sense", "the same version of motley on all machines",
                    "protocol") from None


def patience_s() -> float:
    """After which a machine that comes to this run takes silence for the end of the head's script; 0: never, before the first."""
    return PATIENCE_S if _launch.number() > 1 else 0.0


def follow(launch: _core.Launch, work: Callable[[float], int | None]) -> Result:
    """In a worker: `work`s (with patience_s()) for this run of the script, and returns what it left when the head has begun a later one.
    Leaves the process where the head's script has ended, or this machine is to leave: what follows in the script is the head's then.
    Raises what the head's script saw instead of this run, where it went on."""
    number, refused = _launch.number(), dict[int, Exception]()
    try:
        while True:
            if work(patience_s()) is None or (packed := _next(launch)) is None:
                raise SystemExit(0)
            run, results, refused = unpack(packed)
            if number in refused:
                break
            if run < number:
                raise Error(f"the head is at run {run} of its script, and this machine is at run {number}", OUT_OF_STEP, "mismatch")
            if run > number:
                return _of_run(number, run, results)
            time.sleep(PAUSE_S)
    except Error as error:
        raise SystemExit(_launch.report(error)) from None
    print(f"run {number} of the script did not begin on the head, which is at run {run}", file=sys.stderr, flush=True)
    raise refused[number]


def _next(launch: _core.Launch) -> bytes | None:
    """What the head sends from the run that it makes now or next; None where it has gone, or this machine is to leave."""
    while (packed := _core.fetch(launch, PATIENCE_S)) == b"":
        time.sleep(PAUSE_S)
    return packed


def _of_run(number: int, run: int, results: dict[int, Result]) -> Result:
    if number not in results:
        raise Error(f"the head is at run {run} of its script and has no more what run {number} left, which a later one may need",
                    "join before that run begins, and keep the directories of runs", "mismatch")
    print(f"run {number} of the script is over; the head is at run {run}", file=sys.stderr, flush=True)
    return results[number]

