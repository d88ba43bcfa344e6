"""Files that one process at a time holds: until it lets go, or ends."""

import contextlib
import os
import pathlib
from collections.abc import Iterator

from motley._machines import _system


class Held:
    """A file that this process holds, until close(). Children that it forks hold it too."""

    def __init__(self, descriptor: int):
        self._descriptor: int | None = descriptor

    def __enter__(self) -> "Held":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def hold(path: pathlib.Path, wait: bool = False) -> Held | None:
    """The file, which is made where there is none; None where another holds it and this is not to wait."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    if _system.lock(descriptor, wait):
        return Held(descriptor)
    os.close(descriptor)
    return None


@contextlib.contextmanager
def held(path: pathlib.Path) -> Iterator[None]:
    """Waits for the file and holds it meanwhile."""
    lock = hold(path, wait=True)
    assert lock is not None
    try:
        yield
    finally:
        lock.close()
