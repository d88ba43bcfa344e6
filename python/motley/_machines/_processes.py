"""A `motley` process that is watched, heard and started again, for the engines that place workers."""

import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from motley._errors import Error
from motley._machines import _system

KEEPER = pathlib.Path(__file__).with_name("_keeper.py")
RESTARTS_MAX = 5  # in a row
PAUSE_S = 2.0  # before each of these but the first
LONG_LIFE_S = 60.0  # after such a life the count begins anew
LINES_MAX = 20_000  # kept until somebody takes them
LAST_WORDS_S = 10.0  # to end in good order
# Ray's secrets; and by what a launcher tells its processes apart, where one of them is a supervisor.
NOT_FOR_CHILDREN = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "OMPI_COMM_WORLD_RANK", "SLURM_STEP_ID", "PMI_RANK")


@dataclass(frozen=True)
class Orders:
    """What a process is started for. `words` follow the command; the token is never among them."""

    words: list[str]
    directory: str
    token: str = field(default="", repr=False)


def command(words: Sequence[str]) -> list[str]:
    """Of this Python."""
    return [sys.executable, "-m", "motley", *words]


def directory(wanted: str) -> str | None:
    """Where there is no such directory on this machine, the supervisor's own: that of an engine which brings the files itself."""
    return wanted if os.path.isdir(wanted) else None


def resuming(words: Sequence[str], run: str, restarted: bool) -> list[str]:
    """The words of a head; of one that was started again, those with which it goes on."""
    resumes = restarted and os.path.isfile(os.path.join(run, "run.toml")) and "--resume" not in words
    return [words[0], "--resume", *words[1:]] if resumes else list(words)


def failure(error: dict[str, Any] | None, status: int, what: str) -> Error:
    """Why `what`, a process, ended with this status. `error`: the event by which it said so; None: it said nothing."""
    if error is not None:
        return Error(error["message"], error["try"], error["code"])
    if status < 0:
        return Error(f"{what} was killed by signal {-status}", "look for what ended it; the system does where memory runs out",
                     "interrupted")
    return Error(f"{what} ended with status {status} and said nothing", "look at what its script does at its end: sys.exit(), os._exit()")


def starts_again(status: int, code: str, restarts: int) -> bool:
    """Whether a process that ended with `status` is worth another try: who was killed is, or found its predecessor still there; who said
    what is wrong is not."""
    return (status < 0 or code == "busy") and restarts < RESTARTS_MAX


class Supervised:
    """Runs `command(restarted)` in `directory` until it ends by itself. The methods may be called from any thread.

    `said` is what it gets on standard input, which is then closed. on_line(stream, line): each line of "out" and "err", from threads of
    their own. on_end(this): it ended, and nobody had asked for that. The process stays in the process group of this one, unless Ctrl-C in
    a terminal is not for it (`own_group`), and ends with this one.
    """

    def __init__(self, command: Callable[[bool], Sequence[str]], directory: str | None, said: str = "",
                 on_line: Callable[[str, str], None] | None = None, own_group: bool = False,
                 on_end: "Callable[[Supervised], None] | None" = None):
        self._command, self._directory, self._said, self._on_line, self._on_end = command, directory, said, on_line, on_end
        self._own_group = own_group
        self._lock = threading.Lock()
        self._lines: collections.deque[tuple[str, str]] = collections.deque(maxlen=LINES_MAX)
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self.status: int | None = None  # of the last end, when there is no further start
        self.restarts = 0
        self.error: dict[str, str] | None = None  # the error event of the last start
        self._keeper = subprocess.Popen([sys.executable, "-I", "-S", str(KEEPER), str(os.getpid())], stdin=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, **_system.new_group(own_group))
        threading.Thread(target=self._supervise, name="motley supervisor", daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Whether it ended for good, after so long at most."""
        return self._ended.wait(seconds)

    def take_lines(self) -> list[tuple[str, str]]:
        """What it said since the last call, as (stream, line)."""
        with self._lock:
            lines = list(self._lines)
            self._lines.clear()
        return lines

    def interrupt(self) -> None:
        """As Ctrl-C: it ends in good order, and is not started again."""
        self._end(_system.interrupt)

    def kill(self) -> None:
        self._end(subprocess.Popen.kill)

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process is not None else None

    def _end(self, how: Callable[[subprocess.Popen[bytes]], None]) -> None:
        with self._lock:
            self._stopping.set()
            if self._process is not None and self._process.poll() is None:
                how(self._process)

    def _supervise(self) -> None:
        in_a_row = 0
        try:
            while True:
                began = time.monotonic()
                status = self._run_once(restarted=self.restarts > 0)
                in_a_row = 0 if time.monotonic() - began > LONG_LIFE_S else in_a_row
                code = self.error["code"] if self.error else ""
                if self._stopping.is_set() or not starts_again(status, code, in_a_row):
                    self.status = status
                    return
                if in_a_row > 0 or code == "busy":
                    self._stopping.wait(PAUSE_S)
                in_a_row += 1
                self.restarts += 1
        except OSError as error:
            self.error = {"code": "io", "message": f"the process cannot be started: {error}", "try": "install Motley on this node"}
            self.status = 1
        finally:
            assert self._keeper.stdin is not None
            self._keeper.kill()
            self._keeper.wait()
            self._keeper.stdin.close()
            if self._on_end is not None and not self._stopping.is_set():
                self._on_end(self)
            self._ended.set()

    def _run_once(self, restarted: bool) -> int:
        kept = {name: value for name, value in os.environ.items() if name not in NOT_FOR_CHILDREN}
        with self._lock:
            if self._stopping.is_set():
                return -signal.SIGINT
            self.error = None
            process = subprocess.Popen(self._command(restarted), cwd=self._directory, env=kept, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, **_system.new_group(self._own_group))
            self._process = process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self._tell(self._keeper.stdin, f"{-process.pid if self._own_group else process.pid}\n", close=False)
        self._tell(process.stdin, self._said, close=True)
        readers = [threading.Thread(target=self._read, args=(name, stream), daemon=True)
                   for name, stream in (("out", process.stdout), ("err", process.stderr))]
        for reader in readers:
            reader.start()
        status = process.wait()
        for reader in readers:
            reader.join()
        return status

    def _tell(self, stream: IO[bytes] | None, text: str, close: bool) -> None:
        assert stream is not None
        try:
            stream.write(text.encode())
            stream.flush()
            if close:
                stream.close()
        except BrokenPipeError:
            pass  # it ended already, which shows elsewhere

    def _read(self, name: str, stream: IO[bytes]) -> None:
        with stream:
            for raw in stream:
                line = raw.decode("utf-8", "replace").rstrip("\n")
                if name == "out" and '"event":"error"' in line:
                    self.error = _event(line) or self.error
                with self._lock:
                    self._lines.append((name, line))
                if self._on_line is not None:
                    self._on_line(name, line)


def end(processes: Sequence[Supervised]) -> None:
    """Lets them end in good order, and ends those that do not."""
    for process in processes:
        process.interrupt()
    until = time.monotonic() + LAST_WORDS_S
    try:
        for process in processes:
            process.wait(max(0.0, until - time.monotonic()))
    finally:
        for process in processes:
            process.kill()
            process.wait(LAST_WORDS_S)


def _event(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
