"""What runs inside Ray's actors: one holds the coordinator, one each device. Thin: they start a process and say how it is."""

import os
import pathlib
import sys
from typing import Any

import ray

from motley._machines._processes import Orders, Supervised, command, directory, resuming

REPORT_S = 1.0  # at most one report in such a time
LAST_LINES = 20


def device(word: str) -> str:
    """The device in Motley's words; what a GPU is called depends on the machine."""
    kind, _, number = word.partition(":")
    if kind != "gpu":
        return kind
    return "mps" if sys.platform == "darwin" else f"cuda:{number}"


class Coordinator:
    """The run's head, and the workers of its own node. Goes on with the run when it is started again."""

    def __init__(self, orders: Orders, run: str, devices: list[str]):
        again = ray.get_runtime_context().was_current_actor_reconstructed
        self._run = pathlib.Path(run)
        words = ["train", "--json", "--run", run, "--token-file", str(self._run / "token")]
        for each in devices or ["none"]:
            words += ["--device", device(each) if devices else each]

        def start(restarted: bool) -> list[str]:
            return command(resuming(words + orders.words, run, restarted or again))

        self._process = Supervised(start, directory(orders.directory))

    def report(self) -> dict[str, Any]:
        """What happened in the last second."""
        ended = self._process.wait(REPORT_S)
        lines = self._process.take_lines()
        return {"ended": ended, "status": self._process.status, "restarts": self._process.restarts, "lines": lines,
                "error": self._process.error, "pid": self._process.pid, "supervisor": os.getpid()}

    def token(self) -> str:
        """Of the run that has begun; only its own machine can read it."""
        return (self._run / "token").read_text(encoding="utf-8").strip()

    def interrupt(self) -> None:
        self._process.interrupt()


class Worker:
    """One device of a node as a worker of the run. What it says goes to Ray's log of the actor."""

    def __init__(self, orders: Orders, name: str, device_word: str, threads: int):
        words = ["join", "--json", "--name", name, "--device", device(device_word), "--nice", "0"]
        words += ["--threads", str(threads)] if threads else []

        def start(_restarted: bool) -> list[str]:
            return command([*words, "-", *orders.words])

        self._process = Supervised(start, directory(orders.directory), said=orders.token + "\n", on_line=self._log)
        self._last: list[str] = []

    def _log(self, stream: str, line: str) -> None:
        if stream == "err":
            print(line, file=sys.stderr, flush=True)
            self._last = [*self._last, line][-LAST_LINES:]

    def report(self) -> dict[str, Any]:
        """How it is, after a second at most."""
        ended = self._process.wait(REPORT_S)
        self._process.take_lines()
        return {"ended": ended, "status": self._process.status, "restarts": self._process.restarts, "error": self._process.error,
                "pid": self._process.pid, "supervisor": os.getpid(), "last": self._last}
