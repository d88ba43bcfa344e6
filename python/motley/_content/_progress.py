"""Which blocks of a set are here, in a file that all processes of this machine see: who fetches them, and who reads meanwhile; and why
one of them gave up its fetch.
"""

import errno
import json
import mmap
import os
import pathlib

from motley._errors import Error

MISSING, WANTED, HERE = 0, 1, 2
TROUBLE_BYTES, MESSAGE_MAX, HINT_MAX, CODE_MAX = 8192, 800, 400, 50  # a character takes up to six bytes


def _mapped(path: pathlib.Path, size: int, whole: bool = False) -> mmap.mmap:
    """The file's bytes, zeros where it is new. `whole`: it takes its room on the disk at once."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o600)
    try:
        if os.fstat(descriptor).st_size != size:
            os.truncate(descriptor, 0 if whole else size)
            if whole and os.write(descriptor, bytes(size)) < size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)


class Progress:
    """One byte for each block, in the order of the manifest. Thread-safe as far as single bytes are. One who reads may set MISSING to
    WANTED at the moment at which the block comes: who fetches knows better, and says HERE again."""

    def __init__(self, path: pathlib.Path, blocks: int):
        self.blocks = blocks
        self._bytes = _mapped(path, max(blocks, 1))

    def is_here(self, block: int) -> bool:
        return self._bytes[block] == HERE

    def set_here(self, block: int, here: bool = True) -> None:
        self._bytes[block] = HERE if here else MISSING

    def want(self, block: int) -> None:
        if self._bytes[block] == MISSING:
            self._bytes[block] = WANTED

    def wanted(self, begin: int) -> int | None:
        """The first block from there on that somebody waits for."""
        found = self._bytes.find(bytes([WANTED]), begin, self.blocks)
        return found if found >= 0 else None

    def wishes(self) -> int:
        return self._bytes[: self.blocks].count(WANTED)

    def all_here(self, first: int, end: int) -> bool:
        return self._bytes[first:end].count(HERE) == end - first


class Trouble:
    """Why a process gave its fetch up, for it and for those that it handed its files to. The disk may be full by then."""

    def __init__(self, path: pathlib.Path):
        self._bytes = _mapped(path, TROUBLE_BYTES, whole=True)

    def say(self, error: Error) -> None:
        text = json.dumps([str(error.args[0])[:MESSAGE_MAX], error.hint[:HINT_MAX], error.code[:CODE_MAX]], ensure_ascii=False)
        content = text.encode(errors="replace")
        self._bytes[1 : 1 + len(content)] = content
        self._bytes[0] = 1

    def heard(self) -> Error | None:
        if self._bytes[0] == 0:
            return None
        message, hint, code = map(str, json.loads(self._bytes[1:].rstrip(b"\0")))
        return Error(message, hint, code)
