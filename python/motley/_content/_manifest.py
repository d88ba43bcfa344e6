"""What a set of files is: names, sizes, and the SHA-256 of each block of 1 MiB. A manifest is that as bytes, and known by its own hash."""

import hashlib
import json
import os
import pathlib
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from motley._errors import Error

BLOCK_BYTES = 1 << 20
HASH_BYTES = 32
MANIFEST_BYTES_MAX = 64 << 20  # as in src/wire/limits.h
SET_BYTES_MAX = 1 << 50
NAME_BYTES_MAX = 1024
PART_BYTES_MAX = 255
DEPTH_MAX = 32
OF_WINDOWS = {"con", "prn", "aux", "nul", "conin$", "conout$", *(f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789¹²³")}
NOT_IN_NAMES = set('\\:<>"|?*')


@dataclass(frozen=True)
class File:
    name: str  # below the set's root, with / between its parts
    size: int
    hashes: bytes  # of its blocks, one after the other

    @property
    def count(self) -> int:
        """Of its blocks."""
        return len(self.hashes) // HASH_BYTES

    def blocks(self) -> Iterator[tuple[int, int, bytes]]:
        """(offset, bytes, hash) of each."""
        for number in range(self.count):
            offset = number * BLOCK_BYTES
            yield offset, min(BLOCK_BYTES, self.size - offset), self.hashes[number * HASH_BYTES : (number + 1) * HASH_BYTES]


@dataclass(frozen=True)
class Manifest:
    name: str  # of the file, or of the directory
    directory: bool
    files: tuple[File, ...]  # by name

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def to_bytes(self) -> bytes:
        """Errors: it is too long."""
        files = [[file.name, file.size, file.hashes.hex()] for file in self.files]
        text = json.dumps({"motley": 1, "name": self.name, "directory": self.directory, "files": files}, ensure_ascii=False,
                          separators=(",", ":")).encode()
        if len(text) > MANIFEST_BYTES_MAX:
            raise Error(f"{self.name}: {len(self.files)} files with {self.size / 1e9:.0f} GB are too many: their list has "
                        f"{len(text) >> 20} MiB, and may have {MANIFEST_BYTES_MAX >> 20}",
                        "put small files into shards or archives, or call motley.files() for parts")
        return text


def hash_of(content: bytes | memoryview) -> bytes:
    return hashlib.sha256(content).digest()


def parse(text: bytes) -> Manifest:
    """Of bytes from elsewhere. Errors: anything that to_bytes() would not write."""
    wrong = Error("what the head sent is no list of files", "install the same version of motley on both machines", "protocol")
    try:
        found = json.loads(text)
        name, directory, listed = found["name"], found["directory"], found["files"]
        files = tuple(File(each, size, bytes.fromhex(hashes)) for each, size, hashes in listed)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise wrong from None
    if type(directory) is not bool or not isinstance(name, str) or not files or found.get("motley") != 1:
        raise wrong
    for file in files:
        if not isinstance(file.name, str) or type(file.size) is not int or not 0 <= file.size <= SET_BYTES_MAX:
            raise wrong
        if len(file.hashes) != HASH_BYTES * -(-file.size // BLOCK_BYTES):
            raise wrong
    check_names([name])
    check_names(file.name for file in files)
    manifest = Manifest(name, directory, files)
    whole = directory or (len(files) == 1 and files[0].name == name)
    if "/" in name or not whole or manifest.size > SET_BYTES_MAX or manifest.to_bytes() != text:
        raise wrong
    return manifest


def check_names(names: Iterable[str]) -> None:
    """Errors: one that another system cannot have, or leads elsewhere, or two that are one where case does not count."""
    seen: dict[str, tuple[str, bool]] = {}  # by folded path: what stands there, and whether that is a file
    for name in names:
        parts = name.split("/")
        if wrong := next(filter(None, map(_fault, parts)), "") or _length(name, parts):
            raise Error(f"the name {ascii(name)} {wrong}", "rename it: a set of files has to fit on every system")
        for end in range(1, len(parts) + 1):
            here, is_file = "/".join(parts[:end]), end == len(parts)
            other = seen.get(_folded(here))
            if other is None:
                seen[_folded(here)] = here, is_file
            elif is_file or other != (here, False):
                raise Error(f"the names {ascii(other[0])} and {ascii(here)} are the same where upper and lower case do not count",
                            "rename one: a set of files has to fit on every system")


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _length(name: str, parts: list[str]) -> str:
    return "is too long" if len(parts) > DEPTH_MAX or len(name.encode()) > NAME_BYTES_MAX else ""


def _fault(part: str) -> str:
    if part in ("", ".", ".."):
        return "leads elsewhere"
    try:
        size = len(part.encode())
    except UnicodeEncodeError:
        return "is no text"
    if size > PART_BYTES_MAX:
        return "is too long"
    if not part.isprintable() or NOT_IN_NAMES & set(part):
        return "has a character that names on Windows cannot have"
    if part[-1] in ". " or part.split(".")[0].rstrip().lower() in OF_WINDOWS:
        return "cannot be a name on Windows"
    return ""


def scan(root: pathlib.Path, name: str) -> dict[str, os.stat_result]:
    """By name, what a file or a directory holds. Errors: anything but files and directories in it; names as above. The root itself, which
    is called `name` elsewhere, may be a link: what lies behind it counts."""
    try:
        about = os.stat(root)
        if stat.S_ISREG(about.st_mode):
            found = {name: about}
        elif stat.S_ISDIR(about.st_mode):
            found = dict(_below(root, ""))
        else:
            raise Error(f"{root}: expected a file or a directory, found {_kind(about.st_mode)}", "offer what lies on a disk")
    except OSError as error:
        raise Error(f"{root}: {error.strerror or error}", "check the path on the head", "io") from None
    if not found:
        raise Error(f"{root}: there is no file in it", "check the path on the head")
    check_names([name])
    check_names(found)
    return found


def _below(directory: pathlib.Path, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(directory) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            # On Windows an entry's own stat() has no inode.
            about = os.lstat(entry.path)
            if stat.S_ISDIR(about.st_mode):
                yield from _below(pathlib.Path(entry.path), f"{prefix}{entry.name}/")
            elif stat.S_ISREG(about.st_mode):
                yield prefix + entry.name, about
            else:
                raise Error(f"{entry.path}: expected files and directories, found {_kind(about.st_mode)}",
                            "what machines that join get is files alone: put a copy in its place, or leave it out")


def _kind(mode: int) -> str:
    kinds = [(stat.S_ISLNK, "a symbolic link"), (stat.S_ISSOCK, "a socket"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISBLK, "a device"),
             (stat.S_ISCHR, "a device")]
    return next((name for test, name in kinds if test(mode)), "something else")


def identity(about: os.stat_result) -> tuple[int, int, int]:
    """By what a file that was read before is known again."""
    return about.st_size, about.st_mtime_ns, about.st_ino


def read_hashes(path: pathlib.Path, about: os.stat_result) -> bytes:
    """Of the blocks of a file, which is what `about` says. Errors: it is another by now, or changes meanwhile."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    changed = Error(f"{path} changed while it was read", "offer files that stay as they are")
    try:
        with open(os.open(path, flags), "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode) or identity(os.fstat(file.fileno())) != identity(about):
                raise changed
            hashes, left, block = bytearray(), about.st_size, bytearray(BLOCK_BYTES)
            while left:
                view = memoryview(block)[: min(left, BLOCK_BYTES)]
                done = 0
                while done < len(view):
                    count = file.readinto(view[done:])
                    if not count:
                        raise changed
                    done += count
                hashes += hash_of(view)
                left -= len(view)
            if identity(os.fstat(file.fileno())) != identity(about):
                raise changed
    except OSError as error:
        raise Error(f"{path}: {error.strerror or error}", "check the disk and who may read it", "io") from None
    return bytes(hashes)
