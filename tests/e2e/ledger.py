"""Reads a run's ledger (docs/formats/ledger.md), as anybody could."""

import struct

MAGIC = b"MTLEDGR1"
WORKER, STEP, ROLLBACK, LATE = 2, 3, 4, 7


class Payload:
    def __init__(self, content):
        self.content, self.at = content, 0

    def varint(self):
        value = shift = 0
        while True:
            byte = self.content[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def ranges(self, workers):
        """(first, count, worker), in order of positions."""
        found, end = [], 0
        for _ in range(self.varint()):
            zigzag = self.varint()
            first = end + (zigzag >> 1 ^ -(zigzag & 1))
            count = self.varint()
            end = first + count
            found.append((first, count, workers[self.varint()]))
        return found


def records(path):
    content = path.read_bytes()
    assert content.startswith(MAGIC)
    at = len(MAGIC)
    while at < len(content):
        length, kind = struct.unpack_from("<IB", content, at)
        yield kind, Payload(content[at + 5:at + 5 + length])
        at += length + 9


def ranges_by_step(path):
    """What counted in each step of the effective history: (first, count, worker). What is late must not be in it."""
    workers, steps = [], {}
    for kind, payload in records(path):
        if kind == WORKER:
            workers.append(payload.content.decode())
        elif kind == STEP:
            step = payload.varint()
            payload.varint()
            payload.at += 16
            steps[step] = payload.ranges(workers)
        elif kind == ROLLBACK:
            version = payload.varint()
            steps = {step: ranges for step, ranges in steps.items() if step < version}
        assert kind != LATE
    return steps
