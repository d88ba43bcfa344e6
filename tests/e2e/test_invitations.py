"""Tokens beside the one that the head printed, and tokens and machines that are taken back."""

import pytest
import wire

from program import arguments, settings

DATA = [*arguments(samples=20000, features=128, classes=10, test=0), *settings(train_global_batch=2048, train_steps=100000)]


@pytest.fixture
def head(motley):
    head = motley.start("train", "softmax", *DATA, "--run", "run", "--device", "none", "--listen", "127.0.0.1:0")
    head.wait_event("run")
    return head


def invite(motley):
    return motley.run("invite", "--once", "--run", "run").named("invitation")[0]["join"]


def test_a_token_for_one_machine_lets_it_in_again(head, motley):
    token = invite(motley)
    for name in ("first", "again"):  # each asks for a script before it joins; another machine: unit/runtime/head/invitations_test.cpp
        joiner = motley.start("join", token, "--name", name)
        head.wait_event("worker", worker=f"{name}/cpu", change="joined")
        joiner.interrupt()
        assert joiner.end() in (0, 130), joiner.story()


def test_a_token_that_is_taken_back_lets_nobody_in_or_stay(head, motley):
    token = invite(motley)
    guest = motley.start("join", token, "--name", "guest")
    head.wait_event("worker", worker="guest/cpu", change="joined")
    assert motley.run("revoke", token, "--run", "run").process.returncode == 0
    assert guest.end() == 1 and guest.error()["code"] == "refused", guest.story()  # told so, or when it comes back
    assert head.wait_event("worker", worker="guest/cpu", change="lost")["reason"] == "it was sent away (motley revoke)"
    assert motley.fails("join", token, status=1)["code"] == "refused"


def test_a_machine_is_sent_away(head, motley):
    own = head.named("run")[0]["join"]
    guests = [motley.start("join", own, "--name", name) for name in ("guest", "other")]
    for name in ("guest", "other"):
        head.wait_event("worker", worker=f"{name}/cpu", change="joined")
    motley.run("revoke", "guest", "--run", "run")
    assert guests[0].end() == 1, guests[0].story()
    before = head.seen()
    head.wait_event("step", lambda e: any(part["worker"] == "other/cpu" for part in e["workers"]), after=before)
    assert not head.named("worker", worker="other/cpu", change="lost")


def test_what_is_asked_wrongly(motley):
    assert motley.fails("invite")["code"] == "usage"
    assert motley.fails("invite", "--once", "--run", "none")["code"] == "input"
    assert motley.fails("invite", "--once", "--expires", "soon")["code"] == "usage"
    assert motley.fails("train", "softmax", "--new-token")["code"] == "usage"
    assert motley.fails("revoke", "laptop", "--run", "none")["code"] == "input"


def test_a_new_token_after_a_restart(motley):
    short = [*arguments(samples=512, features=8, classes=3, test=0), *settings(train_global_batch=32, train_steps=2)]
    here = ["--run", "run", "--listen", "127.0.0.1:0"]
    tokens = [motley.run("train", "softmax", *short, *here).named("run")[0]["join"]]
    for words in ([], ["--new-token"], ["--expires", "1h"]):
        again = motley.run("train", "--resume", *here, *words)
        assert again.process.returncode == 0, again.story()
        tokens.append(again.named("run")[0]["join"])
    first, kept, renewed, dated = (wire.parse_token(token) for token in tokens)
    assert (kept["id"], kept["secret"]) == (first["id"], first["secret"]) != (renewed["id"], renewed["secret"])
    assert dated["id"] != renewed["id"] and renewed["expires"] == 0 < dated["expires"]
    assert len({token["spki"] for token in (first, kept, renewed, dated)}) == 1


@pytest.mark.parametrize("words", [[], ["--plaintext"]], ids=["encrypted", "plain"])
def test_without_encryption_who_joins_is_told(motley, words):
    head = motley.start("train", "softmax", *DATA, *settings(train_steps=2), "--run", "run", "--device", "none",
                        "--listen", "127.0.0.1:0", *words)
    joiner = motley.run("join", head.wait_event("run")["join"])
    assert joiner.process.returncode == 0 and head.end() == 0, joiner.story()
    assert len([line for line in joiner.text if "without encryption" in line]) == len(words), joiner.story()
