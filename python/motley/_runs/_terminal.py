"""What a script prints while the run's live display moves: whole lines, above it."""

import contextlib
import io
import os
import re
import sys
import threading
from typing import Any

from motley import _core
from motley._runs import _notebook

LINE_MAX, SHOWN_MAX = 1 << 16, 1024  # characters of a line that does not end; of what moves along
# Sequences that move the cursor or clear something: all but colours, and control characters but newline, tab and ESC.
MOVES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-ln-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b(?![\[\]])[ -/]*[0-~]"
                   r"|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]")
COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*m|\x1b")


def is_live(launch: _core.Launch) -> bool:
    """Whether a run of this launch is to be displayed live: in a terminal, where nobody else displays one."""
    streams = _streams()
    return not launch.json and _notebook.table() is None and bool(streams) and not any(_writer(stream) for stream in streams)


class Output:
    """Between take() and end(), the writes of this process's Python to the terminal: complete lines appear above what moves, each
    thread's for itself; what has no end yet moves along until it has one, or the run is over. Takes over writing alone, so the streams
    stay what they are for all that hold them: loggers, progress bars, wrappers. Writers may be any threads; take() and end() come from
    the run's own, end() also without take(), and again."""

    def __init__(self) -> None:
        self._writers: list[_Writer] = []

    def take(self, head: _core.Head) -> None:
        self._writers = [_Writer(stream, head) for stream in _streams()]

    def end(self) -> None:
        """After the display's end."""
        for writer in self._writers:
            writer.end()
        self._writers.clear()


class _Writer:
    """Stands for the method `write` of a stream."""

    def __init__(self, stream: io.TextIOWrapper, head: _core.Head):
        self._stream, self._process = stream, os.getpid()
        self._head: _core.Head | None = head
        self._before, self._was_own = stream.write, vars(stream).get("write")  # somebody may be listening there already
        self._begun: dict[int, str] = {}  # by thread
        stream.flush()
        vars(stream)["write"] = self

    def __call__(self, text: str) -> int:
        head = self._head
        if head is None or os.getpid() != self._process or not isinstance(text, str):
            return self._before(text)
        thread = threading.get_ident()
        lines, newline, begun = (self._begun.pop(thread, "") + text).rpartition("\n")
        begun = newest(begun)
        if len(begun) > LINE_MAX:
            lines, newline, begun = lines + newline + begun, "\n", ""
        if begun:
            self._begun[thread] = begun
        head.hide()
        try:
            if newline:
                self._before(without_moves(lines) + newline)
                self._stream.flush()
        finally:
            head.show(COLOURS.sub("", without_moves(begun[:SHOWN_MAX])).expandtabs())
        return len(text)

    def end(self) -> None:
        if vars(self._stream).get("write") is self:
            del vars(self._stream)["write"]
            if self._was_own is not None:
                vars(self._stream)["write"] = self._was_own
        self._head = None
        for begun in self._begun.values():
            self._before(begun)
        self._begun.clear()
        self._stream.flush()


def without_moves(text: str) -> str:
    """As it would look, with nothing in it that moves the cursor."""
    return MOVES.sub("", "\n".join(newest(line) for line in text.split("\n")))


def newest(line: str) -> str:
    """What is seen of a line that was written over, from its beginning, with each carriage return."""
    return line[line.rstrip("\r").rfind("\r") + 1 :]


def _writer(stream: io.TextIOWrapper) -> bool:
    return isinstance(vars(stream).get("write"), _Writer)


def _streams() -> list[io.TextIOWrapper]:
    """Python's streams that lead to the terminal of standard error, where that is one."""
    found: dict[int, io.TextIOWrapper] = {}
    if not os.isatty(2):
        return []
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(OSError, ValueError):  # closed, or no file
            if isinstance(stream, io.TextIOWrapper) and os.path.sameopenfile(stream.fileno(), 2):
                found[id(stream)] = stream
    return list(found.values())
