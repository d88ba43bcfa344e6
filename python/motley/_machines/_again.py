"""A worker whose process is better replaced by another one, which goes on in its place."""

import os
import sys
from typing import NoReturn

from motley import _core, _launch
from motley._errors import Error
from motley._machines import _system
from motley._machines._processes import command

GROWN = "busy"  # the code of an error of a process that another one had better replace


def start_again(launch: _core.Launch, why: Error) -> NoReturn:
    """REQUIRES `why` has the code GROWN."""
    sys.stderr.write(f"motley: {why}: it is started again\n")
    if launch.here:
        os.chdir(launch.here)
    if _launch.role() != "join" or (_leads_to(launch.token, sys.orig_argv) and not launch.fetched):
        _system.restart()
    options = [option for option in launch.join_options if option != "--no-keep-awake" or option in sys.orig_argv]
    devices = [word for device in launch.devices for word in ("--device", device)]
    # What came from the head comes from there again where it is a recipe; a script that was fetched was agreed to.
    script = [] if launch.recipe and launch.fetched else [launch.recipe or os.path.abspath(launch.script)]
    arguments = ["--", *launch.arguments] if script else []
    _system.become(command(["join", "-", *script, *(["--json"] if launch.json else []), *options,
                            *(["--idle-only"] if launch.idle_only else []), *devices, *arguments]), launch.token)


def _leads_to(token: str, words: list[str]) -> bool:
    """Whether they do once more: a code is good for one machine, and what came on standard input is gone."""
    return any(word == token or word.startswith("--token-file") or _holds(word, token) for word in words)


def _holds(path: str, token: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline().strip() == token
    except (OSError, ValueError):
        return False
