"""What the body's side of a run holds at eval points, beside checkpoints: the epochs so far, the best evaluation and how many came after
it, the run's state, generators, schedulers, and what the body keeps in variables. A run that is resumed begins its next body with it, as
if it had not been interrupted."""

import pathlib
import random
import struct
import sys
import zlib
from collections.abc import Callable
from typing import IO, Any

import torch

from motley import _core, _state
from motley._errors import Error
from motley._machines import _devices
from motley._optimizers import _options
from motley._runs import _best, _body, _packed, _reach
from motley._runs._epoch import Epoch
from motley._samples import _data

try:
    import numpy
except ImportError:  # torch works without
    numpy = None  # type: ignore[assignment]

FILE = "bodies"  # in the run's directory: records, each with its length and CRC-32 before it
HEADER = struct.Struct("<QI")
COMPACT_BYTES = 4 << 20  # more than after the last time: what no checkpoint needs goes
OWN = "\0"  # before names that are not of the script: of what the run itself has
MADE_ANEW = ("groups", "best")  # whose values are numbers, and others each time
NAMED_MAX = 5


class Records:
    """The file. A record: {"version", "epochs": of it, "set": what changed, packed, by name, "gone": names}."""

    def __init__(self, directory: str):
        self._path = pathlib.Path(directory, FILE)
        self._file: IO[bytes] | None = None
        self._size = self._compacted = 0

    def read(self, until: int | None = None) -> list[dict[str, Any]]:
        """Those of eval points up to a version."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return []
        found, at = [], 0
        while at + HEADER.size <= len(content):
            size, check = HEADER.unpack_from(content, at)
            body = content[at + HEADER.size : at + HEADER.size + size]
            if len(body) != size or zlib.crc32(body) != check:  # it was being written
                break
            record = _packed.unpack(body)
            if until is None or record["version"] <= until:
                found.append(record)
            at += HEADER.size + size
        return found

    def begin(self, records: list[dict[str, Any]]) -> None:
        """Others are of steps that are lost."""
        self.close()
        fresh = self._path.with_suffix(".new")
        with open(fresh, "wb") as out:
            for record in records:
                out.write(_framed(record))
        fresh.replace(self._path)
        self._size = self._compacted = self._path.stat().st_size
        self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115

    def add(self, record: dict[str, Any]) -> None:
        assert self._file is not None
        framed = _framed(record)
        self._file.write(framed)
        self._size += len(framed)
        if self._size > 2 * self._compacted + COMPACT_BYTES:
            self._compact()

    def _compact(self) -> None:
        kept = [int(each.name[5:]) for each in self._path.parent.glob("checkpoints/step-*[0-9]")]
        oldest = min((step for step in kept if step > 0), default=0)
        records = self.read()
        before = [record for record in records if record["version"] <= oldest]
        self.begin(([folded(before)] if before else []) + records[len(before) :])

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _framed(record: dict[str, Any]) -> bytes:
    body = _packed.pack(record)
    return HEADER.pack(len(body), zlib.crc32(body)) + body


def folded(records: list[dict[str, Any]]) -> dict[str, Any]:
    """What holds at the last one."""
    epochs: list[Epoch] = []
    state: dict[str, bytes] = {}
    for record in records:
        epochs += record["epochs"]
        state.update(record["set"])
        for name in record["gone"]:
            state.pop(name, None)
    return {"version": records[-1]["version"] if records else 0, "epochs": epochs, "set": state, "gone": []}


class EvalPoints:
    """best, state: of the run.  apart: what it holds besides, with the sources of its data.  draws: what is done between two bodies draws
    from the generators of the process.  on_way: its bodies are the frame's that asks for epochs."""

    def __init__(self, optimizer: torch.optim.Optimizer, schedule: Any, best: _best.Best, state: Callable[[], dict[str, Any]],
                 apart: list[Any], sources: list[_data.BatchSource], draws: bool, on_way: bool):
        self._optimizer = optimizer
        self._reach_of = lambda: _reach.find(sys._getframe() if on_way else None, optimizer, [schedule, *apart], sources)
        # By name: how it is taken, and how it is put back.
        self._own: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
            "groups": (lambda: _options.options(optimizer), self._put_groups), "best": (best.count, best.go_on),
            "state": (state, lambda found: _put_state(state(), found))}
        if _state.HeadTensors.made:
            self._own["samples"] = _body.made, _put_samples
        if hasattr(schedule, "load_state_dict"):
            self._own["schedule"] = schedule.state_dict, schedule.load_state_dict
        self._random, self._draws, self._found = _states(), draws, False
        self._raw: dict[str, tuple[Any, bytes]] = {}
        self._known: dict[str, bytes] = {}  # as it was written last
        self._records: Records | None = None
        self._reach: _reach.Reach | None = None
        self._packed_random = b""
        self._begun = self._own_state()  # as the script made it
        self.version = 0  # of the newest eval point that was put back

    @property
    def schedule_from(self) -> int:
        """The version up to which the script's own scheduler was stepped."""
        return self.version if OWN + "schedule" in self._known else 0

    def begin(self, history: list[Epoch], first: Callable[[str], Any], resumed: bool, head: _core.Head) -> None:
        """Before the run's first step: puts back what held where it goes on. `first`: what else the directory gets."""
        first(head.directory)
        self._reach = self._reach_of()
        self._records = Records(head.directory)
        records = self._records.read(head.bodies_until) if resumed else []
        self._records.begin(records)
        if records:
            self._put_back(records, history, head.note)

    def end(self, directory: str, history: list[Epoch]) -> None:
        """Likewise, where the run there is over."""
        self._reach = self._reach_of()
        if records := Records(directory).read():
            self._put_back(records, history, lambda text: print(text, file=sys.stderr, flush=True))

    def _put_back(self, records: list[dict[str, Any]], history: list[Epoch], note: Callable[[str], None]) -> None:
        assert self._reach is not None
        whole = folded(records)
        self.version, self._known = whole["version"], dict(whole["set"])
        history[:0] = whole["epochs"]
        for name, (_, put) in self._own.items():
            if OWN + name in self._known:
                put(_packed.unpack(self._known[OWN + name]))
        if OWN + "random" in self._known:
            self._packed_random = self._known[OWN + "random"]
            self._random = _packed.unpack(self._packed_random)
        lost = self._reach.put_back({path: packed for path, packed in self._known.items() if not path.startswith(OWN)})
        lost += _packed.unpack(self._known[OWN + "lost"]) if OWN + "lost" in self._known else []
        if lost:
            names = ", ".join(lost[:NAMED_MAX]) + (" …" if len(lost) > NAMED_MAX else "")
            note(f"the body of the epochs had changed {names}, which cannot be put back: it begins anew; what has to go on belongs into "
                 "run.state, which does")

    def before_body(self) -> None:
        """The body finds the generators of the process as it left them, whatever was drawn to train."""
        if (self._draws or not self._found) and not _alike(_states(), self._random):
            _put(self._random)
        self._found = True

    def after_body(self, version: int, epoch: Epoch) -> None:
        """The body has ended, and the run has not gone on yet."""
        assert self._records is not None and self._reach is not None
        now = self._own_state()
        states = _states()
        if not _alike(states, self._random):
            self._random, self._packed_random = states, _packed.pack(states)
        if self._packed_random:
            now[OWN + "random"] = self._packed_random
        now = {name: packed for name, packed in now.items() if self._begun.get(name) != packed} | self._reach.changes()
        if self._reach.begins_anew:
            now[OWN + "lost"] = _packed.pack(self._reach.begins_anew)
        self._records.add({"version": version, "epochs": [epoch], "gone": [name for name in self._known if name not in now],
                           "set": {name: packed for name, packed in now.items() if self._known.get(name) != packed}})
        self._known = now

    def close(self) -> None:
        self._reach = None
        if self._records is not None:
            self._records.close()

    def _own_state(self) -> dict[str, bytes]:
        found = {}
        for name, (get, _) in self._own.items():
            value = get()
            if name in self._raw and self._raw[name][0] == value:
                found[OWN + name] = self._raw[name][1]
                continue
            try:
                found[OWN + name] = packed = _packed.pack(value)
            except _packed.Unkept:  # functions of the script's in a scheduler
                continue
            if name in MADE_ANEW:
                self._raw[name] = value, packed
        return found

    def _put_groups(self, groups: list[dict[str, Any]]) -> None:
        for group, before in zip(self._optimizer.param_groups, groups, strict=True):
            for name, value in before.items():
                if isinstance(group.get(name), torch.Tensor):
                    group[name].fill_(value)
                elif _options.plain(group.get(name)) != value:
                    group[name] = value


def _put_state(state: dict[str, Any], found: dict[str, Any]) -> None:
    state.clear()
    state.update(found)


def _put_samples(sets: list[tuple[torch.Tensor, ...]]) -> None:
    if len(sets) != len(_state.HeadTensors.made):
        raise Error(f"the script has {len(_state.HeadTensors.made)} HeadTensors, and had {len(sets)} when the run began",
                    "resume with the script that the run was started with", "mismatch")
    for each, tensors in zip(_state.HeadTensors.made, sets, strict=True):
        each.tensors = tensors


def _states() -> dict[str, Any]:
    states: dict[str, Any] = {"random": random.getstate(), "torch": [each.get_state() for each in _devices.generators()]}
    if numpy is not None:
        states["numpy"] = numpy.random.get_state()
    return states


def _alike(a: dict[str, Any], b: dict[str, Any]) -> bool:
    if a["random"] != b["random"] or not all(map(torch.equal, a["torch"], b["torch"])):  # of generators, some of which may have come later
        return False
    if numpy is None:
        return True
    (kind, keys, *rest), (other_kind, other_keys, *other_rest) = a["numpy"], b["numpy"]
    return bool(kind == other_kind and rest == other_rest and (keys == other_keys).all())


def _put(states: dict[str, Any]) -> None:
    random.setstate(states["random"])
    for generator, state in zip(_devices.generators(), states["torch"], strict=False):
        generator.set_state(state)
    if numpy is not None:
        numpy.random.set_state(states["numpy"])


def history(directory: str) -> list[dict[str, Any]]:
    """Of a run, as far as its bodies ended."""
    return [dict(vars(epoch)) for epoch in folded(Records(directory).read())["epochs"]]
