"""Files that may be read while they come: who reads what is not here yet waits for it, and has it sooner."""

import io
import os
import pathlib
from typing import Any, BinaryIO

from motley._content import _kept, _manifest
from motley._content._manifest import Manifest
from motley._errors import Error
from motley._machines import _cache

BUFFER_BYTES = 64 << 10


class Files(os.PathLike[str]):
    """What `motley.files(PLACE, wait=False)` gives: data that are there, or come while they are read. It may be handed to other processes
    of this machine.

    names: of the files, with `/` between their parts.
    """

    def __init__(self, root: str, manifest: Manifest, kept: _kept.Set | None = None):
        self._root, self._manifest, self._kept = root, manifest, kept
        self._first: dict[str, int] = {}  # by name: the number of its first block in the set
        self._of = {file.name: file for file in manifest.files}
        blocks = 0
        for file in manifest.files:
            self._first[file.name] = blocks
            blocks += file.count

    def __reduce__(self) -> Any:
        return _again, (self._root, self._manifest.to_bytes(), self._kept.fetch if self._kept is not None else "")

    @property
    def names(self) -> list[str]:
        return [file.name for file in self._manifest.files]

    def size(self, name: str) -> int:
        """Bytes of the file of that name."""
        return self._file(name).size

    def open(self, name: str) -> BinaryIO:
        """The file of that name, for reading. What is read of it and not here yet is waited for."""
        file = self._file(name)
        if self._kept is None:
            return open(self._own(name), "rb")
        return io.BufferedReader(_Reading(self._kept, file, self._first[name]), BUFFER_BYTES)

    def is_here(self, name: str, first: int = 0, count: int | None = None) -> bool:
        """Whether these bytes of the file of that name can be read without waiting. Where not, they are asked for."""
        file = self._file(name)
        end = file.size if count is None else min(first + count, file.size)
        if self._kept is None or first >= end:
            return True
        blocks = self._first[name] + first // _manifest.BLOCK_BYTES, self._first[name] - (-end // _manifest.BLOCK_BYTES)
        return self._kept.is_here(*blocks)

    def path(self, name: str) -> str:
        """The path of the file of that name, once all of it is here."""
        file = self._file(name)
        if self._kept is None:
            return self._own(name)
        self._kept.wait(self._first[name], file.count)
        return str(self._kept.place(name))

    def __fspath__(self) -> str:
        """The path of all of them, once they are here."""
        if self._kept is None:
            return self._root
        self._kept.wait(0, self._kept.progress.blocks)
        return str(self._kept.path)

    def _file(self, name: str) -> _manifest.File:
        if name not in self._of:
            raise Error(f"{self._manifest.name}: there is no file {name!r} in it", f"its files are {', '.join(self.names[:5])}, …", "usage")
        return self._of[name]

    def _own(self, name: str) -> str:
        return os.path.join(self._root, *name.split("/")) if self._manifest.directory else self._root


def _again(root: str, manifest: bytes, fetch: str) -> Files:
    parsed = _manifest.parse(manifest)
    return Files(root, parsed, _kept.Set(parsed, fetch) if fetch else None)


class _Reading(io.RawIOBase):
    def __init__(self, kept: _kept.Set, file: _manifest.File, first: int):
        self._kept, self._size, self._first, self._at = kept, file.size, first, 0
        self._name = file.name
        self._file: io.FileIO | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        to = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if to < 0:
            raise ValueError(f"expected a place in the file, found {to}")
        self._at = to
        return to

    def tell(self) -> int:
        return self._at

    def readinto(self, into: Any) -> int:
        """Up to the end of the block."""
        count = min(len(into), self._size - self._at, _manifest.BLOCK_BYTES - self._at % _manifest.BLOCK_BYTES)
        if count <= 0:
            return 0
        self._kept.wait(self._first + self._at // _manifest.BLOCK_BYTES, 1)
        if self._file is None:
            self._file = io.FileIO(self._kept.place(self._name))
        self._file.seek(self._at)
        done = self._file.readinto(memoryview(into)[:count])
        if not done:
            raise Error(f"{self._name} ends after {self._at} bytes, expected {self._size}",
                        f"leave {_cache.directory()} alone meanwhile", "io")
        self._at += done
        return done

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        super().close()
