"""What this process was started for: `motley train`, `plan` or `join` with a script, or the script by itself."""

import atexit
import contextlib
import glob
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence

from motley import _core
from motley._errors import Error

MESSAGE_MAX = 4000  # characters that other machines get of why a run did not begin

_given: _core.Launch | None = None
_own: _core.Launch | None = None  # of a script that was started by itself
_early: _core.Launch | None = None  # of a script that asked for files first
_offers: _core.Offers | None = None
_runs = 0  # that the script has asked for
_refused: dict[int, list[str]] = {}  # of these, by number, those that did not begin, and why
_began = False  # the newest has
_open = 0  # the process that has begun a run and has not come to its end
_words: list[str] = []  # of the command line: the script and its arguments
_first = ""  # the directory of the first that began, on the head
_first_number = 1  # of that
_resumes = False
_stopped: Error | None = None


def give(launch: _core.Launch) -> None:
    """From here on, the script's runs do what `launch` says."""
    global _given, _words
    _given = launch
    _words = [launch.script, *launch.arguments]


def use() -> _core.Launch:
    """What the command line asked for; training, where the script was started without `motley`. For a run: those of a script come one
    after the other, and have one launch, one token and directories side by side."""
    global _own, _runs, _began, _first, _resumes
    launch = of_files()
    _leave_early(launch)
    if _given is None and is_script(launch):
        _own = launch
    _runs, _began = _runs + 1, False
    if number() == 1:
        _resumes, _first = bool(launch.resumed), launch.resumed
        if launch in (_given, _own) and launch.role == "train":
            launch.keep_door()
            atexit.register(launch.close_door)
    elif launch.role == "train" and _runs > _first_number:
        place = directory_of(_runs)
        launch.go_on(place, _resumes and _is_run(place))
    return launch


def use_alone() -> _core.Launch:
    """Likewise for a run that no other may come before or after in a script that `motley` was started with."""
    global _runs
    if _given is not None and _runs > 0:
        raise Error("the script began a second run, and one was asked for", "python SCRIPT.py runs as many as there are")
    _runs += 1
    launch = _given or _early or _made()
    _leave_early(launch)
    return launch


def of_files() -> _core.Launch:
    """What the command line asked for, before the script's next run."""
    global _early
    if _given is None and _own is None and _early is None:
        _early = _made()
    launch = _given or _own or _early
    assert launch is not None
    return launch


def offer(offers: _core.Offers) -> None:
    """The runs of this script hand them out from now on."""
    global _offers
    _offers = offers


def _leave_early(launch: _core.Launch) -> None:
    global _early
    _early = None
    if _offers is not None:
        launch.offer(_offers)


def _made() -> _core.Launch:
    launch = _core.Launch()
    file = getattr(sys.modules["__main__"], "__file__", None) or ""  # absolute, wherever the script went since
    launch.script = file if os.path.basename(file) == os.path.basename(sys.argv[0]) else sys.argv[0] or "script"
    launch.arguments = sys.argv[1:]
    _core.take_rank(launch)
    return launch


def number() -> int:
    """Which of the script's runs this is, from 1 on. Those of a notebook or a module are each by themselves."""
    return max(1, _runs) if _given is not None or _own is not None else 1


def began(directory: str) -> None:
    """The head has made this directory for its run."""
    global _began, _first, _open
    _began, _open = True, os.getpid()
    if number() <= _first_number:
        _first = directory


def ended() -> None:
    """The run that began last is over, or its script has left it."""
    global _open
    _open = 0


def goes_on_by() -> str:
    """The command that goes on with the run that this process has begun and is still in; empty: there is none."""
    if _open != os.getpid():
        return ""
    script, *arguments = _words or (sys.argv if _own is not None else [""])
    words = [script] * bool(script) + ["--"] * any(word.startswith("-") for word in arguments) + arguments
    return shlex.join(["motley", "train", "--resume", "--run", _first, *words])


@contextlib.contextmanager
def beginning() -> Iterator[None]:
    """Around a run on the head. What ends it before it has begun, the script may catch, and make another; machines that come to this one
    have to hear it."""
    global _first_number
    try:
        yield
    except Exception as error:
        if not _began and (_given is not None or _own is not None):
            said = str(error.args[0] if len(error.args) == 1 else error)[:MESSAGE_MAX]
            _refused[number()] = ["", said, error.hint, error.code] if isinstance(error, Error) else [type(error).__name__, said, "", ""]
            _first_number += number() == _first_number
        raise


def refused() -> dict[int, list[str]]:
    """The runs of this script that did not begin, and why: type ("" for motley.Error), message, hint and code."""
    return _refused


def directory_of(run: int) -> str:
    """Of a run of this script, on the head."""
    return _first if run <= _first_number or not _first else f"{_first}-{run}"


def is_over() -> bool:
    """Whether the run that is to go on was left behind before: the script had come to the next."""
    here = directory_of(number())
    ends = (path.rpartition("-")[2] for path in glob.glob(f"{glob.escape(_first)}-*") if _is_run(path))
    later = any(number() < int(end) for end in ends if end.isdecimal())
    return _resumes and later and _is_run(here) and _number_in(here) == number()


def _number_in(directory: str) -> int:
    """Of the run there, in its script."""
    with open(os.path.join(directory, "run.toml"), encoding="utf-8") as file:
        found = re.search(r"^run *= *(\d+)", file.read(), re.MULTILINE)
    return int(found[1]) if found else 1


def _is_run(directory: str) -> bool:
    return os.path.isfile(os.path.join(directory, "run.toml"))


def role() -> str:
    return "train" if _given is None else _given.role


def used() -> bool:
    return _runs > 0


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
    global _stopped
    _stopped = Error(error.args[0], goes_on_by() or error.hint, error.code) if error.code == "interrupted" else error


def interrupted() -> Error:
    return _stopped or Error("interrupted before the run began", code="interrupted")


def left_by() -> str:
    """The command that goes on with a run that the script left; empty: it left none."""
    return _stopped.hint if _stopped is not None and _stopped.code == "interrupted" else ""


def on_something(words: Sequence[str]) -> bool:
    """Whether the command line is `motley train --on …`: another engine is to place the workers."""
    ours = list(words[: words.index("--")] if "--" in words else words)
    return "train" in ours[:2] and any(word == "--on" or word.startswith("--on=") for word in ours)


def report(error: Error) -> int:
    """Says what went wrong, as an event with --json; returns the exit status."""
    _core.report(_given is not None and _given.json, error.code, error.args[0], error.hint)
    return _core.exit_status(error.code)
