"""A script on a machine with two devices: the first computes in the script's process, the second in one of its own, which ends with it."""

import os
import signal
import sys
from types import SimpleNamespace

import pytest

import cases
import plain
from conftest import SCRIPTS
from motley import _core, _launch
from motley._machines._siblings import Siblings
from processes import await_end, having
from program import settings
from test_parity import loop

SCRIPT = str(SCRIPTS / "two_devices.py")
HERE = ["--run", "run", "--listen", "127.0.0.1:0", "--name", "head", "--token-file", "token"]
BOTH = settings(train_min_workers=2, train_shares=[2, 1], train_verify=0)
ENDLESS = ["wide", "1000000"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")


def siblings(motley):
    return having("join", "-", SCRIPT, below=motley.directory)


def start(motley, *words):
    return motley.start("train", SCRIPT, *HERE, "--threads", "1", *words)


def sibling_of(motley, head):
    """Its number, when it computes."""
    head.wait_share("head/cpu:1")
    process, = siblings(motley)
    return process


def test_a_run_of_two_processes_follows_the_plain_loop(motley):
    case = cases.make("groups")
    losses, _ = loop(case)
    head = start(motley, *BOTH, "groups", str(case.epochs))
    sibling = sibling_of(motley, head)
    assert head.end() == 0, head.story()
    await_end([sibling])
    assert plain.worst_loss(head.losses(), losses) <= 1e-5
    assert head.workers() == {"head/cpu:0", "head/cpu:1"}
    motley.audit("run")


def test_a_script_by_itself_is_such_a_run(motley):
    motley.path = sys.executable
    head = motley.start(SCRIPT, *ENDLESS)
    head.wait_text("/cpu:1 joined")
    sibling, = siblings(motley)
    head.interrupt()
    head.end()
    await_end([sibling])


@pytest.mark.parametrize("script", [[SCRIPT], ["--fetch", "--yes"]], ids=["script", "--fetch"])
def test_a_machine_joins_with_both(motley, monkeypatch, script):
    monkeypatch.setenv("HOME", str(motley.directory))
    case = cases.make("groups")
    head = start(motley, "--device", "none", *BOTH, "groups", str(case.epochs))
    words = [*script, "groups", str(case.epochs)] if SCRIPT in script else script
    other = motley.start("join", "--token-file", "token", *words, "--threads", "1", "--name", "other")
    assert head.end() == 0, head.story()
    assert other.end() == 0, other.story()
    assert head.workers() == {"other/cpu:0", "other/cpu:1"}
    assert plain.worst_loss(head.losses(), loop(case)[0]) <= 1e-5
    assert not having("join", "-", below=motley.directory)


def test_a_machine_stays_with_the_device_that_works(motley):
    head = start(motley, "--device", "none", *ENDLESS, "lacks")
    other = motley.start("join", "--token-file", "token", SCRIPT, *ENDLESS, "lacks", "--threads", "1", "--name", "other")
    other.wait_text("cannot be put on cuda:7")
    head.wait_share("other/cpu:1")
    head.stop()
    other.interrupt()
    other.end()
    assert not siblings(motley)


def test_a_plan_measures_both(motley):
    head = motley.run("plan", SCRIPT, "--listen", "127.0.0.1:0", "--name", "head", "--threads", "1", "--seconds", "1", *ENDLESS)
    assert head.process.returncode == 0, head.story()
    assert set(head.named("plan")[0]["shares"]) == {"head/cpu:0", "head/cpu:1"}
    assert not siblings(motley)


def test_a_plan_is_interrupted(motley):
    head = motley.start("plan", SCRIPT, "--listen", "127.0.0.1:0", "--name", "head", "--threads", "1", "--seconds", "3600", *ENDLESS)
    head.wait_event("worker", worker="head/cpu:1", change="joined")
    head.interrupt()
    assert head.end() == 130 and head.error()["code"] == "interrupted", head.story()
    assert not siblings(motley)


def test_who_is_killed_comes_back(motley):
    head = start(motley, *BOTH, *ENDLESS)
    killed = sibling_of(motley, head)
    before = head.seen()
    os.kill(killed, signal.SIGKILL)
    head.wait_event("worker", lambda e: e["change"] in ("joined", "readmitted"), before, worker="head/cpu:1")
    head.wait_share("head/cpu:1", head.seen())
    sibling, = siblings(motley)
    assert sibling != killed
    head.stop()
    await_end([sibling])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nobody_outlives_a_head_that_is_killed(motley, number):
    head = start(motley, *BOTH, *ENDLESS)
    sibling = sibling_of(motley, head)
    head.signal(number)
    head.end()
    await_end([sibling])


def test_nobody_outlives_a_script_that_fails(motley):
    head = start(motley, *BOTH, *ENDLESS, "raises")
    assert head.end() == 1 and "enough" in head.error()["message"], head.story()
    assert not siblings(motley)


def test_a_run_that_ends_at_once_waits_for_nobody(motley):
    head = start(motley, *settings(train_steps=1), *ENDLESS)
    assert head.end() == 0, head.story()
    assert not siblings(motley)


def test_both_go_on_with_a_run(motley):
    head = start(motley, *BOTH, *ENDLESS)
    sibling_of(motley, head)
    head.interrupt()
    assert head.end() == 130 and not siblings(motley), head.story()
    again = start(motley, "--resume", *BOTH, *ENDLESS)
    sibling_of(motley, again)
    assert again.named("step")[0]["step"] == head.named("step")[-1]["step"] + 1
    again.interrupt()
    assert again.end() == 130 and not siblings(motley), again.story()


def test_one_device_twice_stays_in_one_process(motley):
    head = start(motley, "--device", "cpu:1", "--device", "cpu:1", *BOTH, *ENDLESS)
    head.wait_share("head/cpu:1#2")
    assert not siblings(motley)
    head.interrupt()
    head.end()


def test_who_cannot_work_is_named(motley):
    head = start(motley, *ENDLESS, "fails")
    head.wait_text("cpu:1: its process ended with status 1: ")
    head.wait_share("head/cpu:0", head.seen())
    head.stop()
    assert "not as a worker" in motley.fails("plan", SCRIPT, "--listen", "127.0.0.1:0", *ENDLESS, "fails")["message"]


def test_a_loop_of_ones_own_runs_in_both(motley):
    case = cases.make("groups")
    head = start(motley, *BOTH, "groups", str(case.epochs), "leases")
    assert head.end() == 0 and not siblings(motley), head.story()
    assert head.workers() == {"head/cpu:0", "head/cpu:1"}
    assert plain.worst_loss(head.losses(), loop(case)[0]) <= 1e-5


def run_of(monkeypatch, script, main=SCRIPT, spec=None):
    """The launch of a process whose main module is this."""
    launch = _core.Launch()
    launch.script = script
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__file__=main, __spec__=spec))
    return launch


@pytest.mark.parametrize("what", [{"main": None}, {"main": __file__}, {"spec": __spec__}, {"script": SCRIPT + ".py"}, {"script": "-c"}])
def test_what_no_other_process_could_run(monkeypatch, what):
    """A notebook, another program that calls itself so, python -m, a file that is gone, no file."""
    assert _launch.is_script(run_of(monkeypatch, SCRIPT))
    assert not _launch.is_script(run_of(monkeypatch, **{"script": SCRIPT, **what}))


def test_devices_by_process(monkeypatch):
    monkeypatch.setattr(_core, "chosen_devices", lambda *_: ["mps", "cpu", "mps", "cuda:1"])
    launch = run_of(monkeypatch, SCRIPT)
    made = Siblings(launch, None)
    assert (launch.devices, made.others, made.workers) == (["mps", "mps"], [["cpu"], ["cuda:1"]], 4)
    launch = run_of(monkeypatch, "-c")
    made = Siblings(launch, None)
    assert (launch.devices, made.others, made.workers) == ([], [], 4)
