"""Which blocks of a set are here, in a file that all processes of this machine see: who fetches them, and who reads meanwhile.

One byte for each block, in the order of the manifest, and one at the end for whether the fetch has failed.
"""

import mmap
import os
import pathlib

MISSING, WANTED, HERE = 0, 1, 2


class Progress:
    """Thread-safe as far as single bytes are. One who reads may set MISSING to WANTED at the moment at which the block comes: who fetches
    knows better, and says HERE again."""

    def __init__(self, path: pathlib.Path, blocks: int):
        self.blocks = blocks
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o600)
        try:
            if os.fstat(descriptor).st_size != blocks + 1:
                os.truncate(descriptor, blocks + 1)
            self._bytes = mmap.mmap(descriptor, blocks + 1)
        finally:
            os.close(descriptor)

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

    @property
    def failed(self) -> bool:
        return self._bytes[self.blocks] != 0

    @failed.setter
    def failed(self, failed: bool) -> None:
        self._bytes[self.blocks] = failed
