"""A machine that has the token and lies: the run goes on with the others, and its losses are those of an undisturbed one."""

import contextlib
import selectors
import socket
import struct
import threading
import time

import pytest

import wire
from program import settings
from test_strangers import GROWTH_KIB_MAX, Attacked, layout_entry

FEATURES, CLASSES = 128, 10  # of the data set that is attacked
MODEL_BYTES = 4 * (FEATURES * CLASSES + 64)  # a tensor begins at a multiple of 64 elements
CALIBRATE = 3
HEARTBEAT_S, PATIENCE_S = 0.5, 0.1
SHARED = settings(train_shares=[1, 1, 1, 1])
ENOUGH_STEPS = 30  # of others, before anything can be told to be far from them
LEASES_MAX = 20  # that a liar may get


def whole(eight):
    return int.from_bytes(eight, "little")


class Liar(wire.Peer):
    """A worker written from docs/formats, on a thread of its own: it joins, holds the weights, and has answer(liar, grant) answer its
    leases."""

    def __init__(self, token, name, answer, sample_s=1e-6):
        super().__init__(token)
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
        layout = layout_entry("weight", (CLASSES, FEATURES)) + layout_entry("bias", (CLASSES,))
        self.send(wire.control(wire.READY, layout + wire.field(2, self.token["train_fingerprint"]), run=self.token["run"]))
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
        if have == MODEL_BYTES:
            self.say(wire.SYNCED, version)

    def _hear(self, body):
        (kind, content), = wire.fields(body).items()
        if kind == wire.BYE:
            self.bye = wire.fields(content)[1].decode()
        elif kind == wire.GRANT:
            grant = wire.fields(content)
            if whole(grant[1]) >> 56 == CALIBRATE:
                return self.finish(grant, count=grant[7], seconds=self.sample_s * grant[7])
            self.leases += 1
            self.answer(self, grant)


# --- what it does with a lease ---------------------------------------------------------------------------------------------------

def another_weight(liar, grant):
    liar.begin(grant, weight=3.0 * grant[7])


def a_weight_beyond_all(liar, grant):
    liar.begin(grant, weight=1e30)


def a_loss_beyond_all(liar, grant):
    liar.begin(grant, loss=-1e12)
    liar.gradient(grant, 0.0)
    liar.finish(grant, count=grant[7], seconds=0.01)


def no_gradient(liar, grant):
    liar.begin(grant)
    liar.gradient(grant, 0.0)
    liar.finish(grant, count=grant[7], seconds=0.01)


def no_number(liar, grant):
    liar.begin(grant)
    liar.gradient(grant, float("nan"))


def a_gradient_beyond_all(liar, grant):
    liar.begin(grant)
    liar.gradient(grant, 1e30)
    liar.finish(grant, count=grant[7], seconds=0.01)


def handed_back(liar, grant):
    liar.finish(grant, count=0, seconds=0.0)


def nothing(_liar, _grant):
    pass


def positions_that_are_not_there(liar, grant):
    liar.say(wire.BEGIN, ("fixed64", whole(grant[1])), grant[2], 1 << 62, 1 << 62, 1.0, 1.0)


# --- and what comes of it ----------------------------------------------------------------------------------------------------------

def learn_data(attacked):
    """What fits is known to who is turned away for what does not."""
    with wire.Peer(attacked.token) as peer:
        peer.send(wire.hello(attacked.token) + wire.proof(attacked.token))
        layout = layout_entry("weight", (CLASSES, FEATURES)) + layout_entry("bias", (CLASSES,))
        peer.send(wire.control(wire.READY, layout + wire.field(2, "others"), run=attacked.token["run"]))
        (_, bye), = [message for message in peer.closed() if message[0] == wire.BYE]
    attacked.token["train_fingerprint"] = bye[2].decode().removeprefix("training data ")


def attacked_run(motley, *words):
    """A head without a device of its own, and one good worker, which have made some steps."""
    found = Attacked(motley, "--plaintext", *words)
    found.head.wait_step(ENOUGH_STEPS)
    learn_data(found)
    return found


@pytest.fixture
def attacked(motley):
    return attacked_run(motley)


@pytest.fixture
def shared(motley):
    """Whoever joins gets a share, fast or not."""
    return attacked_run(motley, *SHARED)


@pytest.mark.parametrize("lie", [a_weight_beyond_all, a_loss_beyond_all, no_number, a_gradient_beyond_all, handed_back],
                         ids=lambda lie: lie.__name__)
def test_who_answers_wrongly_is_sent_away(shared, lie):
    with Liar(shared.token, "liar", lie) as liar:
        shared.head.wait_event("worker", worker="liar/cpu", change="excluded", parked=False)
        assert 0 < liar.leases <= LEASES_MAX
    shared.check()
    shared.losses_stand()


def test_positions_that_are_not_there_end_the_session(shared):
    with Liar(shared.token, "liar", positions_that_are_not_there):
        lost = shared.head.wait_event("worker", worker="liar/cpu", change="lost")
        assert "positions" in lost["reason"], lost
    shared.check()
    shared.losses_stand()


@pytest.mark.parametrize("lie", [another_weight, nothing], ids=lambda lie: lie.__name__)
def test_who_says_nothing_more_holds_up_nobody(attacked, lie):
    """It beats its heart as if it computed, and claims to be the fastest of all."""
    with Liar(attacked.token, "liar", lie) as liar:
        before = attacked.head.wait_step(ENOUGH_STEPS)
        attacked.head.wait_event("step", lambda e: e["step"] >= before["step"] + 5 * ENOUGH_STEPS)
        assert liar.leases > 0
        assert not attacked.head.named("worker", worker="good/cpu", change="excluded", parked=False)
    attacked.check()
    attacked.losses_stand()


def test_years_of_computing_are_not_believed(attacked):
    with Liar(attacked.token, "liar", nothing, sample_s=1e305):
        before = attacked.head.wait_step(ENOUGH_STEPS)
        attacked.head.wait_event("step", lambda e: e["step"] >= before["step"] + 5 * ENOUGH_STEPS)
    attacked.check()
    attacked.losses_stand()


def test_two_names_of_one_liar_do_not_end_the_run(shared):
    with Liar(shared.token, "liar", no_number), Liar(shared.token, "other", no_number):
        for name in ("liar/cpu", "other/cpu"):
            shared.head.wait_event("worker", worker=name, change="excluded", parked=False)
    shared.check()
    shared.losses_stand()


def test_messages_of_eight_mebibytes_do_not_pile_up(attacked):
    entries = 65000 * layout_entry(100 * "n", (CLASSES, FEATURES))
    assert 7 << 20 < len(entries) < 8 << 20
    with Liar(attacked.token, "liar", nothing) as liar:
        attacked.head.wait_event("worker", worker="liar/cpu", change="joined")
        message = wire.control(wire.READY, entries, run=liar.token["run"], fence=liar.fence)
        for sent in range(60):
            assert liar.send(message), f"closed after {sent}"
            assert attacked.head.rss_kib() - attacked.rss < GROWTH_KIB_MAX
    attacked.check()


def test_a_gradient_of_a_usual_size_that_is_wrong_is_found(motley):
    """By a second look of two others (train.verify), which begins when the speeds are known."""
    attacked = attacked_run(motley, *SHARED, *settings(train_verify=1))
    motley.start("join", "--token-file", "token", "--name", "second")
    attacked.head.wait_step(2 * ENOUGH_STEPS + 5)
    with Liar(attacked.token, "liar", no_gradient):
        attacked.head.wait_event("worker", worker="liar/cpu", change="excluded", parked=False)
    attacked.check()
    assert not attacked.head.named("worker", worker="second/cpu", change="excluded", parked=False)
