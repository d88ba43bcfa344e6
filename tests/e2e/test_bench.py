"""`motley bench`: what it prints and how it fails. How fast anything is, is none of its business here."""

import math
import re
import signal
import socket

import pytest

import wire
from program import arguments, settings

SHORT = ("--seconds", "0.05")
INT8_PART = 258 / 1024  # bytes of 256 elements and their scale, to those in fp32
TINY = [*arguments(samples=256, features=8, classes=3, test=0), *settings(train_global_batch=64, train_steps=100000)]


@pytest.fixture
def listener(motley):
    program = motley.start("bench", "link", "--listen", "127.0.0.1:0")
    program.wait_event("listening")
    return program


def token_of(program):
    return program.named("listening")[0]["token"]


def positive(event, *fields):
    for field in fields:
        assert isinstance(event[field], (int, float)) and math.isfinite(event[field]) and event[field] > 0, (field, event)


def check_link(event, encrypted):
    assert event["encrypted"] is encrypted and bool(event["cipher"].startswith("TLS_")) is encrypted
    for side in ("near", "far"):
        assert event[side]["kind"] == "loopback" and event[side]["mbit_s"] is None and event[side]["half_duplex"] is False
    for phase, ways in (("up", ["up_mbit_s"]), ("down", ["down_mbit_s"]), ("both", ["up_mbit_s", "down_mbit_s"])):
        positive(event[phase], *ways)
        assert set(event[phase]) == {*ways, "processor_cores", "round_trip"}
    for trips in (event["idle"], *(event[phase]["round_trip"] for phase in ("up", "down", "both"))):
        positive(trips, "median_ms", "high_ms", "worst_ms", "samples")
        assert trips["worst_ms"] >= trips["high_ms"] >= trips["median_ms"] and trips["lost"] == 0
    assert event["verdict"] == "loopback" and "this machine talks to itself" in event["diagnosis"]
    assert event["of_link"] is None and event["step_bytes"] == 1e6
    positive(event, "step_s")
    assert event["step_int8_s"] / event["step_s"] == pytest.approx(INT8_PART, rel=0.01)  # three digits of each, however fast


@pytest.mark.parametrize("words", [[], ["--plaintext"]])
def test_link(motley, tmp_path, words):
    listener = motley.start("bench", "link", "--listen", "127.0.0.1:0", "--write-token", "token", "--once", *words)
    client = motley.run("bench", "link", "--token-file", "token", *SHORT, "--step", "1")
    assert client.process.returncode == 0, client.story()
    link, = client.named("link")
    check_link(link, encrypted=not words)
    assert listener.end() == 0, listener.story()
    assert token_of(listener) == "" and (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert [e["change"] for e in listener.named("peer")] == ["measures", "left"]
    assert re.fullmatch(r"127\.0\.0\.1:\d+", listener.named("peer")[0]["peer"]) and link["peer"].startswith("127.0.0.1:")


def test_link_one_after_the_other(motley, listener):
    for _ in range(2):
        client = motley.run("bench", "link", token_of(listener), *SHORT)
        assert client.process.returncode == 0, client.story()
    listener.wait_until(lambda: len(listener.named("peer", change="left")) == 2, "both have left")
    listener.interrupt()
    assert listener.end() == 0, listener.story()


def test_nobody_listens(motley, listener):
    with socket.socket() as free:  # bound, but nobody listens: connections are refused
        free.bind(("127.0.0.1", 0))
        token = {**wire.parse_token(token_of(listener)), "port": free.getsockname()[1]}
        error = motley.fails("bench", "link", wire.token_text(token), status=1)
    assert error["code"] == "network" and "127.0.0.1" in error["message"] and "motley bench link" in error["try"], error


def test_wrong_tokens(motley, listener):
    good = wire.parse_token(token_of(listener))
    wrong = bytes(16)
    for change in ({"secret": wrong}, {"run": 1}, {"id": 1}, {"spki": bytes(32)}):
        error = motley.fails("bench", "link", wire.token_text({**good, **change}), status=1)
        assert error["code"] == "refused" and error["try"], error
    assert motley.fails("bench", "link", token_of(listener)[:-3])["code"] == "input"
    assert motley.fails("bench", "link", "motley1.xyz")["code"] == "input"
    assert not listener.named("peer")


def test_token_of_a_run_that_trains(motley):
    """The run notices nothing."""
    head = motley.start("train", "softmax", *TINY, "--run", "run", "--device", "cpu", "--listen", "127.0.0.1:0")
    head.wait_step(3)
    error = motley.fails("bench", "link", head.named("run")[0]["join"], status=1)
    assert error["code"] == "refused" and "a run that trains" in error["message"] and "motley bench link" in error["try"], error
    head.wait_event("step", after=head.seen())
    assert {e["change"] for e in head.named("worker")} == {"joined"} and len(head.named("worker")) == 1, head.story()
    head.stop()


def test_joining_a_listener(motley, listener):
    error = motley.fails("join", token_of(listener), "--device", "cpu", status=1)
    assert error["code"] == "refused" and "motley bench link TOKEN" in error["try"], error
    assert not listener.named("peer")


def test_interrupted(motley, listener):
    client = motley.start("bench", "link", token_of(listener), "--seconds", "20")
    client.wait_text("measuring: up")
    client.interrupt()
    assert client.end() == 130 and client.error()["code"] == "interrupted", client.story()
    listener.wait_event("peer", change="left")


def test_listener_that_vanishes(motley, listener):
    client = motley.start("bench", "link", token_of(listener), "--seconds", "20")
    client.wait_text("measuring: up")
    listener.kill()
    assert client.end() == 1 and client.error()["code"] == "network", client.story()


def test_a_stranger_learns_nothing(motley, listener):
    """Without proof no echo comes back, and the listener serves on."""
    plain = motley.start("bench", "link", "--listen", "127.0.0.1:0", "--plaintext")
    token = wire.parse_token(plain.wait_event("listening")["token"])
    echo = wire.frame_header(b"", type=5, run=token["run"], subject=1, version=7)
    for opening in (echo, wire.hello(token) + wire.proof(token), b"GET / HTTP/1.0\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", token["port"]), timeout=30) as peer:
            peer.sendall(opening)
            peer.shutdown(socket.SHUT_WR)
            answer = b""
            while data := peer.recv(65536):
                answer += data
        assert len(answer) < 4096 and (not answer or answer[5] == wire.CONTROL), answer
    client = motley.run("bench", "link", plain.named("listening")[0]["token"], *SHORT)
    assert client.process.returncode == 0, client.story()
    for program in (plain, listener):
        program.signal(signal.SIGINT)
        assert program.end() == 0


@pytest.mark.parametrize("words, code, message", [
    (["bench"], "usage", "bench what"),
    (["bench", "wires"], "usage", "wires"),
    (["bench", "link", "x", "--once"], "usage", "expected no token"),
    (["bench", "link", "x", "--token-file", "y"], "usage", "found both"),
    (["bench", "link", "x", "--seconds", "1000"], "usage", "--seconds"),
    (["bench", "link", "x"], "input", "token"),
    (["bench", "link", "--listen", "nonsense"], "usage", "nonsense"),
])
def test_wrong_words(motley, words, code, message):
    error = motley.fails(*words, status=2)
    assert error["code"] == code and message in error["message"], error
