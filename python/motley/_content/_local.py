"""motley.files(): data by a path that is there on every machine."""

import hashlib
import os
import pathlib
import sys
import time
from typing import Any

from motley import _core, _launch
from motley._content import _kept, _locks, _manifest, _origins
from motley._errors import Error

WINDOW = 16  # blocks that are asked for at once
SILENCE_S = 10.0  # on a connection that has something to bring: then it is given up, and made again
PAUSE_S = (0.2, 3.0)  # between two tries: the first one, and the longest
_LOOK_S = 0.25  # for whether another process is done
AFTER_THE_END_S = 10.0  # for the head's next run

_offers: _core.Offers | None = None
_calls = 0


def files(place: str | os.PathLike[str], sha256: str | None = None) -> str:
    """A path, on this machine, of the data at `place`: a file or a directory.

    place: a path of the head's, `http://` or `https://`; `s3://`, `gs://` and what else fsspec knows, where it is installed on the head
    sha256: of the one file there, in hexadecimal; the head refuses another.

        train = torchvision.datasets.ImageFolder(motley.files("photos/train"))

    On the head a path is what it is, and what lies elsewhere is fetched once. Machines that join get the same content from the head: they
    use a copy of their own at the same path if it is equal, refuse another, and fetch what is missing by blocks whose hashes are checked,
    into `~/.cache/motley/data`. A fetch that was cut off goes on where it was. The files are to stay as they are while the run goes on. The
    script calls it in the same order on all machines, before `motley.Run`.
    """
    global _calls, _offers
    launch = _launch.of_files()
    _calls += 1
    if launch.role == "join":
        return _from_head(launch, os.fspath(place), _calls)
    local = pathlib.Path(_origins.bring(os.fspath(place)))
    if sha256 is not None:
        _check(local, sha256)
    name = pathlib.Path(os.path.abspath(local)).name
    manifest = _kept.manifest_of(local, name)
    if _offers is None:
        _offers = _core.Offers()
    _offers.add(*_offered(manifest, os.path.realpath(local)))
    _launch.offer(_offers)
    return str(local)


def _check(file: pathlib.Path, sha256: str) -> None:
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while piece := content.read(1 << 20):
            digest.update(piece)
    if digest.hexdigest() != sha256.lower():
        raise Error(f"{file}: expected SHA-256 {sha256}, found {digest.hexdigest()}", "delete it, and it is fetched again")


def _offered(manifest: _manifest.Manifest, root: str) -> tuple[bytes, bytes, list[tuple[str, int, bytes]]]:
    """What the core is to hand out: the manifest, its hash, the files."""
    text = manifest.to_bytes()
    files = [(os.path.join(root, *file.name.split("/")) if manifest.directory else root, file.size, file.hashes) for file in manifest.files]
    return text, _manifest.hash_of(text), files


def _from_head(launch: _core.Launch, place: str, number: int) -> str:
    fetch = _Fetch(launch)
    try:
        manifest = fetch.manifest(number)
        # What the head tells a recipe names nothing of this machine.
        own = not (launch.recipe and launch.fetched) and not _origins.is_address(place)
        if own and os.path.lexists(place):
            _compare(manifest, place)
            return place
        kept = _kept.Set(manifest)
        lock = _turn(kept)
        if lock is not None:
            with lock:
                fetch.fill(kept, kept.begin())
        return str(kept.path)
    finally:
        fetch.close()


def _turn(kept: _kept.Set) -> _locks.Held | None:
    """To fetch it; None once another process of this machine has."""
    said = False
    while not kept.is_whole():
        lock = kept.fetching()
        if lock is not None:
            return lock
        if not said:
            _say(f"another process here fetches {kept.manifest.name}")
            said = True
        time.sleep(_LOOK_S)
    return None


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


class _Fetch:
    """Asks the head, for as long as that takes."""

    def __init__(self, launch: _core.Launch):
        self._launch = launch
        self._link: _core.BlockLink | None = None
        self._pause, self._said, self._over = PAUSE_S[0], "", 0.0

    def manifest(self, number: int) -> _manifest.Manifest:
        """Of that offer. Errors: there is none; it is damaged."""
        link = self._opened()
        link.ask(number)
        wanted, size, count = self._await("offered")
        if not wanted:
            raise Error(f"the head's script offers {count} sets of files, and this one asks for number {number}",
                        "start the same script with the same arguments on all machines", "mismatch")
        if len(wanted) != _manifest.HASH_BYTES or not 0 < size <= _manifest.MANIFEST_BYTES_MAX:
            raise Error("the head sent an invalid list of files", "install the same version of motley on both machines", "protocol")
        link.want(wanted, size)
        _, text = self._await("content")
        return _manifest.parse(text)

    def fill(self, kept: _kept.Set, missing: dict[bytes, list[_kept.BlockPlace]]) -> None:
        """Fetches what is missing, and finishes the set."""
        name, size = kept.manifest.name, sum(places[0].count for places in missing.values())
        if missing:
            _say(f"fetching {name} from the head: {size / 1e9:.3g} GB of {kept.manifest.size / 1e9:.3g} GB are missing")
        link, began = self._opened(), time.monotonic()
        following, opened = iter(list(missing)), set[bytes]()
        while missing:
            while len(opened) < WINDOW and (wanted := next(following, None)) is not None:
                link.want(wanted, missing[wanted][0].count)
                opened.add(wanted)
            got, content = self._await("content")
            opened.discard(got)
            kept.put(missing.pop(got, []), content)
        took = max(time.monotonic() - began, 1e-9)
        _say(f"{name} is here: {size / 1e9:.3g} GB in {took:.1f} s, {size * 8e-6 / took:.0f} Mbit/s")
        kept.finish()

    def close(self) -> None:
        self._link = None

    def _opened(self) -> _core.BlockLink:
        if self._link is None:
            self._link = _core.open_block_link(self._launch)
            self._link.dial()
        return self._link

    def _await(self, kind: str) -> tuple[Any, ...]:
        """What an event of that kind brings. Connects again for as long as it takes. Errors: the head refuses."""
        while True:
            event = self._opened().next(SILENCE_S)
            if event is None:
                self._again(f"nothing was heard for {SILENCE_S:.0f} s", False)
            elif event[0] == "broken":
                self._again(event[1], event[2])
            elif event[0] == "connected":
                self._pause, self._said, self._over = PAUSE_S[0], "", 0.0
            elif event[0] == kind:
                return event[1:]
            elif event[0] != "waits":
                raise Error(f"the head answered with {event[0]}, expected {kind}", "install the same version of motley on both machines",
                            "protocol")

    def _again(self, why: str, over: bool) -> None:
        now = time.monotonic()
        self._over = self._over or (now if over else 0.0)
        if self._over and now - self._over > AFTER_THE_END_S:
            raise Error("the run was over before this machine had its data", "join while the head trains", "network")
        if why != self._said:
            _say(f"the head does not answer ({why}); trying again")
            self._said = why
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, PAUSE_S[1])
        self._opened().dial()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
