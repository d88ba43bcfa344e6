"""What is of one system alone stands in one module."""

import multiprocessing
import os
import pathlib
import re
import signal
import subprocess
import sys
import types

import pytest

import motley
from motley import _core
from motley._machines import _system

PACKAGE = pathlib.Path(motley.__file__).parent
OF_ONE_SYSTEM = re.compile("|".join([
    r"os\.(name\b|uname|fork|forkpty|killpg|getpgrp|setsid|sched_|sysconf|dup2|exec|getuid|geteuid|wait)", r"/proc/",
    r"platform\.(system|release)", r"signal\.(SIG(?!INT\b|TERM\b|_IGN\b|_DFL\b)|CTRL_|alarm|setitimer|pthread)", r"AF_UNIX",
    r"hasattr\((os|signal|socket),", r"start_new_session|preexec_fn|creationflags", r"get_context\(['\"]fork",
    r"import (fcntl|termios|resource|pwd|grp|pty|msvcrt|winreg)\b"]))


def test_no_other_module_knows_the_system():
    found = [f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}" for path in sorted(PACKAGE.rglob("*.py"))
             if path.name != "_system.py" and "ray" not in path.relative_to(PACKAGE).parts  # Ray's workers are Linux's and macOS' alone
             for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if OF_ONE_SYSTEM.search(line)]
    assert not found, found


def test_a_process_is_interrupted_and_killed():
    # Whoever runs the tests may ignore interrupts, which is inherited.
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); print('here', flush=True); sys.stdin.read()"
    waits = [sys.executable, "-c", code]
    for own in (True, False):
        for end in (_system.interrupt, subprocess.Popen.kill):
            streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            with subprocess.Popen(waits, **streams, **_system.new_group(own)) as process:
                assert process.stdout.readline().strip() == b"here"
                end(process)
                assert process.wait(60) != 0


def test_a_group_ends_with_what_it_started():
    starts = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.read()'], " \
             "stdin=subprocess.PIPE); print(p.pid, flush=True); sys.stdin.read()"
    words = [sys.executable, "-c", starts]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **_system.new_group(True)) as process:
        process.stdout.readline()
        _system.kill(process.pid, with_group=True)
        assert process.stdout.read() == b""  # nobody has it open any more
        assert process.wait(60) != 0
    _system.kill(process.pid, with_group=False)  # nothing is there any more


@pytest.mark.skipif(_system.WINDOWS, reason="there a process waits for the other one")
def test_another_program_takes_the_place_of_this_one():
    becomes = "from motley._machines import _system; import os, sys; print(os.getpid(), flush=True); " \
              "_system.become([sys.executable, '-c', 'import os; print(os.getpid(), input())'], 'said')"
    done = subprocess.run([sys.executable, "-c", becomes], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert second == f"{first} said"


def test_the_machine_is_described():
    name, memory, processors = _core.machine()
    assert name and memory > 1 << 26 and 1 <= processors <= (os.cpu_count() or 1)


def test_on_windows_the_core_and_python_hold_the_same_byte(tmp_path, monkeypatch):
    core = (pathlib.Path(__file__).resolve().parents[2] / "src/store/file_windows.cpp").read_text()
    held = []
    windows = types.SimpleNamespace(LK_LOCK=1, LK_NBLCK=2, locking=lambda file, *_: held.append(os.lseek(file, 0, os.SEEK_CUR)))
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    monkeypatch.setattr(sys, "platform", "win32")
    with open(tmp_path / "lock", "w") as file:
        assert _system.lock(file.fileno(), wait=False)
    assert held == [int(re.search(r"kLockedByte = (0x[0-9A-F]+);", core)[1], 16)]


def _ignores(asked):
    _system.ignore_interrupts()
    asked.send(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)


def test_interrupts_are_for_another():
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(target=_ignores, args=(there,))
    child.start()
    assert here.recv()
    child.join()
