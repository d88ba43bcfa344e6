"""What this process was started for: `motley train`, `plan` or `join` with a script, or the script by itself."""

import sys

from motley import _core

_given: _core.Launch | None = None


def give(launch: _core.Launch) -> None:
    """From here on, the script's run does what `launch` says."""
    global _given
    _given = launch


def current() -> _core.Launch:
    """What the command line asked for; training, where the script was started without `motley`."""
    if _given is not None:
        return _given
    launch = _core.Launch()
    launch.script = sys.argv[0] or "script"
    return launch
