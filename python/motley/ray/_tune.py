"""A run as a trial of Ray Tune: on the devices that Tune gave to the trial."""

import json
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray import tune

from motley._machines._processes import Supervised, command, directory, failure
from motley.ray import _actors

REPORTED = ("eval", "done")


def trainable(target: str, arguments: Sequence[str], options: Sequence[str], program: str | None) -> Callable[[dict[str, Any]], None]:
    here = os.getcwd()

    def trial(config: dict[str, Any]) -> None:
        given = [int(number) for number in ray.get_gpu_ids()]
        cpus = math.ceil(ray.get_runtime_context().get_assigned_resources().get("CPU", 0))  # a part of one is one thread
        devices = [_actors.device(f"gpu:{number}") for number in range(len(given))] or ["cpu"]
        folder = os.path.abspath("motley")  # in the trial's own directory
        words = ["train", "--json", "--run", folder, "--token-file", os.path.join(folder, "token"), "--listen", "127.0.0.1:0"]
        words += [word for device in devices for word in ("--device", device)] + (["--threads", str(cpus)] if cpus and not given else [])
        words += [word for key, value in config.items() if "." in key for word in ("--set", f"{key}={value}")]
        own = [word for key, value in config.items() if "." not in key for word in (f"--{key}", str(value))]
        words += [*options, target, *(["--", *arguments, *own] if target.endswith(".py") else [])]
        process = Supervised(lambda _restarted: command(program, words), directory(here))
        try:
            _follow(process)
        finally:
            process.kill()
        if process.status != 0:
            raise failure(process.error, process.status or 0, "the run")

    return trial


def _follow(process: Supervised) -> None:
    ended = False
    while not ended:
        ended = process.wait(_actors.REPORT_S)
        for stream, line in process.take_lines():
            event = json.loads(line) if stream == "out" else {}
            if event.get("event") in REPORTED:
                tune.report({key: value for key, value in event.items() if isinstance(value, (int, float))})
