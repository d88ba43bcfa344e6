"""Sets of files that this machine keeps for its user, below data/ of the cache, and the hashes of files that it has read.

    sets/<hash of the manifest>/manifest, tree/ (the files), whole (once all blocks are there), uses/ (held by who uses it), used
    hashes/<hash of a path>              sizes, times and hashes of the files there
    lock                                 held while uses begin and sets are dropped
"""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import stat
from dataclasses import dataclass

from motley._content import _locks, _manifest
from motley._content._manifest import Manifest
from motley._errors import Error
from motley._machines import _cache

LIMIT_BYTES = 20 * 10**9  # of what is kept beside the sets that are in use: the ones that were not used for longest go first
SPARE_BYTES = 256 << 20  # of the disk, that stay free
SETTLED_NS = 2_000_000_000  # younger files may be written again within the same tick of their clock


def directory() -> pathlib.Path:
    """Made where there is none. Errors: it cannot be."""
    place = _cache.directory() / "data"
    try:
        for part in ("sets", "hashes", "origins"):
            (place / part).mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise Error(f"{place}: {error.strerror or error}", "data are kept there: make room, or let this user write there", "io") from None
    return place


def write_whole(path: pathlib.Path, content: bytes) -> None:
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    fresh.write_bytes(content)
    os.replace(fresh, path)


def manifest_of(root: pathlib.Path, name: str) -> Manifest:
    """Of what lies at `root`, which is called `name`. Files that are as they were are not read again. Errors: what cannot be offered."""
    found = _manifest.scan(root, name)
    memo = directory() / "hashes" / _manifest.hash_of(os.path.realpath(root).encode()).hex()
    known = _known(memo)
    files, fresh, read = [], {}, False
    now = max(about.st_mtime_ns for about in found.values())
    clock = directory() / "clock"
    with contextlib.suppress(OSError):
        clock.touch()  # what the disk's own clock says
        now = clock.stat().st_mtime_ns
    is_directory = root.is_dir()
    for each, about in sorted(found.items()):
        place = root / each if is_directory else root
        identity = [*_manifest.identity(about)]
        hashes = known.get(each, ((), b""))[1] if known.get(each, ((), b""))[0] == identity else None
        if hashes is None:
            hashes, read = _manifest.read_hashes(place, about), True
        files.append(_manifest.File(each, about.st_size, hashes))
        if about.st_mtime_ns < now - SETTLED_NS:
            fresh[each] = [identity, hashes.hex()]
    if read:
        with contextlib.suppress(OSError):  # then they are read again
            write_whole(memo, json.dumps(fresh).encode())
    return Manifest(name, is_directory, tuple(files))


def _known(memo: pathlib.Path) -> dict[str, tuple[list[int], bytes]]:
    try:
        found = json.loads(memo.read_bytes())
        return {name: (identity, bytes.fromhex(hashes)) for name, (identity, hashes) in found.items()
                if len(bytes.fromhex(hashes)) == _manifest.HASH_BYTES * -(-identity[0] // _manifest.BLOCK_BYTES)}
    except (OSError, ValueError, TypeError, AttributeError, IndexError):
        return {}


@dataclass(frozen=True)
class BlockPlace:
    """Of a block: in which file it is."""

    path: pathlib.Path
    offset: int
    count: int


class Set:
    """A set of files as this machine keeps it. It is in use, and not dropped, until the process ends."""

    def __init__(self, manifest: Manifest):
        text = manifest.to_bytes()
        self.manifest = manifest
        home = directory()
        self.home = home / "sets" / _manifest.hash_of(text).hex()
        self.tree = self.home / "tree"
        try:
            with _locks.held(home / "lock"):
                (self.home / "uses").mkdir(parents=True, exist_ok=True)
                self._use = _locks.hold(self.home / "uses" / secrets.token_hex(8))
                write_whole(self.home / "manifest", text)
                (self.home / "used").touch()
        except OSError as error:
            raise _disk(self.home, error) from None

    @property
    def path(self) -> pathlib.Path:
        return self.tree / self.manifest.name

    def place(self, name: str) -> pathlib.Path:
        return (self.path if self.manifest.directory else self.tree) / name

    def is_whole(self) -> bool:
        """Whether all files are there, in their sizes. What somebody has taken out is missing again."""
        whole = self.home / "whole"
        if not whole.exists():
            return False
        if all(_size(self.place(file.name)) == file.size for file in self.manifest.files):
            return True
        whole.unlink(missing_ok=True)
        return False

    def begin(self) -> dict[bytes, list[BlockPlace]]:
        """Makes room and the files; the blocks that are missing, by hash: each of their places. Only who holds `fetching()` may.
        Errors: the disk is too small."""
        missing: dict[bytes, list[BlockPlace]] = {}
        try:
            there = sum(_allocated(self.place(file.name)) for file in self.manifest.files)
            _make_room(max(0, self.manifest.size - there), self.manifest.name)
            for file in self.manifest.files:
                place = self.place(file.name)
                place.parent.mkdir(parents=True, exist_ok=True)
                had = _size(place) is not None
                if had:
                    os.chmod(place, 0o600)
                with open(place, "r+b" if had else "xb") as out:
                    out.truncate(file.size)
                    for offset, count, wanted in file.blocks():
                        if had:
                            out.seek(offset)
                        here = had and _manifest.hash_of(out.read(count)) == wanted
                        if not here:
                            missing.setdefault(wanted, []).append(BlockPlace(place, offset, count))
        except OSError as error:
            raise _disk(self.home, error) from None
        return missing

    def put(self, places: list[BlockPlace], content: bytes) -> None:
        """Errors: the disk is full; a content of another size than the list says."""
        if any(place.count != len(content) for place in places):
            raise Error("the head's list has one hash for blocks of two sizes", "install the same version of motley on both machines",
                        "protocol")
        try:
            for place in places:
                with open(place.path, "r+b", buffering=0) as out:
                    out.seek(place.offset)
                    left = memoryview(content)
                    while left:
                        left = left[out.write(left) :]
        except OSError as error:
            raise _disk(place.path, error) from None

    def finish(self) -> None:
        """All blocks were put."""
        try:
            for file in self.manifest.files:
                place = self.place(file.name)
                with open(place, "r+b") as out:
                    os.fsync(out.fileno())  # a name that a crash leaves without its content would be taken for whole
                os.chmod(place, 0o400)
            (self.home / "whole").touch()
        except OSError as error:
            raise _disk(self.home, error) from None

    def fetching(self) -> _locks.Held | None:
        """The right to fill it; None where another process has it."""
        return _locks.hold(self.home / "fetching")


def _size(path: pathlib.Path) -> int | None:
    try:
        about = os.lstat(path)
    except OSError:
        return None
    return about.st_size if stat.S_ISREG(about.st_mode) else None


def _allocated(path: pathlib.Path) -> int:
    try:
        about = os.lstat(path)
    except OSError:
        return 0
    return min(about.st_size, 512 * getattr(about, "st_blocks", 0))


def _disk(place: pathlib.Path, error: OSError) -> Error:
    return Error(f"{place}: {error.strerror or error}", "make room on this machine's disk: what is there already is not fetched again",
                 "io")


def _make_room(wanted: int, name: str) -> None:
    """Drops sets that are not in use, longest unused first, until the rest is within the limit and the disk has room for `wanted` bytes."""
    home = directory()
    with _locks.held(home / "lock"):
        unused = []
        for place in (home / "sets").iterdir():
            if not _in_use(place):
                used, size = (place / "used"), 0
                for below, _, names in os.walk(place):
                    size += sum(_allocated(pathlib.Path(below, each)) for each in names)
                unused.append((used.stat().st_mtime_ns if used.exists() else 0, size, place))
        kept = sum(size for _, size, _ in unused)
        for _, size, place in sorted(unused):
            if kept + wanted <= LIMIT_BYTES and shutil.disk_usage(home).free >= wanted + SPARE_BYTES:
                break
            shutil.rmtree(place, ignore_errors=True)
            kept -= size
        free = shutil.disk_usage(home).free
        if wanted > 0 and free < wanted + SPARE_BYTES:
            room = max(0, free - SPARE_BYTES)
            raise Error(f"{name} needs {wanted / 1e9:.3g} GB more in {home}, and the disk has {room / 1e9:.3g} GB to give",
                        "make room on the disk of this machine, or put the data at the path that the script names", "io")


def _in_use(place: pathlib.Path) -> bool:
    uses = place / "uses"
    for use in uses.iterdir() if uses.is_dir() else ():
        lock = _locks.hold(use)
        if lock is None:
            return True
        lock.close()
        use.unlink(missing_ok=True)
    lock = _locks.hold(place / "fetching") if place.is_dir() else None
    if lock is None:
        return place.is_dir()
    lock.close()
    return False
