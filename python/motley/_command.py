"""The `motley` command: the core's own commands, and Python scripts and recipes for train, join and plan."""

import json
import os
import pathlib
import runpy
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from motley import _core, _launch
from motley._errors import Error, in_words
from motley._machines import _fetch, _packages

RECIPES = pathlib.Path(__file__).parent / "recipes"
BETWEEN_RUNS = ("what stands between two runs runs on machines that join too, where the bodies of epochs do not: take what it needs from "
                "run.history and the model")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 0 done, 1 failed, 2 wrong usage or input, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = next((word for word in words if not word.startswith("-")), "")
    if command == "sample" or (command == "export" and any(word.endswith(".pt") for word in words)):
        words.remove(command)
        return _with_torch(command, words)
    if _launch.on_something(words):
        return _on_ray(words)
    if words[:1] == ["invite"] and not {"--once", "--pair"} & set(words):
        return _invite(words[1:])
    # While the core works, Ctrl-C is its own; Python gets it back for the script.
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)

    def run_script(launch: _core.Launch) -> int:
        signal.signal(signal.SIGINT, handler)
        try:
            if launch.fetched:
                launch.script, launch.arguments, wanted = _fetch.receive(launch.fetched, launch.agreed, launch.installs)
                if wanted:
                    _packages.run_in_own(launch, _fetch.environment(wanted), wanted)
            elif not launch.script:
                launch.script, launch.arguments = _fetch.recipe_of(launch.resumed)
        except Error as error:
            return _report(error, launch.json)
        launch.recipe = launch.script if launch.script in _core.recipes else ""
        _launch.give(launch)
        return _run_script(launch)

    return _core.run_command(["motley", *words], run_script, _torch)


def _torch() -> Any:
    """What tells of this Python's torch; None: there is none."""
    try:
        from motley._machines import _devices
    except ImportError:
        return None
    return _devices


def _with_torch(command: str, words: list[str]) -> int:
    """`export` to a file of torch's, and `sample`."""
    as_json = "--json" in words
    try:
        if command == "sample":
            from motley.recipes import _sample

            return _sample.main(words)
        from motley._runs import _export

        done = _export.main(words)
    except ImportError as error:
        return _report(Error(f"{command} needs torch ({error})", "pip install torch", "usage"), as_json)
    except Error as error:
        return _report(error, as_json)
    except KeyboardInterrupt:
        return _report(Error("interrupted", code="interrupted"), as_json)
    print(json.dumps({"event": "export", **done}) if as_json else f"step {done['step']} written to {done['path']}")
    return 0


def _on_ray(words: list[str]) -> int:
    try:
        from motley import ray

        return ray.main(words)
    except Error as error:
        return _report(error, "--json" in words)


def _invite(words: list[str]) -> int:
    from motley._machines import _invite

    try:
        return _invite.main(words)
    except Error as error:
        return _report(error, "--json" in words)
    except KeyboardInterrupt:
        return _report(Error("interrupted", "the machines that were invited have left", "interrupted"), "--json" in words)


def _report(error: Error, as_json: bool) -> int:
    _core.report(as_json, error.code, error.args[0], error.hint)
    return _core.exit_status(error.code)


def _run_script(launch: _core.Launch) -> int:
    sys.argv = [launch.script, *launch.arguments]
    if launch.recipe:
        launch.script = str(RECIPES / f"{launch.recipe.replace('-', '_')}.py")
    else:
        launch.script = os.path.abspath(launch.script)  # it may go to another directory
        sys.path.insert(0, os.path.dirname(launch.script))
    if launch.json:
        sys.stdout = sys.stderr  # standard output has events alone
    try:
        if not os.path.isfile(launch.script):
            raise Error(f"{launch.script}: there is no such script", "motley train SCRIPT.py")
        runpy.run_path(launch.script, run_name="__main__")
        if not _launch.used():
            raise Error(f"{launch.script} began no run", "for epoch in motley.Run(...).epochs(10): ...")
        if launch.role == "join":
            raise Error(f"the head has come to a later run of its script, and {launch.script} ended here after run {_launch.number()}",
                        "start the same script with the same arguments on all machines", "mismatch")
    except KeyboardInterrupt:
        return _launch.report(_launch.interrupted())
    except Error as error:
        return _launch.report(error)
    except Exception as error:
        traceback.print_exc()
        _launch.report(Error(f"{launch.script} failed: {in_words(error)}",
                             BETWEEN_RUNS if launch.role == "join" and _launch.used() else _launch.left_by()))
        return 1
    return 0
