"""Processes of this machine, found by what they are and awaited."""

import os
import pathlib
import select

from program import PATIENCE_S


def command_lines():
    """The words of all processes of this machine, by number."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found[int(entry.name)] = (entry / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
            except OSError:
                pass  # it ended meanwhile
    return found


def having(*words, below=None):
    """Processes whose words have all of these in this order, one after the other; of those that work in a directory, or below it."""
    wanted = list(words)
    return [pid for pid, line in command_lines().items()
            if any(line[i:i + len(wanted)] == wanted for i in range(len(line) - len(wanted) + 1)) and (below is None or _works(pid, below))]


def _works(pid, below):
    try:
        return pathlib.Path(f"/proc/{pid}/cwd").readlink().is_relative_to(below)
    except OSError:
        return False  # it ended meanwhile


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def children(pid):
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]


def await_end(pids):
    """Waits until these processes are gone; zombies are."""
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            assert poll.poll(PATIENCE_S * 1000), f"process {pid} does not end: {command_lines().get(pid)}"
        finally:
            os.close(handle)
