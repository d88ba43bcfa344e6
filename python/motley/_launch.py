"""What this process was started for: `motley train`, `plan` or `join` with a script, or the script by itself."""

import atexit
import contextlib
import glob
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from motley import _core
from motley._errors import Error

MESSAGE_MAX = 4000  # characters that other machines get of why a run did not begin


@dataclass
class _Here:
    """What this process knows of the runs of its script."""

    given: _core.Launch | None = None
    own: _core.Launch | None = None  # of a script that was started by itself
    early: _core.Launch | None = None  # of a script that asked for files first
    offers: _core.Offers | None = None
    runs: int = 0  # that the script has asked for
    refused: dict[int, list[str]] = field(default_factory=dict)  # of these, by number, those that did not begin, and why
    began: bool = False  # the newest has
    open: int = 0  # the process that has begun a run and has not come to its end
    words: list[str] = field(default_factory=list)  # of the command line: the script and its arguments
    first: str = ""  # the directory of the first that began, on the head
    first_number: int = 1  # of that
    resumes: bool = False
    stopped: Error | None = None


_here = _Here()


def give(launch: _core.Launch) -> None:
    """From here on, the script's runs do what `launch` says."""
    _here.given = launch
    _here.words = [launch.script, *launch.arguments]


def use() -> _core.Launch:
    """What the command line asked for; training, where the script was started without `motley`. For a run: those of a script come one
    after the other, and have one launch, one token and directories side by side."""
    launch = of_files()
    _leave_early(launch)
    if _here.given is None and is_script(launch):
        _here.own = launch
    _here.runs, _here.began = _here.runs + 1, False
    if number() == 1:
        _here.resumes, _here.first = bool(launch.resumed), launch.resumed
        if launch in (_here.given, _here.own) and launch.role == "train":
            launch.keep_door()
            atexit.register(launch.close_door)
    elif launch.role == "train" and _here.runs > _here.first_number:
        place = directory_of(_here.runs)
        launch.go_on(place, _here.resumes and _is_run(place))
    return launch


def use_alone() -> _core.Launch:
    """Likewise for a run that no other may come before or after in a script that `motley` was started with."""
    if _here.given is not None and _here.runs > 0:
        raise Error("the script began a second run, and one was asked for", "python SCRIPT.py runs as many as there are")
    _here.runs += 1
    launch = _here.given or _here.early or _made()
    _leave_early(launch)
    return launch


def of_files() -> _core.Launch:
    """What the command line asked for, before the script's next run."""
    if _here.given is None and _here.own is None and _here.early is None:
        _here.early = _made()
    launch = _here.given or _here.own or _here.early
    assert launch is not None
    return launch


def offer(offers: _core.Offers) -> None:
    """The runs of this script hand them out from now on."""
    _here.offers = offers


def _leave_early(launch: _core.Launch) -> None:
    _here.early = None
    if _here.offers is not None:
        launch.offer(_here.offers)


def _made() -> _core.Launch:
    launch = _core.Launch()
    file = getattr(sys.modules["__main__"], "__file__", None) or ""  # absolute, wherever the script went since
    launch.script = file if os.path.basename(file) == os.path.basename(sys.argv[0]) else sys.argv[0] or "script"
    launch.arguments = sys.argv[1:]
    _core.take_rank(launch)
    return launch


def number() -> int:
    """Which of the script's runs this is, from 1 on. Those of a notebook or a module are each by themselves."""
    return max(1, _here.runs) if _here.given is not None or _here.own is not None else 1


def began(directory: str) -> None:
    """The head has made this directory for its run."""
    _here.began, _here.open = True, os.getpid()
    if number() <= _here.first_number:
        _here.first = directory


def ended() -> None:
    """The run that began last is over, or its script has left it."""
    _here.open = 0


def goes_on_by() -> str:
    """The command that goes on with the run that this process has begun and is still in; empty: there is none."""
    if _here.open != os.getpid():
        return ""
    script, *arguments = _here.words or (sys.argv if _here.own is not None else [""])
    words = [script] * bool(script) + ["--"] * any(word.startswith("-") for word in arguments) + arguments
    return shlex.join(["motley", "train", "--resume", "--run", _here.first, *words])


@contextlib.contextmanager
def beginning() -> Iterator[None]:
    """Around a run on the head. What ends it before it has begun, the script may catch, and make another; machines that come to this one
    have to hear it."""
    try:
        yield
    except Exception as error:
        if not _here.began and (_here.given is not None or _here.own is not None):
            said = str(error.args[0] if len(error.args) == 1 else error)[:MESSAGE_MAX]
            ours = isinstance(error, Error)
            _here.refused[number()] = ["", said, error.hint, error.code] if ours else [type(error).__name__, said, "", ""]
            _here.first_number += number() == _here.first_number
        raise


def refused() -> dict[int, list[str]]:
    """The runs of this script that did not begin, and why: type ("" for motley.Error), message, hint and code."""
    return _here.refused


def directory_of(run: int) -> str:
    """Of a run of this script, on the head."""
    return _here.first if run <= _here.first_number or not _here.first else f"{_here.first}-{run}"


def is_over() -> bool:
    """Whether the run that is to go on was left behind before: the script had come to the next."""
    here = directory_of(number())
    ends = (path.rpartition("-")[2] for path in glob.glob(f"{glob.escape(_here.first)}-*") if _is_run(path))
    later = any(number() < int(end) for end in ends if end.isdecimal())
    return _here.resumes and later and _is_run(here) and _number_in(here) == number()


def _number_in(directory: str) -> int:
    """Of the run there, in its script."""
    with open(os.path.join(directory, "run.toml"), encoding="utf-8") as file:
        found = re.search(r"^run *= *(\d+)", file.read(), re.MULTILINE)
    return int(found[1]) if found else 1


def _is_run(directory: str) -> bool:
    return os.path.isfile(os.path.join(directory, "run.toml"))


def role() -> str:
    return "train" if _here.given is None else _here.given.role


def used() -> bool:
    return _here.runs > 0


def is_script(launch: _core.Launch) -> bool:
    """Whether another process that runs the script comes to the same runs: what runs here is that file (a notebook is none, and a module
    of a package needs its package)."""
    main, script = sys.modules["__main__"], launch.script
    file = getattr(main, "__file__", None)
    if file is None or main.__spec__ is not None or not script.endswith(".py"):
        return False
    return os.path.isfile(script) and os.path.isfile(file) and os.path.samefile(script, file)


def stopped(error: Error) -> None:
    """The run was stopped before its end, and says so by `error`."""
    _here.stopped = Error(error.args[0], goes_on_by() or error.hint, error.code) if error.code == "interrupted" else error


def interrupted() -> Error:
    return _here.stopped or Error("interrupted before the run began", code="interrupted")


def left_by() -> str:
    """The command that goes on with a run that the script left; empty: it left none."""
    return _here.stopped.hint if _here.stopped is not None and _here.stopped.code == "interrupted" else ""


def on_something(words: Sequence[str]) -> bool:
    """Whether the command line is `motley train --on …`: another engine is to place the workers."""
    ours = list(words[: words.index("--")] if "--" in words else words)
    return "train" in ours[:2] and any(word == "--on" or word.startswith("--on=") for word in ours)


def report(error: Error) -> int:
    """Says what went wrong, as an event with --json; returns the exit status."""
    _core.report(_here.given is not None and _here.given.json, error.code, error.args[0], error.hint)
    return _core.exit_status(error.code)
