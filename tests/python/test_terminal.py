"""The live display of a script's run, in a terminal: what the script writes comes above it in whole lines."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import pytest

from conftest import COMMAND, SCRIPTS
from motley._runs import _terminal
from program import PATIENCE_S

COLUMNS, ROWS = 100, 40
WORDS = [str(COMMAND), "train", str(SCRIPTS / "printing.py"), "--run", "run", "--listen", "127.0.0.1:0", "--device", "cpu",
         "--threads", "1"]


class Screen:
    """A terminal that understands what the display writes and nothing else, so that it notices what else reaches it. As high as need be."""

    def __init__(self):
        self.lines, self.row, self.column = [""], 0, 0

    def feed(self, text):
        for piece in re.findall(r"\x1b\[[0-?]*[@-~]|[\r\n]|[^\r\n\x1b]+|\x1b", text):
            if piece == "\r":
                self.column = 0
            elif piece == "\n":
                self.row += 1
                self.lines += [""] * (self.row + 1 - len(self.lines))
            elif piece == "\x1b[2K":
                self.lines[self.row] = ""
            elif piece == "\x1b[J":
                self.lines[self.row :] = [self.lines[self.row][: self.column]]
            elif re.fullmatch(r"\x1b\[\d+A", piece):
                self.row -= int(piece[2:-1])
                assert self.row >= 0
            elif piece not in ("\x1b[?7l", "\x1b[?7h") and not piece.endswith("m"):
                assert piece[0] != "\x1b", piece
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + piece + line[self.column + len(piece) :]
                self.column += len(piece)
        return self


def in_terminal(directory, how, **streams):
    """What a terminal got of the script."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen([*WORDS, how], cwd=directory, stdin=subprocess.DEVNULL, **{"stdout": theirs, "stderr": theirs, **streams})
    os.close(theirs)
    got = b""
    try:
        while piece := os.read(ours, 1 << 16):
            got += piece
    except OSError:  # nobody has it open any more
        pass
    os.close(ours)
    assert process.wait(PATIENCE_S) == 0, got.decode()
    return got.decode()


@pytest.mark.parametrize("how", ["break", "raise"])
def test_what_the_script_writes_comes_above_the_display_in_whole_lines(tmp_path, how):
    text = in_terminal(tmp_path, how)
    lines = Screen().feed(text).lines
    story = "\n".join(lines)
    for epoch in (1, 2):
        wanted = [f"body {epoch}", f"logged: epoch {epoch}", f"100 % of {epoch}",
                  *(f"thread {epoch}-{thread} line {line}" for thread in range(3) for line in range(20))]
        assert [lines.count(line) for line in wanted] == [1] * len(wanted), story
        assert lines.index(wanted[0]) < lines.index(wanted[1]) < lines.index(wanted[-1]) < lines.index(wanted[2]), story
    assert lines.count("half a line and its other half") == lines.count("red up") == 2, story
    # What moves: seen while it did, left once, with everything of the run above it, and what follows below.
    assert re.search(r"step \d+/42  epoch \d.* left", text) and "10 %" in text, story
    bars = [number for number, line in enumerate(lines) if re.search(r"step 14/42 ", line)]
    assert len(bars) == 1 and "samples/s" in lines[bars[0] + 1], story
    below = lines[bars[0] :]  # what says how the run goes on may come in the middle of the script's line
    half, = (number for number, line in enumerate(below) if line.startswith("no end yet"))
    assert half < below.index("taken: False") and "and now one" in "".join(below[half:]), story
    assert not any(line.startswith(("body", "thread", "logged")) for line in below), story
    assert "Ctrl-C" not in text, story


def test_where_standard_error_is_no_terminal_there_are_plain_lines(tmp_path):
    with open(tmp_path / "log", "wb") as log:
        text = in_terminal(tmp_path, "break", stderr=log)
    said = (tmp_path / "log").read_text()
    assert "step " in said and "\x1b" not in said and "Ctrl-C" not in said
    assert "\x1b[2K" not in text and "body 2" in text and "taken: False" in text


def test_nothing_that_moves_the_cursor_is_left():
    clean = _terminal.without_moves
    assert clean("10 %\r20 %\r\n\r\n1\r2\r") == "20 %\n\n2"
    assert clean("\x1b[31mred\x1b[0m\x1b[2A up\x1b[K\x1b[?25l\b\a\x0c") == "\x1b[31mred\x1b[0m up"
    assert clean("\x1b]0;title\x07a\x1b]8;;file:x\x1b\\b\x1b7c\x1b(Bd\tä") == "abcd\tä"
