"""Many members of a run in one process, each a state machine on two plaintext connections, written from docs/formats: a crowd that has the
token and is silent, floods the head with messages, or reads nothing."""

import collections
import contextlib
import selectors
import socket
import time

import liar
import wire

READ_BYTES = 1 << 16
AT_ONCE = 8  # that prove themselves
SLOW_S, FAST_S = 1.0, 1e-6  # that each claims to need for a sample: so that nothing is shared with it; the fastest of all


class One:
    """A member. It joins, answers what it is measured by, and computes nothing: it hands its leases back, or sends zeros."""

    def __init__(self, crowd, number):
        self.crowd, self.name, self.bye = crowd, f"member{number}", None
        self._address = f"127.0.{2 + number // 250}.{1 + number % 250}"  # limits before the proof are by address
        self.fence, self.joined, self.closed = 0, False, False
        self.data, self.weights, self.chunks = None, {}, {}
        self.outgoing = {}
        self.control = self._open()
        self._buffers = {self.control: bytearray()}
        self.say(wire.hello(crowd.token, name=f"{self.name}/cpu") + wire.proof(crowd.token))

    def _open(self):
        peer = socket.create_connection((self.crowd.token["addresses"][0], self.crowd.token["port"]), 30, (self._address, 0))
        peer.setblocking(False)
        self.outgoing[peer] = collections.deque()
        self.crowd.ready.register(peer, selectors.EVENT_READ, self)
        return peer

    def say(self, *data, peer=None):
        """As soon as the other side takes it."""
        peer = peer or self.control
        self.outgoing[peer].extend(map(memoryview, data))
        self.write(peer)

    def message(self, kind, *values):
        body = b"".join(wire.field(number, value) for number, value in enumerate(values, 1) if value is not None)
        self.say(wire.control(kind, body, run=self.crowd.token["run"], fence=self.fence))

    def write(self, peer):
        waiting = self.outgoing[peer]
        with contextlib.suppress(BlockingIOError):
            while waiting:
                count = peer.send(waiting[0])
                if count == len(waiting[0]):
                    waiting.popleft()
                else:
                    waiting[0] = waiting[0][count:]
        self._watch(peer)

    def _watch(self, peer):
        reads = not (self.crowd.deaf and self.joined and peer is self.data)
        wanted = (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if self.outgoing[peer] else 0)
        registered = peer in self.crowd.ready.get_map()
        if wanted and registered:
            self.crowd.ready.modify(peer, wanted, self)
        elif wanted:
            self.crowd.ready.register(peer, wanted, self)
        elif registered:
            self.crowd.ready.unregister(peer)

    def beat(self):
        """Once in a while: that it is here; and its flood, each message once the last was taken."""
        if self.outgoing[self.control]:
            return
        self.message(wire.HEARTBEAT, time.monotonic_ns())
        if self.crowd.flood and self.crowd.whole:
            header = wire.frame_header(self.crowd.flood, type=wire.CONTROL, run=self.crowd.token["run"], fence=self.fence)
            self.say(header, self.crowd.flood)

    def read(self, peer):
        piece = peer.recv(READ_BYTES)
        if not piece:
            return self.close()
        buffer = self._buffers[peer]
        buffer += piece
        for kind, version, chunk, total, body in wire.frames(buffer):
            if kind == wire.WEIGHTS:
                self.chunks[chunk] = total
                self._take(version, len(body))
            elif kind == wire.CONTROL:
                self._hear(body)

    def _take(self, version, size):
        have = self.weights[version] = self.weights.get(version, 0) + size
        if have == self.crowd.model_bytes:
            del self.weights[version]
            if not self.crowd.mute:
                self.message(wire.SYNCED, version)
            self.joined = True
            for peer in (self.control, self.data):
                self._watch(peer)

    def _hear(self, body):
        (kind, content), = wire.fields(body).items()
        found = wire.fields(content)
        if kind == wire.BYE:
            self.bye = found[1].decode()
        elif kind == wire.RUN_SPEC:
            ready = self.crowd.layout + wire.field(2, self.crowd.token["train_fingerprint"])
            self.say(wire.control(wire.READY, ready, run=self.crowd.token["run"]))
        elif kind == wire.ADMITTED:
            self.fence = liar.whole(found[2])
            self.data = self._open()
            self._buffers[self.data] = bytearray()
            self.say(wire.attach(self.crowd.token, self.fence), peer=self.data)
        elif kind == wire.GRANT and not self.crowd.mute:
            self._answer(found)

    def _answer(self, grant):
        kind, count, of = liar.whole(grant[1]) >> 56, grant[7], ("fixed64", liar.whole(grant[1]))
        if kind == liar.PROBE or (kind != liar.CALIBRATE and not self.crowd.deaf):
            count = 0
        elif kind != liar.CALIBRATE:
            self.message(wire.BEGIN, of, grant[2], grant.get(6, 0), count, float(count), 2.0 * count)
            self._gradient(grant)
        seconds = count * (FAST_S if self.crowd.deaf else SLOW_S)
        self.message(wire.FINISH, of, grant[2], grant.get(6, 0), count, None, float(count), 0.0, seconds)

    def _gradient(self, grant):
        for chunk, size in self.chunks.items():
            body = bytes(size)
            self.say(wire.frame_header(body, type=wire.GRADIENT, run=self.crowd.token["run"], fence=self.fence,
                                       pass_=liar.whole(grant[1]), subject=grant[2], version=grant.get(3, 0), chunk=chunk), body,
                     peer=self.data)

    def close(self):
        if self.closed:
            return
        self.closed = True
        for peer in self.outgoing:
            if peer in self.crowd.ready.get_map():
                self.crowd.ready.unregister(peer)
            peer.close()


class Crowd:
    """`flood`: a Ready's fields, which each sends again and again once all have joined. `deaf`: whoever has joined takes no more
    weights, and answers leases all the same, with zeros. `mute`: they answer nothing, and beat their hearts."""

    def __init__(self, token, size, *, features, classes, flood=b"", deaf=False, mute=False):
        self.token, self.size, self.deaf, self.mute = token, size, deaf, mute
        self.flood = wire.field(wire.READY, flood) if flood else b""
        wire.crc32c(self.flood)  # takes a second, and is remembered
        self.layout, self.model_bytes = liar.layout(features, classes), liar.model_bytes(features, classes)
        self.ready, self.whole = selectors.DefaultSelector(), False
        self._next_beat = 0.0
        self.all = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.all:
            one.close()
        self.ready.close()

    def join(self, patience_s=60):
        """Until each has joined, or was turned away."""
        deadline = time.monotonic() + patience_s
        while len(self.all) < self.size or not all(one.joined or one.closed for one in self.all):
            assert time.monotonic() < deadline, f"{self.joined()} of {self.size} have joined in {patience_s} s"
            self.attend()
        self.whole = True

    def joined(self):
        return sum(one.joined for one in self.all)

    def byes(self):
        """What was said to those that were sent away, and how often; None: nothing."""
        return dict(collections.Counter(str(one.bye) for one in self.all if one.closed))

    def here(self):
        return sum(one.joined and not one.closed for one in self.all)

    def attend(self, patience_s=0.05):
        """One round of what is to be read, written and beaten."""
        while len(self.all) < self.size and sum(one.fence == 0 and not one.closed for one in self.all) < AT_ONCE:
            self.all.append(One(self, len(self.all)))
        if (now := time.monotonic()) >= self._next_beat:
            self._next_beat = now + (0 if self.flood and self.whole else liar.HEARTBEAT_S)
            for one in self.all:
                self._safely(one, one.beat)
        for key, happened in self.ready.select(patience_s):
            one = key.data
            if happened & selectors.EVENT_READ and not one.closed:
                self._safely(one, lambda one=one, key=key: one.read(key.fileobj))
            if happened & selectors.EVENT_WRITE and not one.closed:
                self._safely(one, lambda one=one, key=key: one.write(key.fileobj))

    @staticmethod
    def _safely(one, act):
        if one.closed:
            return
        try:
            act()
        except (ConnectionError, socket.timeout):
            one.close()
        except BlockingIOError:
            pass
