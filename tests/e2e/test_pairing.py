"""Machines that join by the address and the six digits that a head shows."""

import os
import pty
import re
import select
import signal
import subprocess

import pytest

from program import PATIENCE_S, Starter, arguments, settings
from test_lab import lab, laboratory, on

ENDLESS = [*arguments(samples=20000, features=128, classes=10, test=0), *settings(train_global_batch=2048, train_steps=100000)]
WRONG_CODES_MAX = 5


def start_head(motley, *words):
    head = motley.start("train", "softmax", *ENDLESS, "--run", "run", "--device", "none", "--listen", "127.0.0.1:0", *words)
    run = head.wait_event("run")
    return head, run, run["addresses"][0]


def wrong(code):
    return f"{(int(code) + 1) % 1_000_000:06}"


def leave(*programs):
    for program in programs:
        program.interrupt()
        assert program.end() in (0, 130), program.story()


def next_code(head, reason, after=0):
    return head.wait_event("pairing", lambda e: reason in e["reason"], after=after)["code"]


def test_a_code_lets_in_one_machine(motley):
    head, run, address = start_head(motley, "--pair")
    assert len(run["code"]) == 6 and run["code"].isdigit()
    guest = motley.start("join", address, run["code"][:3], run["code"][3:], "--name", "guest")
    head.wait_event("worker", worker="guest/cpu", change="joined")
    head.wait_share("guest/cpu")
    head.wait_text("guest (")
    code = next_code(head, "is used")
    file = motley.directory / "run" / "pairing"
    assert file.read_text().startswith(code + " ") and oct(file.stat().st_mode & 0o777) == "0o600"
    error = motley.fails("join", address, run["code"], status=1)
    assert error["code"] == "refused" and "code" in error["message"], error
    other = motley.start("join", address, code, "--name", "other")
    head.wait_event("worker", worker="other/cpu", change="joined")
    leave(guest, other, head)


def test_five_wrong_codes_make_another_one(motley):
    head, run, address = start_head(motley, "--pair")
    for count in range(1, WRONG_CODES_MAX + 1):
        error = motley.fails("join", address, wrong(run["code"]), status=1)
        assert error["code"] == "refused" and "code" in error["message"], error
        said = head.wait_event("worker", lambda e: f"({count} of {WRONG_CODES_MAX})" in e["reason"], change="refused")
        assert "127.0.0.1" in said["reason"]
    guest = motley.start("join", address, next_code(head, f"after {WRONG_CODES_MAX} wrong ones"), "--name", "guest")
    head.wait_event("worker", worker="guest/cpu", change="joined")
    leave(guest, head)


def test_where_no_code_is_shown_five_wrong_ones_end_the_one_that_was_asked_for(motley):
    head, _, address = start_head(motley)
    code = motley.run("invite", "--pair", "--run", "run").named("pairing")[0]["code"]
    for _ in range(WRONG_CODES_MAX):
        assert motley.fails("join", address, wrong(code), status=1)["code"] == "refused"
    head.wait_text("motley invite --pair makes another one")
    assert "no code" in motley.fails("join", address, code, status=1)["message"]
    code = motley.run("invite", "--pair", "--run", "run").named("pairing")[0]["code"]
    guest = motley.start("join", address, code, "--name", "guest")
    head.wait_event("worker", worker="guest/cpu", change="joined")
    assert not head.named("pairing")
    leave(guest, head)


def test_who_has_paired_is_back_after_the_heads_restart_and_can_be_sent_away(motley):
    head, run, address = start_head(motley, "--pair")
    guest = motley.start("join", address, run["code"], "--name", "guest")
    head.wait_share("guest/cpu")
    head.kill()
    head = motley.start("train", "--resume", "--run", "run", "--device", "none", "--listen", address)
    head.wait_share("guest/cpu")
    motley.run("revoke", "guest", "--run", "run")
    assert guest.end() == 1 and guest.error()["code"] == "refused", guest.story()


@pytest.mark.alone
def test_what_is_handed_out_is_worth_nothing_on_another_machine(motley_path, tmp_path):
    with laboratory({"head": 0.6, "guest": 0.6, "thief": 0.6}), Starter(motley_path, tmp_path) as motley:
        head = motley.start("train", "softmax", *ENDLESS, "--run", "run", "--device", "none", "--listen", f"{lab('ip', 'head')}:0",
                            "--pair", prefix=on("head"))
        run = head.wait_event("run")
        guest = motley.start("join", run["addresses"][0], run["code"], "--name", "guest", prefix=on("guest"))
        head.wait_share("guest/cpu")
        (invitation,) = (tmp_path / "run" / "invitations").iterdir()
        token = invitation.read_text().split()[0]
        assert token != run["join"]
        elsewhere = [*on("thief"), "env", f"MOTLEY_CACHE={tmp_path / 'thief'}"]
        error = motley.fails("join", token, "--name", "thief", status=1, prefix=elsewhere)
        assert error["code"] == "refused" and "has let one in" in error["message"], error
        head.kill()
        head = motley.start("train", "--resume", "--run", "run", "--device", "none", "--listen", run["addresses"][0], prefix=on("head"))
        head.wait_share("guest/cpu")
        leave(guest, head)


class Terminal:
    """A program at a terminal of its own."""

    def __init__(self, command, directory):
        self.screen, there = pty.openpty()
        self.text = ""
        self.process = subprocess.Popen(command, stdin=there, stdout=there, stderr=there, cwd=directory, start_new_session=True)
        os.close(there)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(PATIENCE_S)
        os.close(self.screen)

    def read_until(self, part):
        while part not in self.text:
            assert select.select([self.screen], [], [], PATIENCE_S)[0], f"waited in vain for {part!r}: {self.text}"
            try:
                self.text += os.read(self.screen, 4096).decode("utf-8", "replace")
            except OSError:  # it has ended
                raise AssertionError(f"ended before {part!r}: {self.text}") from None
        return self.text

    def type(self, line):
        os.write(self.screen, (line + "\n").encode())


def test_at_a_terminal_a_run_shows_what_to_type(motley):
    words = ["train", "softmax", *ENDLESS, "--run", "run", "--device", "none", "--listen", "127.0.0.1:0"]
    with Terminal([motley.path, *words], motley.directory) as head:
        shown = re.search(r"  pip install motley\s+  motley (join 127\.0\.0\.1:\d+ \d{6})\s", head.read_until("waiting"))
        assert shown and "motley1." not in head.text, head.text
        guest = motley.start(*shown[1].split(), "--name", "guest")
        head.read_until("guest/cpu joined")
        assert re.search(r"the code is used; the next one, for ten minutes:\s+motley join 127\.0\.0\.1:\d+ \d{6}\s", head.text), head.text
        leave(guest)


def test_with_verbose_it_shows_the_token_too(motley):
    words = ["train", "softmax", *ENDLESS, "--run", "run", "--device", "none", "--listen", "127.0.0.1:0", "--verbose"]
    with Terminal([motley.path, *words], motley.directory) as head:
        assert re.search(r"motley join 127\.0\.0\.1:\d+ \d{6}\s+on another machine:  motley join motley1\.", head.read_until("waiting"))


def test_at_a_terminal_it_asks(motley):
    head, run, address = start_head(motley, "--pair")
    asked = f"the code that {address} shows: "
    with Terminal([motley.path, "join", address, "--name", "guest"], motley.directory) as guest:
        guest.read_until(asked)
        guest.type(run["code"])
        head.wait_event("worker", worker="guest/cpu", change="joined")
    with Terminal([motley.path, "join", address], motley.directory) as guest:
        guest.read_until(asked)
        guest.type("soon")
        guest.read_until("expected six digits")
        assert guest.process.wait(PATIENCE_S) == 2
    with Terminal([motley.path, "join", address], motley.directory) as guest:
        guest.read_until(asked)
        os.killpg(guest.process.pid, signal.SIGINT)
        assert guest.process.wait(PATIENCE_S) in (130, -signal.SIGINT)
    leave(head)


def test_a_run_shows_a_code_when_it_is_asked_to(motley):
    head, run, address = start_head(motley)
    assert run["code"] == ""
    error = motley.fails("join", address, "123456", status=1)
    assert error["code"] == "refused" and "no code" in error["message"] and "--pair" in error["try"], error
    shown = motley.run("invite", "--pair", "--run", "run").named("pairing")[0]
    assert shown["addresses"] == [address]
    guest = motley.start("join", address, shown["code"], "--name", "guest")
    head.wait_event("worker", worker="guest/cpu", change="joined")
    leave(guest, head)
