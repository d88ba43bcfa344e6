"""Data in a store that fsspec knows (S3 and what speaks like it, Google, Azure, …), as files of this machine.

Each file comes in ranges, and belongs to what the store listed: where it says something else once all are here, what changed comes again.
"""

import json
import pathlib
import posixpath
from typing import Any

from motley._content import _kept, _manifest
from motley._errors import Error

RANGE_BYTES = 32 << 20
TRIES_MAX = 5  # in a row that brought nothing
RESTARTS_MAX = 3  # because what lies there became something else
HINTS = {"s3": "pip install s3fs", "s3a": "pip install s3fs", "gs": "pip install gcsfs", "gcs": "pip install gcsfs",
         "az": "pip install adlfs", "abfs": "pip install adlfs", "hf": "pip install huggingface_hub"}
VERSIONS = ("ETag", "etag", "md5Hash", "LastModified", "mtime", "created")  # what these libraries call it


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
            for each, about in listed.items():
                if not (base / each).is_file():
                    self._fetch(each, about, base / each, single)
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

    def _fetch(self, each: str, about: dict[str, Any], local: pathlib.Path, single: bool) -> None:
        remote = self._root if single else posixpath.join(self._root, each)
        version, size = _version(about), about["size"]
        if self._known.get("\0part") != [each, version] or not self._part.is_file():
            self._part.write_bytes(b"")
            self._remember(**{"\0part": [each, version]})
        tries = 0
        while (had := self._part.stat().st_size) != size:
            try:
                with open(self._part, "ab") as out:
                    out.write(self._range(remote, had, size))
                tries = 0
            except OSError as error:
                if error.filename == str(self._part):
                    raise
                tries = self._failed(each, error, tries)
            except Exception as error:
                tries = self._failed(each, error, tries)
            if size is None:
                break
        local.parent.mkdir(parents=True, exist_ok=True)
        self._part.replace(local)
        self._remember(**{each: version, "\0part": None})

    def _range(self, remote: str, first: int, size: int | None) -> bytes:
        if size is None:
            return self._system.cat_file(remote)
        end = min(first + RANGE_BYTES, size)
        got = self._system.cat_file(remote, start=first, end=end)
        if len(got) != end - first:
            raise ConnectionError(f"{len(got)} bytes came of {end - first}")
        return got

    def _failed(self, each: str, error: Exception, tries: int) -> int:
        if tries + 1 >= TRIES_MAX:
            raise Error(f"{self._place}: {each}: {error or type(error).__name__}, {TRIES_MAX} times in a row",
                        "try again: what is there already is not fetched again", "network") from None
        return tries + 1

    def _remember(self, **known: Any) -> None:
        self._known |= known
        _kept.write_whole(self._memo, json.dumps(self._known).encode())


def _told(about: dict[str, Any]) -> dict[str, Any]:
    return {"size": about.get("size"), "version": next((str(about[key]) for key in VERSIONS if about.get(key)), "")}


def _version(about: dict[str, Any]) -> str:
    return f"{about['size']} {about['version']}"
