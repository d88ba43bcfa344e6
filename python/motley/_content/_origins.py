"""Data that lie elsewhere, as files of this machine: by HTTP in ranges, and from stores that fsspec knows (_stores.py)."""

import contextlib
import http.client
import json
import os
import pathlib
import posixpath
import re
import shutil
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from motley._content import _kept, _locks, _manifest, _stores
from motley._content._stores import RESTARTS_MAX, TRIES_MAX
from motley._errors import Error

RANGE_BYTES = 32 << 20
STALL_S = 30  # nothing came for so long: given up
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        if req.type == "https" and not newurl.lower().startswith("https:"):
            raise urllib.error.URLError(f"it leads from https to {newurl}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def is_address(place: str) -> bool:
    return ADDRESS.match(place) is not None


def bring(place: str) -> str:
    """The path of `place`, which is fetched where it is no path. Errors: it is not there, or what fetches it is not installed."""
    if not is_address(place):
        return place
    kind, _, _ = place.partition("://")
    if kind == "file":
        return urllib.request.url2pathname(urllib.parse.urlsplit(place).path)
    home = _kept.directory() / "origins" / _manifest.hash_of(place.encode()).hex()
    home.mkdir(exist_ok=True)
    name = posixpath.basename(urllib.parse.unquote(urllib.parse.urlsplit(place).path).rstrip("/")) or "data"
    _manifest.check_names([name])
    try:
        with _locks.held(home / "lock"):
            if kind.lower() in ("http", "https"):
                return str(_Download(place, home, name).run())
            return str(_stores.Store(place, kind.lower(), home, name).bring())
    except OSError as error:
        raise Error(f"{place}: {error.strerror or error}", "look at the network and the disk of the head", "io") from None


class _Download:
    """One file in ranges of one version: what is there already is kept, and a file that has become another begins anew."""

    def __init__(self, url: str, home: pathlib.Path, name: str):
        self._url, self._home, self._name = url, home, name
        self._part, self._about = home / "part", home / "about.json"
        self._version, self._size = "", -1  # of the file there: ETag or Last-Modified; its size, where it is known
        self._restarts = 0

    def run(self) -> pathlib.Path:
        self._remember()
        place, tries = self._home / "tree" / self._name, 0
        while True:
            had = _size(self._part)
            try:
                if self._range(place):
                    return place
                tries = 0
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, urllib.error.HTTPError) and error.code < 500 and error.code not in (408, 429):
                    raise Error(f"{self._url}: HTTP {error.code} {error.reason}", "check the address", "network") from None
                tries = tries + 1 if _size(self._part) == had else 0
                if tries >= TRIES_MAX:
                    why = getattr(error, "reason", None) or str(error) or type(error).__name__
                    raise Error(f"{self._url}: {why}, {tries} times in a row", "check the network of the head", "network") from None

    def _remember(self) -> None:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            about = json.loads(self._about.read_bytes())
            self._version, self._size = str(about["version"]), int(about["size"])

    def _range(self, place: pathlib.Path) -> bool:
        """Asks for what comes next, or whether what is there is still the same; true when it is all there."""
        whole = place.is_file() and self._version != "" and _size(place) == self._size
        begins = 0 if whole or not self._version else _size(self._part)
        if not whole and self._size == begins > 0:
            return self._finish(place)
        headers = {"Range": f"bytes={begins}-{begins + (0 if whole else RANGE_BYTES - 1)}", "Accept-Encoding": "identity"}
        if begins:
            headers["If-Range"] = self._version
        request = urllib.request.Request(self._url, headers=headers)
        try:
            with urllib.request.build_opener(Redirects).open(request, timeout=STALL_S) as answer:
                return self._take(answer, begins, whole, place)
        except urllib.error.HTTPError as error:
            if error.code == 416 and error.headers.get("Content-Range", "").strip() == "bytes */0":
                self._begin(error.headers, 0)
                return self._finish(place)
            raise

    def _take(self, answer: Any, begins: int, whole: bool, place: pathlib.Path) -> bool:
        found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", answer.headers.get("Content-Range", "").strip())
        if answer.status == 206 and found is None:
            raise Error(f"{self._url}: the server answered with a part and does not say which", "put the file elsewhere", "network")
        size = int(found[3]) if found else int(answer.headers.get("Content-Length") or -1)
        version = _version(answer.headers)
        same = version != "" and version == self._version and size == self._size
        if whole and same:
            return True
        if whole or (begins and not (same and found and int(found[1]) == begins)):
            self._restarts += 1
            if self._restarts > RESTARTS_MAX:
                raise Error(f"{self._url} became another file {self._restarts} times while it was fetched", "fetch one that stays",
                            "network")
            self._forget()
            return False
        if not begins:
            self._begin(answer.headers, size)
        last = self._write(answer, begins, int(found[2]) + 1 if found else size)
        if self._size < 0 or not version:  # by the end of the answer, and in one piece: nothing to hold on to
            if found and last < int(found[3]):
                raise Error(f"{self._url}: the server gives neither ETag nor Last-Modified, so that its parts may be of different files",
                            "put the file elsewhere", "network")
            self._size = last
        return last == self._size and self._finish(place)

    def _begin(self, headers: Any, size: int) -> None:
        self._part.unlink(missing_ok=True)
        self._part.touch()
        self._version, self._size = _version(headers), size
        _kept.write_whole(self._about, json.dumps({"version": self._version, "size": size}).encode())

    def _forget(self) -> None:
        self._version, self._size = "", -1
        for left in (self._part, self._about):
            left.unlink(missing_ok=True)
        shutil.rmtree(self._home / "tree", ignore_errors=True)

    def _write(self, answer: Any, begins: int, ends: int) -> int:
        with open(self._part, "r+b") as out:
            out.seek(begins)
            out.truncate()
            while piece := answer.read(1 << 20):
                if 0 <= ends < out.tell() + len(piece):
                    raise Error(f"{self._url}: the server sends more than it said", "put the file elsewhere", "network")
                out.write(piece)
            if out.tell() < ends:
                raise ConnectionResetError(f"the answer ended after {out.tell()} of {ends} bytes")
            return out.tell()

    def _finish(self, place: pathlib.Path) -> bool:
        place.parent.mkdir(exist_ok=True)
        os.replace(self._part, place)
        return True


def _version(headers: Any) -> str:
    """By what an answer is known to be of the same file; a weak ETag says nothing of its bytes."""
    tag = headers.get("ETag", "")
    return tag if tag and not tag.startswith("W/") else headers.get("Last-Modified", "")


def _size(path: pathlib.Path) -> int:
    return path.stat().st_size if path.is_file() else 0
