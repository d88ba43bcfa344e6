"""The `motley` command: the core's own commands, and Python scripts for train, join and plan."""

import os
import runpy
import signal
import sys
from collections.abc import Sequence

from motley import _core, _launch

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 0 done, 1 failed, 2 wrong usage or input, 130 interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    ours, theirs = _split(given)

    # While the core works, Ctrl-C is its own; Python gets it back for the script.
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)

    def run_script(launch: _core.Launch) -> int:
        signal.signal(signal.SIGINT, handler)
        _launch.give(launch)
        return _run_script(launch.script, theirs)

    return _core.run_command(["motley", *ours], run_script)


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What comes after the script belongs to the script."""
    for at, argument in enumerate(arguments):
        if at > 0 and argument.endswith(".py"):
            return arguments[: at + 1], arguments[at + 1 :]
    return arguments, []


def _run_script(script: str, arguments: list[str]) -> int:
    if not os.path.isfile(script):
        print(f"error: {script}: there is no such script", file=sys.stderr)
        return _core.exit_status("input")
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    try:
        runpy.run_path(script, run_name="__main__")
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0
