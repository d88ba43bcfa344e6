"""motley.files(): data by a path that is there on every machine."""

import atexit
import bisect
import os
import pathlib
import sys
import threading
import time
from typing import Any, Literal, overload

from motley import _core
from motley._content import _from_origin, _kept, _locks, _manifest, _origins, _partly
from motley._errors import Error
from motley._runs import _launch

WINDOW = 16  # blocks that are asked for at once of each who has them
WINDOW_WAITED_FOR = 32  # likewise of those that somebody waits for
WISHES_MAX = 256  # more: somebody waits for a whole set, and not for the next samples
SILENCE_S = 10.0  # on a connection that has something to bring: then it is given up, and made again
PAUSE_S = (0.2, 3.0)  # between two tries: the first one, and the longest
_LOOK_S = 0.25  # for whether to stop
WISH_S = 0.02  # for whether somebody waits for a block
AFTER_THE_END_S = 10.0  # for the head's next run

_offers: _core.Offers | None = None
_share: _core.DataShare | None = None
_calls = 0


@overload
def files(place: str | os.PathLike[str], *, wait: Literal[True] = ...) -> str: ...
@overload
def files(place: str | os.PathLike[str], *, wait: Literal[False]) -> _partly.Files: ...
def files(place: str | os.PathLike[str], *, wait: bool = True) -> str | _partly.Files:
    """A path, on this machine, of the data at `place`: a file or a directory.

    place: a path of the head's, `http://` or `https://`; `s3://`, `gs://` and what else fsspec knows, where it is installed on the head
    wait: False: not a path but `Files`, which are read while they come; a machine begins to compute with the samples that are there

        train = torchvision.datasets.ImageFolder(motley.files("photos/train"))

        shards = motley.files("shards", wait=False)
        with shards.open("shard-0001.tar") as file:  # read() waits for what is not there yet; shards.path(NAME) for the whole file

    On the head a path is what it is, and what lies elsewhere is fetched once. Machines that join get the same content from the head: they
    use a copy of their own at the same path if it is equal, refuse another, and fetch what is missing by blocks whose hashes are checked,
    into `~/.cache/motley/data`. A fetch that was cut off goes on where it was. The files are to stay as they are while the run goes on. The
    script calls it in the same order on all machines, before `motley.Run`.
    """
    global _calls, _offers
    launch = _launch.of_files()
    _calls += 1
    if launch.role == "join":
        return _from_head(launch, os.fspath(place), _calls, wait)
    local = pathlib.Path(_origins.bring(os.fspath(place)))
    name = pathlib.Path(os.path.abspath(local)).name
    manifest = _kept.manifest_of(local, name)
    if _offers is None:
        _offers = _core.Offers()
    _offers.add(*_offered(manifest, os.path.realpath(local)))
    _launch.offer(_offers)
    return str(local) if wait else _partly.Files(str(local), manifest)


def _offered(manifest: _manifest.Manifest, root: str) -> tuple[bytes, bytes, list[tuple[str, int, bytes]]]:
    """What the core is to hand out: the manifest, its hash, the files."""
    text = manifest.to_bytes()
    files = [(os.path.join(root, *file.name.split("/")) if manifest.directory else root, file.size, file.hashes) for file in manifest.files]
    return text, _manifest.hash_of(text), files


def _from_head(launch: _core.Launch, place: str, number: int, wait: bool) -> str | _partly.Files:
    fetch = _Fetch(launch)
    fetch.origin_allowed(place)
    manifest = fetch.manifest(number)
    if not _origins.is_address(place) and os.path.lexists(place):
        _compare(manifest, place)
        _hand_on(fetch, manifest, os.path.realpath(place))
        return place if wait else _partly.Files(place, manifest)
    kept = _kept.Set(manifest)
    comes = None if kept.is_whole() else kept
    if comes is not None:
        _Filling(kept, fetch).start()
    else:
        _hand_on(fetch, manifest, str(kept.path))
    files = _partly.Files(str(kept.path), manifest, comes)
    return os.fspath(files) if wait else files


def _share_of(launch: _core.Launch) -> _core.DataShare:
    """Opened before the launch's worker is, which tells it of its steps."""
    global _share
    if _share is None:
        _share = _core.open_data_share(launch)
        atexit.register(_share.close)
    return _share


def _hand_on(fetch: "_Fetch", manifest: _manifest.Manifest, root: str) -> None:
    """Other machines may have the set from this one from now on, where the head says so."""
    if fetch.share is not None:
        fetch.share.add(*_offered(manifest, root))


def _turn(kept: _kept.Set, fetch: "_Fetch") -> _locks.Held | None:
    """To fetch it; None once another process of this machine has."""
    said = False
    while not kept.is_whole():
        lock = kept.fetching()
        if lock is not None:
            return lock
        if not said:
            _say(f"another process here fetches {kept.manifest.name}")
            said = True
        fetch.pause(_LOOK_S)
    return None


class _Filling(threading.Thread):
    """Fetches a set beside the script."""

    def __init__(self, kept: _kept.Set, fetch: "_Fetch"):
        super().__init__(name=f"motley: {kept.manifest.name}", daemon=True)
        self._kept, self._fetch = kept, fetch
        self._lock = kept.fetching()
        self._missing = kept.begin() if self._lock is not None else {}
        fetch.stops = threading.Event()
        atexit.register(self._end)

    def run(self) -> None:
        try:
            if self._lock is None:
                self._lock = _turn(self._kept, self._fetch)
                self._missing = self._kept.begin() if self._lock is not None else {}
            if self._lock is not None:
                with self._lock:
                    self._fetch.fill(self._kept, self._missing)
            _hand_on(self._fetch, self._kept.manifest, str(self._kept.path))
        except _Stopped:
            pass
        except Error as error:
            _say(f"{self._kept.manifest.name}: {error}")
            self._kept.fail(error)
        except BaseException as error:  # whoever reads would wait for ever
            self._kept.fail(Error(f"{self._kept.manifest.name}: {type(error).__name__}: {error}"))
            raise
        finally:
            self._fetch.close()

    def _end(self) -> None:
        assert self._fetch.stops is not None
        self._fetch.stops.set()
        all_here = self._kept.progress.all_here(0, self._kept.progress.blocks)
        self.join(None if all_here else 2 * _LOOK_S)  # else the next one would have to read all of it


class _Stopped(Exception):
    pass


def _compare(manifest: _manifest.Manifest, place: str) -> None:
    """Errors: what lies there is not what the head has."""
    ours = _kept.manifest_of(pathlib.Path(place), manifest.name)
    hint = "take it away, and it comes from the head; or put the head's data there"
    if ours.directory != manifest.directory:
        kinds = ["a file", "a directory"]
        raise Error(f"{place}: the head has {kinds[manifest.directory]} there, and this machine {kinds[ours.directory]}", hint, "mismatch")
    mine, heads = ({file.name: file for file in each.files} for each in (ours, manifest))
    for name in sorted(mine.keys() | heads.keys()):
        a, b = mine.get(name), heads.get(name)
        if a == b:
            continue
        where = os.path.join(place, name) if manifest.directory else place
        if a is None or b is None:
            what = "is on the head alone" if a is None else "is on this machine alone"
        elif a.size != b.size:
            what = f"has {a.size} bytes, on the head {b.size}"
        else:
            what = "has another content than on the head"
        raise Error(f"{where} {what}", hint, "mismatch")


class _Order:
    """Which block of a set is asked for next: one that somebody waits for, else the one behind the last of these."""

    def __init__(self, kept: _kept.Set, missing: dict[bytes, list[_kept.Place]]):
        self._progress, self._missing = kept.progress, missing
        self._open, self._waited_for = set[bytes](), set[bytes]()
        self._blocks = [(place.block, content) for content, places in missing.items() for place in places]
        self._blocks.sort()
        self._hashes = dict(self._blocks)
        self._at = 0  # in _blocks

    def next(self, window: int = WINDOW) -> tuple[bytes, bool] | None:
        """And whether somebody waits for it. It is open then, until take(); what is open already comes where it is waited for by now.
        `window`: of what nobody waits for so many are open at most."""
        wish = self._wish() if len(self._waited_for) < WINDOW_WAITED_FOR else None
        if wish is not None:
            content = self._hashes[wish]
            self._at = bisect.bisect(self._blocks, (wish, content))
            self._waited_for.add(content)
            self._open.discard(content)
            return content, self._progress.wishes() <= WISHES_MAX
        following = self._following() if len(self._open) < window else None
        if following is None:
            return None
        self._open.add(following)
        return following, False

    def take(self, content: bytes) -> list[_kept.Place]:
        """Where it belongs; nowhere, if it came before: it was on its way when it was asked for once more."""
        self._open.discard(content)
        self._waited_for.discard(content)
        return self._missing.pop(content, [])

    def _wish(self) -> int | None:
        block = self._progress.wanted(0)
        while block is not None:
            content = self._hashes.get(block)
            if content in self._missing and content not in self._waited_for:
                return block
            if content not in self._missing:  # it came at the moment at which it was wished for
                self._progress.set_here(block)
            block = self._progress.wanted(block + 1)
        return None

    def _following(self) -> bytes | None:
        for _ in range(len(self._blocks)):
            _, content = self._blocks[self._at % len(self._blocks)]
            if content in self._missing and content not in self._open and content not in self._waited_for:
                return content
            self._at += 1
        return None


class _Fetch:
    """Asks the head, for as long as that takes. stops: when it is given up; None: never."""

    def __init__(self, launch: _core.Launch):
        self._launch = launch
        self._link: _core.BlockFetch | None = None
        self.share: _core.DataShare | None = None  # where the head knows of other machines that have files
        self._pause, self._said, self._over = PAUSE_S[0], "", 0.0
        self._heard = 0.0  # when something was
        self._place, self._consent = "", _from_origin.Consent(False, frozenset())
        self._origin: _from_origin.FromOrigin | None = None
        self.stops: threading.Event | None = None

    def origin_allowed(self, place: str) -> None:
        """The files are from there, and may come from there too, where this machine's user said so. Errors: he said what cannot be."""
        if place.partition("://")[0].lower() in _from_origin.PORTS and self._launch.origins:
            self._place, self._consent = place, _from_origin.consent_of(self._launch.origins)

    def manifest(self, number: int) -> _manifest.Manifest:
        """Of that offer. Errors: there is none; it is damaged."""
        link = self._opened()
        link.ask(number)
        wanted, size, count, sources = self._await("offered")
        self.share = _share_of(self._launch) if sources else None
        if not wanted:
            raise Error(f"the head's script offers {count} sets of files, and this one asks for number {number}",
                        "start the same script with the same arguments on all machines", "mismatch")
        if len(wanted) != _manifest.HASH_BYTES or not 0 < size <= _manifest.MANIFEST_BYTES_MAX:
            raise Error("the head sent an invalid list of files", "install the same version of motley on both machines", "protocol")
        link.want(wanted, size, True)
        _, text = self._await("content")
        return _manifest.parse(text)

    def fill(self, kept: _kept.Set, missing: dict[bytes, list[_kept.Place]]) -> None:
        """Fetches what is missing, and finishes the set."""
        name, size = kept.manifest.name, sum(places[0].count for places in missing.values())
        if missing:
            _say(f"fetching {name} from the head: {size / 1e9:.3g} GB of {kept.manifest.size / 1e9:.3g} GB are missing")
        link, began, order = self._opened(), time.monotonic(), _Order(kept, missing)
        if missing and self.share is not None:
            link.find_sources(kept.hash)
        if missing and self._place and not kept.manifest.directory:
            self._begin_origin(link, kept.manifest.size)
        try:
            self._fill(link, kept, missing, order)
        finally:
            if self._origin is not None:
                self._origin.close()
                self._origin.join(_LOOK_S)
        took = max(time.monotonic() - began, 1e-9)
        where = ((link.bytes_from_others, "other machines"), (link.bytes_from_origin, "its address"))
        others = "".join(f", {count / 1e9:.3g} GB of it from {name}" for count, name in where if count)
        _say(f"{name} is here: {size / 1e9:.3g} GB in {took:.1f} s, {size * 8e-6 / took:.0f} Mbit/s{others}")
        kept.finish()

    def _begin_origin(self, link: _core.BlockFetch, size: int) -> None:
        self._origin = _from_origin.FromOrigin(self._place, self._consent, size, link)
        self._origin.start()

    def _fill(self, link: _core.BlockFetch, kept: _kept.Set, missing: dict[bytes, list[_kept.Place]], order: _Order) -> None:
        while missing:
            while link.has_room and (following := order.next(link.window(WINDOW))) is not None:
                wanted, waited_for = following
                link.want(wanted, missing[wanted][0].count, waited_for)
            for wanted, waited_for in link.origin_asked() if self._origin is not None else ():
                if wanted in missing:
                    self._origin.ask(_from_origin.Block(wanted, missing[wanted][0].offset, missing[wanted][0].count), waited_for)
            if (came := self._look("content", WISH_S)) is not None:
                got, content = came
                if places := order.take(got):
                    kept.put(places, content)

    def close(self) -> None:
        self._link = None

    def pause(self, seconds: float) -> None:
        if self.stops is None:
            time.sleep(seconds)
        elif self.stops.wait(seconds):
            raise _Stopped

    def _opened(self) -> _core.BlockFetch:
        if self._link is None:
            self._link = _core.open_block_fetch(self._launch)
            self._link.dial()
            self._heard = time.monotonic()
        return self._link

    def _await(self, kind: str) -> tuple[Any, ...]:
        """What an event of that kind brings. Connects again for as long as it takes. Errors: the head refuses."""
        while (found := self._look(kind, _LOOK_S if self.stops is not None else SILENCE_S)) is None:
            pass
        return found

    def _look(self, kind: str, seconds: float) -> tuple[Any, ...] | None:
        """Likewise, within so long."""
        event = self._opened().next(seconds)
        if self.stops is not None and self.stops.is_set():
            raise _Stopped
        now = time.monotonic()
        if event is None and now < self._heard + SILENCE_S:
            return None
        self._heard = now
        if event is None:
            self._again(f"nothing was heard for {SILENCE_S:.0f} s", False)
        elif event[0] == "broken":
            self._again(event[1], event[2])
        elif event[0] == "connected":
            self._pause, self._said, self._over = PAUSE_S[0], "", 0.0
        elif event[0] == kind:
            return event[1:]
        elif event[0] == "dropped":
            _say(event[1])
            if event[2] and self._origin is not None:
                self._origin.close()
        elif event[0] != "waits":
            raise Error(f"the head answered with {event[0]}, expected {kind}", "install the same version of motley on both machines",
                        "protocol")
        return None

    def _again(self, why: str, over: bool) -> None:
        now = time.monotonic()
        self._over = self._over or (now if over else 0.0)
        if self._over and now - self._over > AFTER_THE_END_S:
            raise Error("the run was over before this machine had its data", "join while the head trains", "network")
        if why != self._said:
            _say(f"the head does not answer ({why}); trying again")
            self._said = why
        self.pause(self._pause)
        self._pause = min(2 * self._pause, PAUSE_S[1])
        self._opened().dial()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
