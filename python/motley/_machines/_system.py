"""What systems do differently: the only module that asks which one this is."""

import contextlib
import os
import platform
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from subprocess import Popen

WINDOWS = os.name == "nt"
KILL: int = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL
LOCKED_BYTE = 0x7FFFFFFF  # of a file, on Windows; as in src/store/file_windows.cpp, which holds the same files


def new_group(own: bool) -> dict[str, Any]:
    """For subprocess.Popen. `own`: Ctrl-C in a terminal is not for the process."""
    if sys.platform == "win32":
        return {"creationflags": 0x200}  # CREATE_NEW_PROCESS_GROUP: else it could not be interrupted by itself
    return {"start_new_session": own}


def interrupt(process: "Popen[bytes]") -> None:
    """As Ctrl-C does, of a process that was started with new_group()."""
    if sys.platform != "win32":
        process.send_signal(signal.SIGINT)
        return
    try:
        process.send_signal(signal.CTRL_BREAK_EVENT)  # Windows interrupts groups alone, and only by this
    except OSError:  # there is no console that could tell it
        process.terminate()


def kill(process: int, with_group: bool) -> None:
    """`with_group`: and all that it started, where it was started in a group of its own."""
    if sys.platform == "win32":
        import subprocess  # here, because the keeper starts quicker without

        if with_group:  # what it has started, first: afterwards nobody knows whose that was
            subprocess.run(["taskkill", "/F", "/T", "/PID", str(process)], capture_output=True, check=False)
        with contextlib.suppress(OSError):
            os.kill(process, KILL)
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(-process if with_group else process, KILL)


def leads_group(process: int) -> bool:
    """Whether this process is in the group of that one, which began it."""
    return sys.platform != "win32" and os.getpgrp() == process


def kill_own_group() -> None:
    if sys.platform != "win32":
        os.killpg(0, KILL)


def ignore_interrupts(*more: int) -> None:
    """Ctrl-C is for another process; `more`: of these requests, too."""
    for request in (signal.SIGINT, *more):
        signal.signal(request, signal.SIG_IGN)


def become(words: Sequence[str], said: str) -> NoReturn:
    """Runs another program in place of this process. `said`: a line that it finds on standard input, where nobody else sees it."""
    _flush()
    if sys.platform == "win32":  # has no such thing: this process waits
        import subprocess

        sys.exit(subprocess.run(words, input=said + "\n", text=True, check=False).returncode)
    out, into = os.pipe()
    os.write(into, said.encode() + b"\n")
    os.close(into)
    os.dup2(out, 0)
    os.execv(words[0], words)


def restart() -> NoReturn:
    """This program from its beginning, with the same words."""
    _flush()
    words = [sys.executable, *sys.orig_argv[1:]]
    if sys.platform == "win32":
        import subprocess

        sys.exit(subprocess.run(words, check=False).returncode)
    os.execv(words[0], words)


def _flush() -> None:
    """What was printed would be lost with this program."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def names() -> set[str]:
    """Words that are this machine's and its system's, in small letters."""
    return {name.lower() for name in (platform.node(), platform.machine(), platform.system(), sys.platform)}


def executable(environment: str) -> str:
    """The Python of a virtual environment."""
    return os.path.join(environment, *(("Scripts", "python.exe") if WINDOWS else ("bin", "python")))


def lock(descriptor: int, wait: bool) -> bool:
    """Holds the file for this process until that is closed; False: another does, and this is not to wait."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)  # LK_LOCK gives up after ten seconds
                return True
            except OSError:
                if not wait:
                    return False
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
