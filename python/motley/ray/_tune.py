"""A run as a trial of Ray Tune: on the devices that Tune gave to the trial."""

import json
import math
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray import tune
from ray.tune.result import AUTO_RESULT_KEYS, DONE, SHOULD_CHECKPOINT, TRIAL_ID

from motley._errors import Error
from motley._machines._processes import Supervised, command, directory, failure, resuming
from motley.ray import _actors

OWN = {"step", "epoch", "loss", "samples", "weights"}  # of an evaluation, beside scores
OF_TUNE = {*AUTO_RESULT_KEYS, DONE, SHOULD_CHECKPOINT, TRIAL_ID}  # which it writes over, or acts on


def trainable(target: str, arguments: Sequence[str], options: Sequence[str]) -> Callable[[dict[str, Any]], None]:
    here = os.getcwd()

    def trial(config: dict[str, Any]) -> None:
        # In the trial's own directory, which is the same when Tune tries it again; by its name, as a user can have all trials share one.
        folder = os.path.abspath(os.path.join("motley", tune.get_context().get_trial_id()))
        words = ["train", "--json", "--run", folder, "--token-file", os.path.join(folder, "token"), "--listen", "127.0.0.1:0", *_devices()]
        words += [word for key, value in config.items() if "." in key for word in ("--set", f"{key}={_as_toml(value)}")]
        mine = {key: value for key, value in config.items() if "." not in key}
        own = ([f"{key}={value}" for key, value in mine.items()] if target == "softmax" else
               [word for key, value in mine.items() for word in (f"--{key}", str(value))])
        words += [*options, target, "--", *arguments, *own]
        # What an earlier try left goes on: Tune's (max_failures, a paused trial), or one of this process that was killed.
        process = Supervised(lambda _restarted: command(resuming(words, folder, True)), directory(here))
        try:
            _follow(process, pathlib.Path(folder + ".reported"))
        finally:
            process.kill()
        if process.status != 0:
            raise failure(process.error, process.status or 0, "the run")

    return trial


def _devices() -> list[str]:
    cards = [_actors.device(f"gpu:{number}") for number in range(len(ray.get_gpu_ids()))]
    # Part of a processor is one thread: without a number it would be all processors of the machine.
    threads = max(1, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 0)))
    return [word for card in cards for word in ("--device", card)] or ["--device", "cpu", "--threads", str(threads)]


def _as_toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _follow(process: Supervised, reported: pathlib.Path) -> None:
    """`reported`: holds the step of the last evaluation that Tune was told of. A run that goes on may make that one once more."""
    last = int(reported.read_text()) if reported.exists() else -1
    ended = tested = False
    while not ended:
        ended = process.wait(_actors.REPORT_S)
        for stream, line in process.take_lines():
            event = json.loads(line) if stream == "out" else {}
            tested = event.get("tested", tested)
            # The loss of the end is that of the training. Where there are test data the last evaluation said what the weights are worth.
            if event.get("event") == "eval" and event["step"] > last or event.get("event") == "done" and not tested:
                tune.report(_metrics(event))
                last = event.get("step", last)
                reported.parent.mkdir(parents=True, exist_ok=True)
                reported.write_text(str(last))


def _metrics(event: dict[str, Any]) -> dict[str, float]:
    """Errors: a score has a name that means something else to Tune."""
    scores = event.pop("scores", {})
    if taken := sorted(scores.keys() & (OWN | OF_TUNE)):
        raise Error(f"the score {taken[0]!r} has the name of something else that is reported to Ray Tune",
                    f'give it another name in what score returns: "own_{taken[0]}"', "input")
    found = {name: value for name, value in event.items() if isinstance(value, (int, float))}
    # JSON has no NaN. Tune wants its metric in each report, and takes no trial for the best whose metric is NaN.
    measured = {"loss": event["loss"], "accuracy": event["accuracy"], **scores}
    return found | {name: math.nan if value is None else value for name, value in measured.items()}
