"""Data in a store that fsspec knows (S3 and what speaks like it, Google, Azure, …), as files of this machine.

Files come in ranges, of which some are asked for at once where the library can: one connection to such a store seldom fills a link. They
belong to what the store listed: where it says something else once all are here, what changed comes again.
"""

import asyncio
import collections
import concurrent.futures
import itertools
import json
import pathlib
import posixpath
from collections.abc import Iterator
from typing import Any, NamedTuple

from motley._content import _kept, _manifest
from motley._errors import Error

RANGE_BYTES = 16 << 20
AT_ONCE = 4  # ranges that are asked for; they are in memory, and one more
WAIT_S = 1  # after which a person who interrupts is heard, also on Windows
TRIES_MAX = 5  # in a row that brought nothing
RESTARTS_MAX = 3  # because what lies there became something else
HINTS = {"s3": "pip install s3fs", "s3a": "pip install s3fs", "gs": "pip install gcsfs", "gcs": "pip install gcsfs",
         "az": "pip install adlfs", "abfs": "pip install adlfs", "hf": "pip install huggingface_hub"}
VERSIONS = ("ETag", "etag", "md5Hash", "LastModified", "mtime", "created")  # what these libraries call it


class Range(NamedTuple):
    """Of the file `each`; end: None where the store does not say how long that is."""

    each: str
    first: int
    end: int | None


class Store:
    """What lies at `place`, below `home`; the files that are there in the same version are not fetched again."""

    def __init__(self, place: str, kind: str, home: pathlib.Path, name: str):
        self._place, self._name, self._home = place, name, home
        hint = HINTS.get(kind, "pip install fsspec and its part for this address")
        try:
            import fsspec

            self._system, self._root = fsspec.core.url_to_fs(place)
        except (ImportError, ValueError) as error:
            raise Error(f"{place} needs fsspec for {kind}:// ({error})", hint, "usage") from None
        self._memo = home / "about.json"  # by name, the version of the file that is here; of `part` its name and version
        self._part = home / "part"
        try:
            self._known: dict[str, Any] = json.loads(self._memo.read_bytes())
        except (OSError, ValueError):
            self._known = {}

    def bring(self) -> pathlib.Path:
        listed, single = self._list()
        for _ in range(RESTARTS_MAX + 1):
            tree = self._home / "tree"
            base = tree / ("" if single else self._name)
            for old in [path for path in tree.rglob("*") if path.is_file()]:
                each = old.relative_to(base).as_posix() if old.is_relative_to(base) else ""
                if each not in listed or self._known.get(each) != _version(listed[each]):
                    old.unlink()
            self._fetch({each: about for each, about in listed.items() if not (base / each).is_file()}, base, single)
            again = self._list()
            if again == (listed, single):
                return base / self._name if single else base
            listed, single = again
        raise Error(f"{self._place} changed {RESTARTS_MAX + 1} times while it was fetched", "fetch what stays as it is", "network")

    def _list(self) -> tuple[dict[str, dict[str, Any]], bool]:
        """By name, what the store says of each file, and whether the place is one."""
        try:
            self._system.invalidate_cache()
            single = bool(self._system.isfile(self._root))
            found = {self._root: self._system.info(self._root)} if single else self._system.find(self._root, detail=True)
        except Exception as error:  # each of these libraries has its own
            raise Error(f"{self._place}: {error}", "check the address, and what this user may read there", "network") from None
        files = {self._name if single else posixpath.relpath(path, self._root): _told(about) for path, about in found.items()}
        if not files:
            raise Error(f"{self._place}: there is no file in it", "check the address")
        _manifest.check_names(files)
        return files, single

    def _fetch(self, missing: dict[str, dict[str, Any]], base: pathlib.Path, single: bool) -> None:
        """Into `base`, one after the other; a file of which a part is here first."""
        begun, had = self._begun(missing)
        order = sorted(missing, key=lambda each: each != begun)
        sizes = itertools.chain((RANGE_BYTES * part // AT_ONCE for part in range(1, AT_ONCE)), itertools.repeat(RANGE_BYTES))
        ranges = (wanted for each in order for wanted in _ranges(each, missing[each]["size"], had if each == begun else 0, sizes))
        asked: collections.deque[tuple[Range, str, Any]] = collections.deque()
        try:
            self._ask_for(ranges, asked, single)
            while asked:
                wanted, remote, future = asked.popleft()
                content = self._content(remote, wanted, future)
                self._ask_for(ranges, asked, single)  # and the link is busy while this is written
                version = _version(missing[wanted.each])
                self._put(wanted, version, content)
                if wanted.end == missing[wanted.each]["size"]:
                    self._finish(wanted.each, version, base / wanted.each)
        finally:
            for _, _, future in asked:
                if future is not None:
                    future.cancel()

    def _begun(self, missing: dict[str, dict[str, Any]]) -> tuple[str, int]:
        """The file of which a part is here from an earlier fetch, and the bytes of that."""
        each, version = self._known.get("\0part") or ("", "")
        if each not in missing or version != _version(missing[each]) or not self._part.is_file():
            return "", 0
        had = self._part.stat().st_size
        return each, had if had <= (missing[each]["size"] or 0) else 0

    def _ask_for(self, ranges: Iterator[Range], asked: collections.deque[tuple[Range, str, Any]], single: bool) -> None:
        for wanted in itertools.islice(ranges, AT_ONCE - len(asked)):
            remote = self._root if single else posixpath.join(self._root, wanted.each)
            asked.append((wanted, remote, self._ask(remote, wanted)))

    def _ask(self, remote: str, wanted: Range) -> Any:
        """Begins to fetch; None where the library answers one question after the other."""
        if wanted.first == wanted.end or not getattr(self._system, "async_impl", False):
            return None
        return asyncio.run_coroutine_threadsafe(self._system._cat_file(remote, **_limits(wanted)), self._system.loop)

    def _content(self, remote: str, wanted: Range, future: Any) -> bytes:
        """Of the range that was asked for; of another question for it, where that failed."""
        if wanted.first == wanted.end:
            return b""
        tries = 0
        while True:
            try:
                if future is None:
                    got = self._system.cat_file(remote, **_limits(wanted))
                else:
                    while not concurrent.futures.wait([future], WAIT_S).done:
                        pass
                    got = future.result()
                if wanted.end is not None and len(got) != wanted.end - wanted.first:
                    raise ConnectionError(f"{len(got)} bytes came of {wanted.end - wanted.first}")
                return got
            except Exception as error:  # each of these libraries has its own
                tries = self._failed(wanted.each, error, tries)
            future = self._ask(remote, wanted)

    def _put(self, wanted: Range, version: str, content: bytes) -> None:
        if wanted.first == 0:
            self._part.write_bytes(b"")
            self._remember(**{"\0part": [wanted.each, version]})
        with open(self._part, "ab") as out:
            out.write(content)

    def _finish(self, each: str, version: str, local: pathlib.Path) -> None:
        local.parent.mkdir(parents=True, exist_ok=True)
        self._part.replace(local)
        self._remember(**{each: version, "\0part": None})

    def _failed(self, each: str, error: Exception, tries: int) -> int:
        if tries + 1 >= TRIES_MAX:
            raise Error(f"{self._place}: {each}: {error or type(error).__name__}, {TRIES_MAX} times in a row",
                        "try again: what is there already is not fetched again", "network") from None
        return tries + 1

    def _remember(self, **known: Any) -> None:
        self._known |= known
        _kept.write_whole(self._memo, json.dumps(self._known).encode())


def _ranges(each: str, size: int | None, first: int, sizes: Iterator[int]) -> Iterator[Range]:
    """What is missing of a file from `first` on; of one that has all or nothing, a range of nothing. The first ones of a fetch are
    smaller, so that those that go on at once do not end at once."""
    if size is None:
        yield Range(each, 0, None)
        return
    while True:
        end = min(first + next(sizes), size) if first < size else size
        yield Range(each, first, end)
        if end == size:
            return
        first = end


def _limits(wanted: Range) -> dict[str, int]:
    return {} if wanted.end is None else {"start": wanted.first, "end": wanted.end}


def _told(about: dict[str, Any]) -> dict[str, Any]:
    return {"size": about.get("size"), "version": next((str(about[key]) for key in VERSIONS if about.get(key)), "")}


def _version(about: dict[str, Any]) -> str:
    return f"{about['size']} {about['version']}"
