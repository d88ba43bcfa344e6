"""Machines that find each other in a network and pair by a code, and machines that are woken (tools/lab).

Needs root, network namespaces and tc; skipped where they are missing.
"""

import os
import pty
import select
import shutil
import signal
import subprocess
import sys

import pytest

from program import PATIENCE_S, settings
from test_lab import lab, laboratory, on

pytestmark = pytest.mark.alone

ENDLESS = settings(data_uri="synthetic:20000:128:10", data_test_uri="", train_global_batch=2048, train_steps=100000)
WRONG_CODES_MAX = 5


@pytest.fixture(scope="module")
def network():
    with laboratory({"head": 0.5, "other": 0.4, "guest": 0.5}):
        yield


@pytest.fixture
def at(network, tmp_path):
    """What a command begins with that runs on a host: there, and with a home of that host's own."""
    def prefix(host):
        (tmp_path / f"home-{host}").mkdir(exist_ok=True)
        return [*on(host), "env", f"HOME={tmp_path}/home-{host}"]
    return prefix


def start_head(motley, prefix, *words, name="head"):
    head = motley.start("train", "softmax", *ENDLESS, "--run", f"run-{name}", "--device", "none", "--name", name, *words, prefix=prefix)
    return head, head.wait_event("run")


def wrong(code):
    return f"{(int(code) + 1) % 1_000_000:06}"


def leave(*programs):
    for program in programs:
        program.interrupt()
        assert program.end() in (0, 130), program.story()


def test_the_right_code_joins(motley, at):
    head, run = start_head(motley, at("head"), "--pair")
    assert len(run["code"]) == 6 and run["code"].isdigit()
    guest = motley.start("join", "--code", f"{run['code'][:3]} {run['code'][3:]}", "--name", "guest", prefix=at("guest"))
    head.wait_event("worker", worker="guest/cpu", change="joined")
    head.wait_share("guest/cpu")
    head.wait_text("guest (")
    assert oct((motley.directory / "run-head" / "pairing").stat().st_mode & 0o777) == "0o600"
    leave(guest, head)


def test_wrong_codes_are_refused_and_counted(motley, at):
    head, run = start_head(motley, at("head"), "--pair")
    for count in range(1, WRONG_CODES_MAX + 1):
        error = motley.fails("join", "--code", wrong(run["code"]), "--head", "head", status=1, prefix=at("guest"))
        assert error["code"] == "refused" and "code" in error["message"], error
        said = head.wait_event("worker", lambda e: f"({count} of {WRONG_CODES_MAX})" in e["reason"], change="refused")
        assert lab("ip", "guest") in said["reason"]
    assert "pairs with nobody any more" in said["reason"]
    error = motley.fails("join", "--code", run["code"], "--head", "head", status=1, prefix=at("guest"))
    assert "no head" in error["message"], error  # it says goodbye to the network
    assert motley.run("invite", "--pair", "--run", "run-head", prefix=at("head")).process.returncode == 0
    error = motley.fails("join", "--code", run["code"], "--head", "head", status=1, prefix=at("guest"))
    assert "no head" in error["message"], error
    guest = motley.start("join", run["join"], "--name", "guest", prefix=at("guest"))
    head.wait_event("worker", worker="guest/cpu", change="joined")
    leave(guest, head)


def test_of_two_heads_one_is_named(motley, at):
    first, run = start_head(motley, at("head"), "--pair")
    second, others = start_head(motley, at("other"), "--pair", name="other")
    error = motley.fails("join", "--code", run["code"], prefix=at("guest"))
    assert error["code"] == "usage" and "head, other" in error["message"] and "--head head" in error["try"], error
    error = motley.fails("join", "--code", run["code"], "--head", "nobody", prefix=at("guest"))
    assert error["code"] == "input" and "head, other" in error["message"], error
    guest = motley.start("join", "--code", others["code"], "--head", "other", "--name", "guest", prefix=at("guest"))
    second.wait_event("worker", worker="guest/cpu", change="joined")
    assert not first.named("worker", change="refused"), first.story()
    leave(guest, first, second)


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


def test_at_a_terminal_it_asks(motley, at):
    first, _ = start_head(motley, at("head"), "--pair")
    second, run = start_head(motley, at("other"), "--pair", name="other")
    with Terminal([*at("guest"), motley.path, "join", "--name", "guest"], motley.directory) as guest:
        listed = guest.read_until("which one? ")
        assert " 1  head " in listed and " 2  other " in listed and lab("ip", "other") in listed, listed
        guest.type("2")
        guest.read_until("the code that other shows: ")
        guest.type(run["code"])
        second.wait_event("worker", worker="guest/cpu", change="joined")
    with Terminal([*at("guest"), motley.path, "join", "--head", "other"], motley.directory) as guest:
        guest.read_until("the code that other shows: ")
        guest.type("soon")
        guest.read_until("expected six digits")
        assert guest.process.wait(PATIENCE_S) == 2
    with Terminal([*at("guest"), motley.path, "join", "--head", "other"], motley.directory) as guest:
        guest.read_until("the code that other shows: ")
        os.killpg(guest.process.pid, signal.SIGINT)
        assert guest.process.wait(PATIENCE_S) in (130, -signal.SIGINT)
    leave(first, second)


def test_a_run_shows_a_code_when_it_is_asked_to(motley, at):
    head, run = start_head(motley, at("head"))
    assert run["code"] == ""
    error = motley.fails("join", "--code", "123456", status=1, prefix=at("guest"))
    assert error["code"] == "network" and "no head" in error["message"] and "--pair" in error["try"], error
    shown = motley.run("invite", "--pair", "--run", "run-head", prefix=at("head")).named("pairing")[0]
    guest = motley.start("join", "--code", shown["code"], "--head", "head", "--name", "guest", prefix=at("guest"))
    head.wait_event("worker", worker="guest/cpu", change="joined")
    leave(guest, head)


# A listener in the guest's network, which says that it listens, and then the first datagram.
LISTENER = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 9))
print("listening", flush=True)
print(s.recv(2000).hex(), flush=True)
"""


def test_a_machine_that_joined_is_woken(motley, at):
    error = motley.fails("wake", "guest", prefix=at("head"))
    assert error["code"] == "input" and "no machine is known" in error["message"], error
    head, run = start_head(motley, at("head"))
    guest = motley.start("join", run["join"], "--name", "guest", prefix=at("guest"))
    head.wait_event("worker", worker="guest/cpu", change="joined")
    leave(guest, head)
    card = subprocess.run([*on("guest"), "cat", "/sys/class/net/eth0/address"], capture_output=True, text=True, check=True).stdout.strip()
    known = motley.run("wake", prefix=at("head")).named("machine")
    assert [(m["name"], m["hardware_address"], m["address"]) for m in known] == [("guest", card, lab("ip", "guest"))]
    error = motley.fails("wake", "gest", prefix=at("head"))
    assert error["code"] == "input" and f"guest ({card}" in error["message"], error
    with subprocess.Popen([*on("guest"), sys.executable, "-c", LISTENER], stdout=subprocess.PIPE, text=True) as listener:
        try:
            assert listener.stdout.readline() == "listening\n"
            sent = motley.run("wake", "guest", prefix=at("head"))
            assert sent.process.returncode == 0 and sent.named("wake")[0]["hardware_address"] == card, sent.story()
            assert listener.stdout.readline().strip() == "ff" * 6 + card.replace(":", "") * 16
        finally:
            listener.kill()


def finding(motley, prefix):
    doctor = motley.run("doctor", prefix=prefix)
    return doctor.wait_event("check", subject="finding")


def test_doctor_says_whether_machines_find_each_other(motley, at):
    assert finding(motley, at("guest"))["good"]
    alone = finding(motley, ["unshare", "--net"])  # no network at all
    assert not alone["good"] and "no network with others" in alone["text"] and "motley join TOKEN" in alone["try"], alone


def test_doctor_names_a_network_in_which_nothing_comes_in(motley, at):
    if shutil.which("nft") is None:
        pytest.skip("needs nft (nftables), to drop what comes in")
    drop = "add table inet t; add chain inet t in { type filter hook input priority 0; }; add rule inet t in udp dport 5353 drop"
    subprocess.run([*on("guest"), "nft", drop], check=True)
    try:
        deaf = finding(motley, at("guest"))
        assert not deaf["good"] and "is not heard on eth0" in deaf["text"] and deaf["try"], deaf
    finally:
        subprocess.run([*on("guest"), "nft", "delete table inet t"], check=True)
