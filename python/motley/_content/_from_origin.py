"""Blocks of a file from the http(s):// address that the script, or the run's data.uri, names: one more source beside
the head (motley join --origin).

The address is asked for ranges of the file, and believed nothing: what comes is checked by the head's hashes. Where it leads is looked at
before anything is sent there: to hosts that the joining user named, or to public addresses where the user said so.
"""

import http.client
import ipaddress
import re
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from motley._errors import Error

STALL_SECONDS = 10.0  # nothing came for so long
TRIES_MAX = 5  # in a row that brought nothing
PAUSE_S = (0.0, 0.2, 0.5, 1.0)  # before each of the others
REDIRECTS_MAX = 5
TOGETHER = 8  # blocks in one question
PORTS = {"http": 80, "https": 443}
REDIRECTS = (301, 302, 303, 307, 308)
NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Link(Protocol):
    """What hears of the blocks."""

    def origin_opens(self) -> None: ...
    def origin_brings(self, hash: bytes, content: bytes) -> None: ...
    def origin_ends(self, why: str) -> None: ...


class Unusable(Exception):
    """Another try ends in the same way."""


class _Again(Exception):
    """Another try may not."""


@dataclass(frozen=True)
class Address:
    scheme: str
    host: str
    port: int
    target: str  # path and query
    url: str

    @property
    def named(self) -> str:
        """As a server expects it in Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def parse(url: str, base: str = "") -> Address:
    """Errors: Unusable."""
    try:
        url = urllib.parse.urljoin(base, url)
        parts = urllib.parse.urlsplit(url)
        scheme, host, port = parts.scheme.lower(), parts.hostname, parts.port
    except ValueError:
        raise Unusable("it is no address") from None
    if scheme not in PORTS or not host or not re.fullmatch(r"[!-~]+", url):
        raise Unusable("it is no address that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise Unusable("it has a user's name in it, which only the head sends")
    return Address(scheme, host, port or PORTS[scheme], (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), url)


@dataclass(frozen=True)
class Consent:
    """Whom this machine asks: what its user said with --origin."""

    public: bool
    hosts: frozenset[tuple[str, str, int]]

    @staticmethod
    def of(words: Sequence[str]) -> "Consent":
        """Errors: Unusable."""
        named = [parse(word) for word in words if word != "public"]
        return Consent("public" in words, frozenset((each.scheme, each.host, each.port) for each in named))

    def resolve(self, address: Address) -> list[str]:
        """Numeric addresses of a host that may be asked. Errors: Unusable, it may not; OSError, it is not known."""
        named = (address.scheme, address.host, address.port) in self.hosts
        if not named and not self.public:
            raise Unusable(f"it leads to {address.scheme}://{address.named}, which --origin does not name")
        try:
            found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        except UnicodeError:
            raise Unusable(f"{address.host} is no name of a machine") from None
        numeric = list(dict.fromkeys(str(each[4][0]) for each in found))
        if not named and (private := next((each for each in numeric if not is_public(each)), "")):
            raise Unusable(f"{address.host} is {private}, which is no public address")
        return numeric


def is_public(numeric: str) -> bool:
    """Addresses of IPv4 that stand in ones of IPv6 count as what they are."""
    try:
        address = ipaddress.ip_address(numeric)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if address in NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            address = inner
    return address.is_global and not address.is_multicast


@dataclass(frozen=True)
class Block:
    hash: bytes
    offset: int
    count: int


class FromOrigin(threading.Thread):
    """Brings `link` the blocks that it is asked for, until close(), or one does not come. size: of the whole file."""

    def __init__(self, url: str, consent: Consent, size: int, link: Link):
        super().__init__(name="motley: origin", daemon=True)
        self._url, self._consent, self._size, self._link = url, consent, size, link
        self._changed, self._closed = threading.Condition(), threading.Event()
        self._wanted: dict[bytes, Block] = {}
        self._hurried: list[bytes] = []  # of these the newest comes first
        self._going = set[bytes]()  # in the question that is open
        self._connection: http.client.HTTPConnection | None = None
        self._to = ("", "", 0)  # where it leads
        self._at: Address | None = None  # where the address has led
        self._version = ""  # the strong ETag of the file there
        self._tries = 0  # that brought nothing

    def ask(self, block: Block, waited_for: bool) -> None:
        """What is waited for goes before all else."""
        with self._changed:
            if block.hash in self._going:
                return
            self._wanted[block.hash] = block
            if waited_for:
                self._hurried.append(block.hash)
            self._changed.notify()

    def close(self) -> None:
        self._closed.set()
        with self._changed:
            self._changed.notify()

    def run(self) -> None:
        try:
            left, opened = list[Block](), False
            while not self._closed.is_set():
                try:
                    if not opened:
                        self._look()
                        self._link.origin_opens()
                        opened = True
                    left = left or self._following()
                    self._bring(left)
                except (OSError, http.client.HTTPException, _Again) as error:
                    self._drop()
                    self._tries += 1
                    if self._tries >= TRIES_MAX:
                        raise Unusable(f"{error or type(error).__name__}, {TRIES_MAX} times in a row") from None
                    self._closed.wait(PAUSE_S[self._tries - 1])
        except Exception as error:
            self._link.origin_ends(printable(str(error) if isinstance(error, Unusable) else f"{type(error).__name__}: {error}"))
        finally:
            self._drop()

    def _following(self) -> list[Block]:
        """What is asked for next, one behind the other in the file; nothing once it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._wanted or self._closed.is_set())
            if self._closed.is_set():
                return []
            while self._hurried and self._hurried[-1] not in self._wanted:
                self._hurried.pop()
            block: Block | None = self._wanted[self._hurried[-1] if self._hurried else next(iter(self._wanted))]
            by_offset = {each.offset: each for each in self._wanted.values()}
            together: list[Block] = []
            while block is not None and len(together) < TOGETHER:
                together.append(block)
                del self._wanted[block.hash]
                block = by_offset.get(block.offset + block.count)
            self._going = {each.hash for each in together}
            return together

    def _bring(self, left: list[Block]) -> None:
        """What came is taken out of it."""
        if not left:
            return
        answer = self._answer(left[0].offset, left[-1].offset + left[-1].count)
        while left and not self._closed.is_set():
            content = answer.read(left[0].count)
            if len(content) < left[0].count:
                raise _Again("the answer ended before its end")
            self._link.origin_brings(left[0].hash, content)
            self._tries = 0
            with self._changed:
                self._going.discard(left.pop(0).hash)
        if not left:
            _end(answer)

    def _look(self) -> None:
        """Whether it has that file, in ranges."""
        answer = self._answer(0, 1)
        if len(answer.read(1)) < 1:
            raise _Again("the answer was empty")
        _end(answer)

    def _answer(self, first: int, end: int) -> http.client.HTTPResponse:
        """The server's, of the bytes [first, end) of the file. Errors: Unusable; OSError, HTTPException and _Again may end otherwise."""
        where = self._at or parse(self._url)
        for _ in range(REDIRECTS_MAX + 1):
            connection = self._opened(where)
            headers = {"Host": where.named, "User-Agent": "motley", "Accept-Encoding": "identity", "Range": f"bytes={first}-{end - 1}"}
            if self._version:
                headers["If-Range"] = self._version
            connection.request("GET", where.target, headers=headers)
            answer = connection.getresponse()
            if answer.status not in REDIRECTS:
                self._check(answer, where, first, end)
                return answer
            self._drop()
            following = parse(answer.headers.get("Location", ""), where.url)
            if where.scheme == "https" and following.scheme != "https":
                raise Unusable(f"it leads from https to http, at {following.named}")
            where = following
        raise Unusable(f"it leads elsewhere more than {REDIRECTS_MAX} times")

    def _check(self, answer: http.client.HTTPResponse, where: Address, first: int, end: int) -> None:
        status, led = answer.status, self._at is not None
        self._at = where
        if status in (408, 429) or status >= 500 or (status >= 400 and led):
            self._at = None  # where it leads may be good for a while only
            raise _Again(f"HTTP {status}")
        if status == 200:
            raise Unusable("the file there is another one by now" if self._version else "the server there gives no parts of a file")
        if status != 206:
            raise Unusable(f"HTTP {status}")
        found = re.fullmatch(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})", answer.headers.get("Content-Range", "").strip())
        if found is None or (int(found[1]), int(found[2]) + 1) != (first, end):
            raise Unusable("the server there answers with another part than it was asked for")
        if int(found[3]) != self._size:
            raise Unusable(f"the file there has {found[3]} bytes, on the head {self._size}")
        tag = answer.headers.get("ETag", "")
        tag = "" if tag.startswith("W/") else tag
        if self._version and tag != self._version:
            raise Unusable("the file there is another one by now")
        self._version = tag

    def _opened(self, where: Address) -> http.client.HTTPConnection:
        """Does not connect again by itself: whom a name stands for is looked at each time."""
        to = where.scheme, where.host, where.port
        if self._connection is not None and self._connection.sock is not None and self._to == to:
            return self._connection
        self._drop()
        numeric = self._consent.resolve(where)
        for each in numeric:
            try:
                open_socket = socket.create_connection((each, where.port), STALL_SECONDS)
                break
            except OSError:
                if each == numeric[-1]:
                    raise
        if where.scheme == "https":
            open_socket = ssl.create_default_context().wrap_socket(open_socket, server_hostname=where.host)
        self._connection = http.client.HTTPConnection(where.host, where.port)
        self._connection.auto_open, self._connection.sock, self._to = 0, open_socket, to
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class OfSet:
    """The files of a set, each from an address of its own, as one source: once all of them have answered, and until one ends."""

    def __init__(self, files: Sequence[tuple[str, int]], consent: Consent, link: Link):
        self._link, self._silent, self._mutex = link, len(files), threading.Lock()
        self._each = [FromOrigin(url, consent, size, self) for url, size in files]
        for each in self._each:
            each.start()

    def ask(self, file: int, hash: bytes, offset: int, count: int, waited_for: bool) -> None:
        self._each[file].ask(Block(hash, offset, count), waited_for)

    def close(self) -> None:
        for each in self._each:
            each.close()
        self._each = []  # they know of this one: neither would go

    def origin_opens(self) -> None:
        with self._mutex:
            self._silent -= 1
            if self._silent > 0:
                return
        self._link.origin_opens()

    def origin_brings(self, hash: bytes, content: bytes) -> None:
        self._link.origin_brings(hash, content)

    def origin_ends(self, why: str) -> None:
        self._link.origin_ends(why)


def open_set(files: Sequence[tuple[str, int]], allowed: Sequence[str], link: Link) -> OfSet:
    """Who joined said `allowed` with --origin. Errors: that cannot be."""
    return OfSet(files, consent_of(allowed), link)


def consent_of(words: Sequence[str]) -> Consent:
    """Errors: what --origin cannot be."""
    try:
        return Consent.of(words)
    except Unusable as error:
        raise Error(f"--origin: {error}", "--origin public, or --origin https://HOST", "usage") from None


def _end(answer: http.client.HTTPResponse) -> None:
    if answer.read(1):
        raise Unusable("the server there sends more than it said")


def printable(text: str) -> str:
    """What somebody else may have written."""
    return "".join(each if each.isprintable() else "?" for each in text[:200])
