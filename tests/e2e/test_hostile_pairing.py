"""Strangers at a head that shows a code: they get no further than their guesses, learn nothing of the run, and it goes on."""

import pathlib
import ssl

import pytest
import wire

from program import arguments, settings

ENDLESS = [*arguments(samples=20000, features=128, classes=10, test=0), *settings(train_global_batch=2048, train_steps=100000)]
PAIR, PAIR_SHARE, PAIR_CONFIRM, PAIRED = 30, 31, 32, 33
WRONG_CODES_MAX, AT_ONCE = 5, 4
# The generator of P-256: a point as good as any for who does not know the code.
POINT = bytes.fromhex("046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
                      "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5")


class Stranger(wire.Peer):
    """A connection with TLS, whose other end's key is not looked at."""

    def __init__(self, token, certificate):
        super().__init__(token)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.set_alpn_protocols(["motley/1"])
        context.load_cert_chain(certificate)
        self.socket = context.wrap_socket(self.socket)

    def say(self, kind, body, run=0):
        return self.send(wire.control(kind, body, run=run))

    def pair(self, share=POINT, protocol=1):
        return self.say(PAIR, wire.field(1, protocol) + wire.field(2, "stranger") + wire.field(3, share))

    def bye(self):
        """The code with which the connection ends; every frame of it was one of no run."""
        messages = self.closed()
        assert messages and messages[-1][0] == wire.BYE and self.run == 0, messages
        return messages[-1][1][1].decode()


def wrong_codes(head):
    return [e for e in head.named("worker", change="refused") if "wrong code" in e["reason"]]


@pytest.fixture
def head(motley):
    head = motley.start("train", "softmax", *ENDLESS, "--run", "run", "--device", "none", "--listen", "127.0.0.1:0", "--pair")
    head.wait_event("run")
    yield head
    worker = motley.start("join", head.named("run")[0]["join"], "--name", "good")
    head.wait_share("good/cpu")


@pytest.fixture
def stranger(head, motley):
    token = wire.parse_token(head.named("run")[0]["join"])
    opened = []

    def come():
        opened.append(Stranger(token, pathlib.Path(motley.directory) / "run" / "key.pem"))
        return opened[-1]
    yield come
    for each in opened:
        each.socket.close()


def test_who_does_not_follow_the_order_is_sent_away(stranger):
    confirms = stranger()
    confirms.say(PAIR_CONFIRM, wire.field(1, bytes(32)))
    assert confirms.bye() == "run"
    again = stranger()
    again.pair()
    again.pair()
    assert again.bye() == "protocol"
    greets = stranger()
    greets.pair()
    greets.say(wire.HELLO, wire.field(1, 1))
    assert greets.bye() == "protocol"
    answers = stranger()
    answers.pair()
    answers.say(PAIRED, wire.field(1, bytes(32)) + wire.field(2, "motley1.x"))
    assert answers.bye() == "protocol"


@pytest.mark.parametrize("share", [b"", POINT[:-1] + b"\x00", b"\x04" + bytes(64), bytes(65), b"\x06" + POINT[1:]],
                         ids=["none", "off the curve", "zero", "infinity", "hybrid"])
def test_what_is_no_point_is_refused(stranger, share):
    guest = stranger()
    guest.pair(share)
    assert guest.bye() == "protocol"


def test_another_protocol_is_named(stranger):
    guest = stranger()
    guest.pair(protocol=2)
    assert guest.bye() == "protocol"


def test_guesses_at_the_same_time_are_counted_one_by_one(head, stranger, motley):
    said = []
    while len(said) < 2 * AT_ONCE:
        guests = [stranger() for _ in range(AT_ONCE)]
        for guest in guests:
            guest.pair()
            kind, share = guest.message()
            assert kind == PAIR_SHARE and len(share[2]) == 65 and guest.run == 0
        for guest in guests:
            guest.say(PAIR_CONFIRM, wire.field(1, bytes(32)))
        said += [guest.bye() for guest in guests]
    assert said == ["wrong-code"] * WRONG_CODES_MAX + ["pairing"] * (2 * AT_ONCE - WRONG_CODES_MAX)
    head.wait_until(lambda: len(wrong_codes(head)) >= WRONG_CODES_MAX, "it told of all the guesses")
    assert len(wrong_codes(head)) == WRONG_CODES_MAX
    shown = head.wait_event("pairing")  # the next tick of the head makes the new code
    assert head.named("pairing") == [shown]
    assert shown["code"] != head.named("run")[0]["code"]
    assert (pathlib.Path(motley.directory) / "run" / "pairing").read_text().split()[0] == shown["code"]


def test_who_only_looks_costs_no_guess(head, stranger):
    for _ in range(2 * WRONG_CODES_MAX):
        guest = stranger()
        guest.pair()
        assert guest.message()[0] == PAIR_SHARE
        guest.socket.close()
    assert not wrong_codes(head)
