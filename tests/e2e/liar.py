"""A worker that has the token and lies, written from docs/formats."""

import contextlib
import selectors
import socket
import struct
import threading
import time

import wire

FEATURES, CLASSES = 128, 10  # of the data set that is attacked
ALIGN = 64  # elements, of a tensor
CALIBRATE, PROBE = 3, 4
HEARTBEAT_S, PATIENCE_S = 0.5, 0.1


def whole(eight):
    return int.from_bytes(eight, "little")


def layout(features, classes):
    """Of softmax regression, in a Ready."""
    return wire.layout_entry("weight", (classes, features)) + wire.layout_entry("bias", (classes,))


def model_bytes(features, classes):
    """Of its weights."""
    return 4 * sum(-(-size // ALIGN) * ALIGN for size in (features * classes, classes))


def learn_data(token, features=FEATURES, classes=CLASSES):
    """What fits is known to who is turned away for what does not: the fingerprint of the data, added to the token."""
    with wire.Peer(token) as peer:
        peer.send(wire.hello(token) + wire.proof(token))
        ready = layout(features, classes) + wire.field(2, "others")
        peer.send(wire.control(wire.READY, ready, run=token["run"]))
        (_, bye), = [message for message in peer.closed() if message[0] == wire.BYE]
    token["train_fingerprint"] = bye[2].decode().removeprefix("training data ")


class Liar(wire.Peer):
    """A worker written from docs/formats, on a thread of its own: it joins, holds the weights, and has answer(liar, grant) answer its
    leases."""

    def __init__(self, token, name, answer, sample_s=1e-6, features=FEATURES, classes=CLASSES):
        super().__init__(token)
        self._layout = layout(features, classes)
        self._model_bytes = model_bytes(features, classes)
        self.token, self.name, self.answer, self.sample_s = token, name, answer, sample_s
        self.leases, self.bye, self.fence, self.chunks, self.data = 0, None, 0, {}, None
        self._sending = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __exit__(self, *_):
        for connection in (self.socket, self.data):
            with contextlib.suppress(OSError, AttributeError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for connection in (self.socket, self.data):
            if connection is not None:
                connection.close()

    def wait(self):
        """Until it was sent away, or its connection ended."""
        self._thread.join()

    def send(self, data):
        with self._sending:
            return super().send(data)

    def say(self, kind, *values):
        """A message with these fields, from the first on; None is left out."""
        body = b"".join(wire.field(number, value) for number, value in enumerate(values, 1) if value is not None)
        return self.send(wire.control(kind, body, run=self.token["run"], fence=self.fence))

    def begin(self, grant, *, weight=None, loss=2.0):
        count = grant[7]
        self.say(wire.BEGIN, ("fixed64", whole(grant[1])), grant[2], grant.get(6, 0), count, float(count) if weight is None else weight,
                 loss * count)

    def finish(self, grant, *, count, seconds):
        self.say(wire.FINISH, ("fixed64", whole(grant[1])), grant[2], grant.get(6, 0), count, None, float(count), 0.0, seconds)

    def gradient(self, grant, value):
        """Every element of every chunk is this."""
        for chunk, size in self.chunks.items():
            body = struct.pack("<f", value) * (size // 4)
            header = wire.frame_header(body, type=wire.GRADIENT, run=self.token["run"], fence=self.fence, pass_=whole(grant[1]),
                                       subject=grant[2], version=grant.get(3, 0), chunk=chunk)
            with contextlib.suppress(OSError):
                self.data.sendall(header + body)

    def _run(self):
        with contextlib.suppress(OSError):
            if self._join():
                self._attend()

    def _join(self):
        self.send(wire.hello(self.token, name=f"{self.name}/cpu") + wire.proof(self.token))
        assert self.message()[0] == wire.PROOF_REPLY
        assert self.message()[0] == wire.RUN_SPEC
        self.send(wire.control(wire.READY, self._layout + wire.field(2, self.token["train_fingerprint"]), run=self.token["run"]))
        kind, found = self.message()
        if kind == wire.BYE:
            self.bye = found[1].decode()
            return False
        self.fence = whole(found[2])
        self.data = wire.open_to(self.token)
        self.data.sendall(wire.attach(self.token, self.fence))
        return True

    def _attend(self):
        held, next_beat = {}, 0.0
        buffers = {self.socket: bytearray(), self.data: bytearray()}
        with selectors.DefaultSelector() as ready:
            for connection in buffers:
                ready.register(connection, selectors.EVENT_READ)
            while self.bye is None:
                if (now := time.monotonic()) >= next_beat:
                    next_beat = now + HEARTBEAT_S
                    self.say(wire.HEARTBEAT, time.monotonic_ns())
                for key, _ in ready.select(PATIENCE_S):
                    piece = key.fileobj.recv(1 << 16)
                    if not piece:
                        return
                    buffers[key.fileobj] += piece
                    for kind, version, chunk, total, body in wire.frames(buffers[key.fileobj]):
                        if kind == wire.WEIGHTS:
                            self._take(version, chunk, total, len(body), held)
                        elif kind == wire.CONTROL:
                            self._hear(body)

    def _take(self, version, chunk, total, size, held):
        self.chunks[chunk] = total
        have = held[version] = held.get(version, 0) + size
        if have == self._model_bytes:
            self.say(wire.SYNCED, version)

    def _hear(self, body):
        (kind, content), = wire.fields(body).items()
        if kind == wire.BYE:
            self.bye = wire.fields(content)[1].decode()
        elif kind == wire.GRANT:
            grant = wire.fields(content)
            if (kind := whole(grant[1]) >> 56) in (CALIBRATE, PROBE):  # a probe without numbers says nothing of the device
                return self.finish(grant, count=grant[7] if kind == CALIBRATE else 0, seconds=self.sample_s * grant[7])
            self.leases += 1
            self.answer(self, grant)
