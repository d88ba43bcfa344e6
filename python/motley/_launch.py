"""What this process was started for: `motley train`, `plan` or `join` with a script, or the script by itself."""

import os
import sys
from collections.abc import Sequence

from motley import _core
from motley._errors import Error

_given: _core.Launch | None = None
_runs = 0
_stopped: Error | None = None


def give(launch: _core.Launch) -> None:
    """From here on, the script's run does what `launch` says."""
    global _given
    _given = launch


def use() -> _core.Launch:
    """What the command line asked for; training, where the script was started without `motley`. For one run."""
    global _runs
    if _given is not None and _runs > 0:
        raise Error("the script began a second run, and one was asked for", "python SCRIPT.py runs as many as there are")
    _runs += 1
    if _given is not None:
        return _given
    launch = _core.Launch()
    launch.script = sys.argv[0] or "script"
    launch.arguments = sys.argv[1:]
    _core.take_rank(launch)
    return launch


def role() -> str:
    return "train" if _given is None else _given.role


def used() -> bool:
    return _runs > 0


def can_be_run_again(launch: _core.Launch) -> bool:
    """Whether another process that runs the script comes to the same run: what runs here is that file (a notebook is none, and a module
    of a package needs its package), and the run is its first."""
    main, script = sys.modules["__main__"], launch.script
    file = getattr(main, "__file__", None)
    if _runs != 1 or file is None or main.__spec__ is not None or not script.endswith(".py"):
        return False
    return os.path.isfile(script) and os.path.isfile(file) and os.path.samefile(script, file)


def stopped(error: Error) -> None:
    """The run was stopped before its end, and says so by `error`."""
    global _stopped
    _stopped = error


def interrupted() -> Error:
    return _stopped or Error("interrupted before the run began", code="interrupted")


def on_something(words: Sequence[str]) -> bool:
    """Whether the command line is `motley train --on …`: another engine is to place the workers."""
    ours = list(words[: words.index("--")] if "--" in words else words)
    return "train" in ours[:2] and any(word == "--on" or word.startswith("--on=") for word in ours)


def report(error: Error) -> int:
    """Says what went wrong, as an event with --json; returns the exit status."""
    _core.report(_given is not None and _given.json, error.code, error.args[0], error.hint)
    return _core.exit_status(error.code)
