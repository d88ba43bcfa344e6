"""Devices of this machine beside the first: each has a process of its own, which runs the script as a worker that joins.

In one process they would wait for each other's Python (docs/design/0013).
"""

import os
import threading
from collections.abc import Callable
from typing import Any

from motley import _core, _launch
from motley._machines._processes import Supervised, command, end


class Siblings:
    """The processes of one run, of which nothing is left when this is closed; a context. Making it leaves the launch the first of its
    devices, as often as that was asked for; all of them, where no other process could run the script for the same run, or where the
    launch goes by what other processes take of the machine.

    In a child of the process that made it, it does nothing."""

    def __init__(self, launch: _core.Launch, script: _core.Script):
        self._launch, self._processes, self._process = launch, list[Supervised](), os.getpid()
        self._devices = launch.devices
        chosen = _core.chosen_devices(launch, script)
        self.workers = len(chosen)  # of this machine, that of this process among them
        self.others: list[list[str]] = []  # of each other process
        names = list(dict.fromkeys(chosen))
        if len(names) > 1 and _launch.is_script(launch) and not launch.idle_only:
            launch.devices, *self.others = ([name] * chosen.count(name) for name in names)

    def start(self, token: str, on_lost: Callable[[str], None]) -> None:
        """They join the run of `token`. on_lost(what happened): one is not coming back; from a thread of its own."""
        launch, here = self._launch, self._launch.here or os.getcwd()
        script, arguments = [launch.recipe or os.path.abspath(launch.script)], ["--", *launch.arguments]
        if launch.recipe and launch.fetched:  # as here: from the head
            script, arguments = [], []
        for devices in self.others:
            words = ["join", "-", *script, "--json", *launch.join_options]
            words += [word for device in devices for word in ("--device", device)] + arguments

            def start(_restarted: bool, words: list[str] = words) -> list[str]:
                return command(words)

            def ended(process: Supervised, device: str = devices[0]) -> None:
                if process.status != 0:
                    said = [line for stream, line in process.take_lines() if stream == "err"] or ["it said nothing"]
                    why = process.error["message"] if process.error else said[-1]
                    on_lost(f"{device}: its process ended with status {process.status}: {why}")

            self._processes.append(Supervised(start, here, said=token + "\n", own_group=True, on_end=ended))

    def wait(self) -> None:
        """Until they have ended by themselves."""
        for process in self._processes:
            process.wait(threading.TIMEOUT_MAX)

    def close(self) -> None:
        if os.getpid() == self._process:
            end(self._processes)
            self._processes.clear()
            self._launch.devices = self._devices  # for the next run

    def __enter__(self) -> "Siblings":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
