"""Wrong words, wrong files, wrong tokens: each ends with a clear error of the right class, and nothing else happens."""

import os
import pathlib
import re
import socket
import sys

import pytest

from program import arguments, settings

TINY = [*arguments(samples=512, features=8, classes=3, test=64), *settings(train_global_batch=32, train_steps=3)]


# --- words -----------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("words, code, message, hint", [
    (["trian", "softmax"], "usage", "trian", "motley train"),
    (["train"], "usage", "train what", "motley train"),
    (["train", "softmaks"], "usage", "softmaks", "'softmax'"),
    (["train", "fashoin-cnn"], "usage", "fashoin-cnn", "'fashion-cnn'"),
    (["train", "softmax", "--set", "train.stepps=3"], "input", "train.stepps", "'train.steps'"),
    (["train", "softmax", "--set", "train.optimizer=sgd"], "input", "train.optimizer", ""),
    (["train", "softmax", "--set", "optimizer.lr=3"], "input", "optimizer.lr", "arguments"),
    (["train", "softmax", "--set", "data.uri=mnist"], "input", "data.uri", "arguments"),
    (["train", "softmax", "--set", "model.hidden=[8]"], "input", "model.hidden", "arguments"),
    (["train", "softmax", "sampels=3"], "input", "sampels", "samples="),
    (["train", "softmax", "samples"], "input", "samples", "samples=4096"),
    (["train", "softmax", "samples=many"], "input", "many", ""),
    (["train", "softmax", "samples=0"], "input", "samples", ""),
    (["train", "softmax", "features=999999999999"], "input", "features", ""),
    (["train", "softmax", "lr=nan"], "input", "lr", ""),
    (["train", "softmax", "optimizer=adamw"], "input", "adamw", ""),
    (["train", "run.toml"], "usage", "run.toml", "--config"),
    (["train", "softmax", "--set", "steps"], "usage", "key=value", "train.epochs"),
    (["train", "softmax", "--set", "train.steps=many"], "input", "whole number", ""),
    (["train", "softmax", "--set", "train.global_batch=100000"], "input", "train.global_batch", ""),
    (["train", "softmax", "--device", "cuda:77"], "usage", "cuda:77", "motley devices"),
    (["train", "softmax", "--threads", "0"], "usage", "threads", "motley train --help"),
    (["train", "softmax", "--listen", "nonsense"], "usage", "nonsense", "0.0.0.0"),
    (["train", "softmax", "--listen", "127.0.0.1:70000"], "usage", "70000", "0.0.0.0"),
    (["train", "softmax", "--listen", "203.0.113.7:7117"], "input", "203.0.113.7", "0.0.0.0"),
    (["train", "softmax", "--resume"], "usage", "which run", "--run"),
    (["train", "--resume", "--run", "nothing-here"], "input", "nothing-here", "--resume"),
    (["train", "softmax", "--frobnicate"], "input", "frobnicate", "samples=4096"),
    (["join"], "usage", "join what", "motley join"),
    (["join", "desktop", "12345"], "usage", "six digits", "motley join desktop 123456"),
    (["join", "desktop"], "usage", "the code", "motley join desktop 123456"),
    (["join", "123456"], "usage", "join what", "motley join ADDRESS CODE"),
    (["join", "motley1.x", "123456"], "usage", "join what", "motley join ADDRESS CODE"),
    (["join", "--token-file", "x", "desktop", "123456"], "usage", "join what", "motley join ADDRESS CODE"),
    (["join", "runs/nothing/token"], "usage", "runs/nothing/token", "motley join"),
    (["train", "softmax", "--pair", "--plaintext"], "usage", "--p", "motley train --help"),
    (["invite", "--pair", "--run", "nothing-here"], "input", "nothing-here", "--run"),
    (["invite", "--pair", "--once"], "usage", "--", "motley invite --help"),
    (["invite", "--once", "me@laptop"], "usage", "expected no host, found me@laptop", "motley invite --once"),
    (["invite", "--pair", "me@laptop"], "usage", "expected no host, found me@laptop", "motley invite --pair"),
    (["invite", "--pair", "--expires", "1h"], "usage", "--once", "motley invite --once --expires"),
    (["join", "x", "--share", "0"], "usage", "--share", "motley join --help"),
    (["join", "x", "--share", "nan"], "usage", "from 0.01 to 1", "motley join --help"),
    (["train", "softmax", "--share", "1.5"], "usage", "'1.5'", "motley train --help"),
    (["join", "x", "--nice", "20"], "usage", "--nice", "motley join --help"),
    (["join", "x", "--battery", "maybe"], "usage", "maybe", "motley join --help"),
    (["join", "x", "--idle-after", "60"], "usage", "--idle-only", "motley join --help"),
    (["join", "x", "--idle-only", "--idle-after", "5"], "usage", "--idle-after", "motley join --help"),
    (["join", "192.168.1.7:7117"], "usage", "the code", "motley join 192.168.1.7:7117 123456"),
    (["audit", "nothing-here"], "input", "nothing-here", ""),
    (["export", "nothing-here", "m.safetensors"], "input", "nothing-here", ""),
    (["sample", "nothing-here", "--prompt", "a"], "input", "nothing-here", ""),
])
def test_wrong_words(motley, words, code, message, hint):
    error = motley.fails(*words)
    assert error["code"] == code and message in error["message"] and hint in error["try"], error


@pytest.mark.parametrize("text, line, message, hint", [
    ("[train]\nsteps = \n", 2, "TOML", ""),
    ("[train\nsteps = 3\n", 1, "TOML", ""),
    ("\n[train]\nstep = 3\n", 3, "train.step", "'train.steps'"),
    ("[train]\nsteps = \"3\"\n", 2, "whole number", ""),
    ("[train]\nshuffle = 1\n", 2, "true or false", ""),
    ("[train]\nsteps = 3\n[data]\nuri = \"mnist\"\n", 4, "data.uri", ""),
    ("[schedule]\nkind = \"cosine\"\n", 2, "schedule.kind", ""),
])
def test_wrong_keys_in_a_file(motley, tmp_path, text, line, message, hint):
    (tmp_path / "motley.toml").write_text(text)
    error = motley.fails("train", "softmax", "--config", "motley.toml")
    assert error["code"] == "input" and f"motley.toml:{line}:" in error["message"], error
    assert message in error["message"] and hint in error["try"], error


def test_a_file_of_keys_that_cannot_be_read(motley, tmp_path):
    error = motley.fails("train", "softmax", "--config", "nothing-here.toml", status=1)
    assert error["code"] == "io" and "nothing-here.toml" in error["message"] and "--config" in error["try"], error
    (tmp_path / "motley.toml").write_bytes(bytes(range(256)) * 16)
    assert "motley.toml:1:" in motley.fails("train", "softmax", "--config", "motley.toml")["message"]


def test_keys_of_a_file_and_those_that_win(motley, tmp_path):
    (tmp_path / "motley.toml").write_text("[train]\nsteps = 7\nglobal_batch = 16\n")
    words = ["--config", "motley.toml", "--set", "train.steps=2", "--run", "r", "--device", "cpu", "--listen", "127.0.0.1:0"]
    run = motley.run("train", "softmax", *arguments(samples=512, features=8, classes=3, test=0), *words)
    assert run.process.returncode == 0, run.story()
    assert [event["samples"] for event in run.named("step")] == [16, 16]


# --- the run's directory ---------------------------------------------------------------------------------------------------

def test_directory_of_a_finished_run(motley):
    assert motley.run("train", "softmax", "--run", "r", *TINY).process.returncode == 0
    error = motley.fails("train", "softmax", "--run", "r", *TINY)
    assert error["code"] == "input" and "--resume" in error["try"], error


def test_directory_of_an_earlier_version(motley, tmp_path):
    """Its data and optimizer were keys, which are the target's own now."""
    assert motley.run("train", "softmax", "--run", "r", *TINY).process.returncode == 0
    with (tmp_path / "r" / "run.toml").open("a") as kept:
        kept.write('[data]\nuri = "synthetic:512:8:3"\n')
    error = motley.fails("train", "--resume", "--run", "r")
    assert error["code"] == "input" and "data.uri" in error["message"] and "an earlier motley" in error["message"] and error["try"], error


def test_directory_in_use(motley):
    first = motley.start("train", "softmax", "--device", "none", "--run", "r", "--listen", "127.0.0.1:0", *TINY)
    first.wait_event("run")
    for words in (["softmax"], ["--resume"]):
        error = motley.fails("train", *words, "--run", "r", "--listen", "127.0.0.1:0", status=1)
        assert error["code"] == "busy" and f"process {first.pid}" in error["message"], error
    first.stop()


def test_port_in_use(motley):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        error = motley.fails("train", "softmax", "--listen", f"127.0.0.1:{port}", *TINY, status=1)
    assert error["code"] == "busy" and str(port) in error["message"] and "--listen" in error["try"], error


def test_token_file_in_a_missing_directory(motley):
    error = motley.fails("train", "softmax", "--token-file", "no/such/place/token", *TINY, status=1)
    assert error["code"] == "io" and "no/such/place/token" in error["message"] and "--token-file" in error["try"], error


def test_run_directory_that_cannot_be(motley, tmp_path):
    (tmp_path / "file").write_text("not a directory")
    error = motley.fails("train", "softmax", "--run", "file/run", *TINY)
    assert error["code"] == "input" and "file" in error["message"], error


# --- tokens ----------------------------------------------------------------------------------------------------------------

@pytest.fixture
def head(motley):
    """A head that waits for a worker."""
    program = motley.start("train", "softmax", "--device", "none", "--run", "head", "--listen", "127.0.0.1:0", *TINY,
                           *settings(train_steps=1000000))
    program.wait_event("run")
    yield program
    program.stop()


def test_damaged_token(motley, head):
    """tests/unit/fleet/token_test.cpp tries every letter and every length."""
    token = head.named("run")[0]["join"]
    wrong = token[:40] + ("A" if token[40] != "A" else "B") + token[41:]
    for damaged in (wrong, token[:-1], f"{token} {token}"):
        error = motley.fails("join", damaged)
        assert error["code"] == "input" and "token" in error["message"] and error["try"], error
    assert not head.named("worker")


def test_token_of_another_run(motley, head, tmp_path):
    """The port of one run with the secret of another: found out by the key, before any secret is sent."""
    import wire
    other = motley.start("train", "softmax", "--device", "none", "--run", "other", "--listen", "127.0.0.1:0", *TINY)
    other.wait_event("run")
    mine, theirs = (wire.parse_token(p.named("run")[0]["join"]) for p in (head, other))
    theirs["run"] ^= 1  # its own would be found by its local socket
    for kept in (["port"], ["port", "spki"], ["port", "spki", "run"], ["port", "spki", "run", "id"]):
        token = wire.token_text({**theirs, **{field: mine[field] for field in kept}})
        error = motley.fails("join", token, status=1)
        assert error["code"] == "refused" and error["try"], error
    other.stop()


def test_address_that_does_not_answer(motley, head):
    import wire
    with socket.socket() as free:  # bound, but nobody listens: connections are refused
        free.bind(("127.0.0.1", 0))
        token = {**wire.parse_token(head.named("run")[0]["join"]), "port": free.getsockname()[1], "run": 1}
        joiner = motley.start("join", wire.token_text(token))
        line = joiner.wait_text("127.0.0.1")
        assert re.search(r"refus|answer|connect", line), line
        joiner.interrupt()
        assert joiner.end() in (0, 130)


def test_token_file_that_never_comes(motley):
    joiner = motley.start("join", "--token-file", "never")
    joiner.wait_text("never")
    joiner.stop()
    assert joiner.error()["code"] == "interrupted"


def test_damaged_token_file(motley, tmp_path):
    (tmp_path / "token").write_text("motley1.xyz\n")
    assert motley.fails("join", "--token-file", "token")["code"] == "input"
    (tmp_path / "token").write_bytes(os.urandom(300).replace(b"\n", b"x") + b"\n")
    assert motley.fails("join", "--token-file", "token")["code"] == "input"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_token_does_not_stay_in_the_command_line(motley, head):
    token = head.named("run")[0]["join"]
    joiner = motley.start("join", token)
    joiner.wait_event("worker", change="joined")
    words = pathlib.Path(f"/proc/{joiner.pid}/cmdline").read_bytes().split(b"\0")
    assert b"join" in words and b"motley1." + b"x" * (len(token) - 8) in words
    assert token.encode() not in words
    joiner.interrupt()
    joiner.end()


@pytest.mark.parametrize("name", [65 * "n", "", "a\nb", "\x1b[2J"])
def test_a_name_that_others_would_not_see_as_it_is(motley, name):
    error = motley.fails("train", "softmax", "--name", name, *TINY)
    assert error["code"] == "usage" and "printable" in error["message"], error


def test_a_token_file_that_others_may_write(motley, tmp_path):
    (tmp_path / "token").write_text("motley1.x\n")
    (tmp_path / "token").chmod(0o666)
    error = motley.fails("join", "--token-file", "token")
    assert error["code"] == "input" and "others" in error["message"] and "chmod" in error["try"], error
