"""Whoever can reach the port may send what they like: training goes on undisturbed, memory stays bounded, good workers get in."""

import contextlib
import os
import random
import resource
import selectors
import socket
import ssl
import struct

import pytest

import wire
from program import arguments, settings

STRANGER = "127.0.0.2"  # the limits before proof are per source address
DATA = [*arguments(samples=20000, features=128, classes=10, test=0, lr=0.02),
        *settings(train_global_batch=2048, train_seed=3, train_steps=100000)]
GROWTH_KIB_MAX = 48 << 10


class Attacked:
    """A head that trains with one good worker from elsewhere."""

    def __init__(self, motley, *words):
        self.motley = motley
        self.head = motley.start("train", "softmax", *DATA, *words, "--run", "run", "--device", "none", "--token-file", "token",
                                 "--listen", "127.0.0.1:0")
        self.worker = motley.start("join", "--token-file", "token", "--name", "good")
        self.head.wait_step(5)
        self.token = wire.parse_token((motley.directory / "token").read_text())
        self.rss = self.head.rss_kib()

    def check(self):
        """Still training with the worker it had, without having grown; somebody new can join, works, and leaves."""
        grown = self.head.rss_kib() - self.rss
        assert grown < GROWTH_KIB_MAX, f"the head grew by {grown} KiB"
        late = self.motley.start("join", "--token-file", "token", "--name", "late")
        self.head.wait_share("late/cpu")
        late.interrupt()
        assert late.end() in (0, 130), late.story()
        self.head.wait_share("good/cpu", self.head.seen())
        assert len(self.worker.named("worker")) == 1, self.worker.story()  # it joined, and never lost its link
        assert not self.head.named("worker", worker="good/cpu", change="lost")
        self.head.interrupt()
        assert self.head.end() == 130, self.head.story()
        return grown

    def losses_stand(self):
        """The losses so far are those of an undisturbed run of one process."""
        ours = self.head.losses()
        alone = self.motley.run("train", "softmax", *DATA, *settings(train_steps=len(ours)), "--run", "alone", "--listen", "127.0.0.1:0")
        theirs = alone.losses()
        assert list(ours) == list(theirs)
        assert max(abs(ours[s] - theirs[s]) / theirs[s] for s in ours) <= 1e-5


@pytest.fixture
def plain(motley):
    return Attacked(motley, "--plaintext")


@pytest.fixture
def encrypted(motley):
    return Attacked(motley)


def connect(token):
    return socket.create_connection((token["addresses"][0], token["port"]), timeout=30, source_address=(STRANGER, 0))


def throw(token, data):
    """Sends data on a connection of its own, says that no more will come, and waits until the other side closes."""
    with connect(token) as peer:
        try:
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(65536):
                pass
        except TimeoutError:
            raise
        except OSError:  # it closed first
            pass


def test_frames_cut_at_every_byte(plain):
    opening = wire.hello(plain.token) + wire.proof(plain.token)
    for length in range(len(opening)):
        throw(plain.token, opening[:length])
    plain.check()
    plain.losses_stand()


def lengths(token):
    """Frames whose sizes promise more than anybody may send: the header is right, the checksums too."""
    run = token["run"]
    for length in (0xFFFFFFFF, 0x80000000, 1 << 30, (8 << 20) + 1, 65537):
        yield wire.frame_header(b"", type=wire.CONTROL, run=run, length=length)
    for kind in (2, 3, 4, 10):
        yield wire.frame_header(b"", type=kind, run=run, length=0xFFFFFFFF)
        yield wire.frame_header(b"", type=kind, run=run, length=16, offset=0xFFFFFFF0, total=0xFFFFFFFF)
    for huge in (1 << 63, (1 << 64) - 1, (1 << 32) - 1):  # of a field inside a message
        body = wire.varint(wire.HELLO << 3 | 2) + wire.varint(huge)
        yield wire.frame_header(body, type=wire.CONTROL, run=run) + body
        inner = wire.field(wire.HELLO, wire.varint(3 << 3 | 2) + wire.varint(huge))
        yield wire.frame_header(inner, type=wire.CONTROL, run=run) + inner
    yield wire.frame_header(b"", type=wire.CONTROL, run=run, header_crc=1)
    yield wire.frame_header(b"\x0a\x00", type=wire.CONTROL, run=run) + b"\x0a\x01"


def test_random_bytes_and_wild_lengths(plain):
    for data in lengths(plain.token):
        throw(plain.token, data + bytes(4096))
    dice = random.Random(99)
    opening = wire.hello(plain.token) + wire.proof(plain.token)
    for _ in range(150):
        throw(plain.token, dice.randbytes(dice.choice([1, 79, 80, 81, 500, 70000])))
        damaged = bytearray(opening)
        for _ in range(dice.randrange(1, 4)):
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        throw(plain.token, bytes(damaged))
    plain.check()
    plain.losses_stand()


def test_bad_words_from_one_who_knows_the_token(plain):
    """A proven worker may break its own session, not the run."""
    token = plain.token
    dice = random.Random(5)
    afterwards = [b"", os.urandom(300), *(data + bytes(64) for data in lengths(token))]
    afterwards += [wire.control(kind, dice.randbytes(dice.randrange(40)), run=token["run"]) for kind in range(1, 24)]
    for data in afterwards:
        throw(token, wire.hello(token, name="rogue/cpu") + wire.proof(token) + data)
    plain.check()
    plain.losses_stand()


def closed_by(peers, patience_s=30):
    """Waits until the other side has closed all of them."""
    with selectors.DefaultSelector() as waiting:
        for peer in peers:
            waiting.register(peer, selectors.EVENT_READ)
        while left := len(waiting.get_map()):
            ready = waiting.select(patience_s)
            assert ready, f"{left} of {len(peers)} connections are still open"
            for key, _ in ready:
                with contextlib.suppress(ConnectionResetError):
                    if key.fileobj.recv(65536):
                        continue
                waiting.unregister(key.fileobj)


@pytest.mark.parametrize("kind", ["plain", "encrypted"])
def test_a_thousand_connections_that_say_nothing(request, kind):
    attacked = request.getfixturevalue(kind)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(2048, hard)), hard))
    peers = [connect(attacked.token) for _ in range(1000)]
    grown = attacked.head.rss_kib() - attacked.rss
    closed_by(peers)  # all but a few at once, the last after five seconds
    for peer in peers:
        peer.close()
    print(f"\n1000 connections: {grown} KiB")
    assert grown < GROWTH_KIB_MAX
    attacked.check()


def test_strangers_in_front_of_tls(encrypted):
    token = encrypted.token
    dice = random.Random(7)
    for _ in range(60):
        throw(token, dice.randbytes(dice.choice([1, 5, 300, 70000])))
        throw(token, b"\x16\x03\x01" + struct.pack(">H", dice.randrange(65536)) + dice.randbytes(200))
    throw(token, wire.hello(token) + wire.proof(token))  # right, but not encrypted
    throw(token, b"GET / HTTP/1.1\r\nHost: head\r\n\r\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for protocols in ([], ["motley/1"]):  # no certificate of its own
        if protocols:
            context.set_alpn_protocols(protocols)
        with contextlib.suppress(OSError), connect(token) as raw, context.wrap_socket(raw) as peer:
            peer.sendall(wire.hello(token) + wire.proof(token))
            assert peer.recv(1) == b""
    encrypted.check()
    encrypted.losses_stand()


# --- workers that do not fit -----------------------------------------------------------------------------------------------

@pytest.fixture
def waiting(motley):
    """A plaintext head without workers, and what its token says."""
    head = motley.start("train", "softmax", *settings(train_steps=4), "--run", "run", "--device", "none", "--plaintext",
                        "--listen", "127.0.0.1:0")
    token = head.wait_event("run")["join"]
    yield head, token, wire.parse_token(token)
    head.stop()


def bye_of(messages):
    kind, content = messages[-1]
    assert kind == wire.BYE, messages
    return [content.get(number, b"").decode() for number in (1, 2, 3)]


def test_other_protocol_in_hello(waiting):
    head, _, token = waiting
    with wire.Peer(token) as peer:
        peer.send(wire.hello(token, protocol=2))
        code, expected, found = bye_of(peer.closed())
    assert (code, expected, found) == ("protocol", "protocol 1", "protocol 2")
    refused = head.wait_event("worker", change="refused")
    assert "protocol 1" in refused["reason"] and "protocol 2" in refused["reason"], refused


def test_other_protocol_in_frames(waiting):
    _, _, token = waiting
    with wire.Peer(token) as peer:
        peer.send(wire.hello(token, frame_protocol=2))
        assert all(kind == wire.BYE for kind, _ in peer.closed())


def test_head_of_another_protocol(motley):
    """The joiner says both versions, and keeps trying in case the head is restarted with the right one."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        token = dict(plaintext=True, run=7, id=8, expires=0, spki=bytes(32), secret=bytes(16), port=server.getsockname()[1],
                     addresses=["127.0.0.1"])
        joiner = motley.start("join", wire.token_text(token))
        peer, _ = server.accept()
        with peer:
            peer.sendall(wire.control(wire.BYE, wire.field(1, "protocol"), run=7, protocol=2))
            line = joiner.wait_text("protocol")
    assert "1" in line and "2" in line, line
    joiner.interrupt()
    joiner.end()


def test_wrong_secret(waiting):
    head, _, token = waiting
    for wrong in ({**token, "secret": bytes(16)}, {**token, "id": token["id"] ^ 1}, {**token, "run": token["run"] ^ 1}):
        with wire.Peer(wrong) as peer:
            peer.send(wire.hello(wrong) + wire.proof(wrong))
            code, expected, found = bye_of(peer.closed())
        assert code in ("wrong-token", "run") and expected and found
    with wire.Peer(token) as peer:  # the other side's role
        peer.send(wire.hello(token) + wire.proof(token, role=b"head"))
        assert bye_of(peer.closed())[0] == "wrong-token"


def test_a_stranger_is_counted_and_neither_named_nor_told_the_run(waiting):
    head, _, token = waiting
    name = "\x1b[2Jlaptop\non another machine:  motley join evil/cpu"
    wrong = {**token, "secret": bytes(16), "run": token["run"] ^ 1}
    with wire.Peer(wrong) as peer:
        peer.send(wire.hello(wrong, name=name) + wire.proof(wrong))
        assert bye_of(peer.closed())[0] == "run" and peer.run == wrong["run"]
    wrong["run"] = token["run"]
    with wire.Peer(wrong) as peer:
        peer.send(wire.hello(wrong, name=name) + wire.proof(wrong))
        assert bye_of(peer.closed())[0] == "wrong-token"
    refused = head.wait_event("worker", change="refused")
    assert refused["worker"] == "a stranger" and "(2 so far)" in refused["reason"], refused
    assert "\x1b" not in head.story() and "evil" not in head.story()


def test_names_are_printable_and_short(waiting):
    """Of a worker that has the token."""
    head, _, token = waiting
    with wire.Peer(token) as peer:
        peer.send(wire.hello(token, name="\x1b]0;x\x07laptop\n" + 100 * "n" + "/cpu") + wire.proof(token))
        assert peer.message()[0] == wire.PROOF_REPLY and peer.message()[0] == wire.RUN_SPEC
        ready = wire.layout_entry("weight", (10, 33)) + wire.field(2, "x") + wire.field(3, "x")
        peer.send(wire.control(wire.READY, ready, run=token["run"]))
        peer.closed()
    refused = head.wait_event("worker", change="refused")
    assert refused["worker"] == "?]0;x?laptop " + 50 * "n" + "…" and len(refused["worker"]) == 64, refused
    with wire.Peer(token) as peer:  # beyond what any machine sends
        peer.send(wire.hello(token, name=300 * "n") + wire.proof(token))
        assert bye_of(peer.closed())[0] == "protocol"


def test_another_model(waiting):
    """A worker whose model has other tensors: refused, and both sides are told what differs."""
    head, _, token = waiting
    with wire.Peer(token) as peer:
        peer.send(wire.hello(token) + wire.proof(token))
        assert peer.message()[0] == wire.PROOF_REPLY
        assert peer.message()[0] == wire.RUN_SPEC
        ready = wire.layout_entry("weight", (10, 33)) + wire.layout_entry("bias", (10,)) + wire.field(2, "x") + wire.field(3, "x")
        peer.send(wire.control(wire.READY, ready, run=token["run"]))
        code, expected, found = bye_of([m for m in peer.closed() if m[0] == wire.BYE])
    assert code == "model" and "weight" in expected + found, (code, expected, found)
    refused = head.wait_event("worker", change="refused")
    assert "weight" in refused["reason"], refused


def test_other_data(waiting):
    """A worker whose samples are others: refused, and both sides are told both fingerprints."""
    head, _, token = waiting
    with wire.Peer(token) as peer:
        peer.send(wire.hello(token) + wire.proof(token))
        ready = wire.layout_entry("weight", (10, 32)) + wire.layout_entry("bias", (10,)) + wire.field(2, "others") + wire.field(3, "others")
        peer.send(wire.control(wire.READY, ready, run=token["run"]))
        code, expected, found = bye_of([m for m in peer.closed() if m[0] == wire.BYE])
    assert code == "data" and "others" in found and expected != found, (code, expected, found)
    refused = head.wait_event("worker", change="refused")
    assert "others" in refused["reason"], refused


def test_a_worker_may_not_choose_the_rest(waiting, motley):
    _, token, _ = waiting
    for key in ("train.steps", "model.arguments", "data.uri"):
        error = motley.fails("join", token, "--set", f"{key}=7")
        assert error["code"] == "usage" and "train.micro_batch" in error["message"], error
