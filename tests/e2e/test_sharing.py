"""A worker on somebody's machine: it takes its share of the time, runs nicely, and pauses while it is in the way."""

import os
import shutil
import subprocess
import sys
import time

import pytest

from program import arguments, samples_of, settings

LOCAL = ["--listen", "127.0.0.1:0"]
DATA = [*arguments(samples=20000, features=784, classes=100, test=0, lr=0.02), *settings(train_global_batch=2048, train_seed=5)]
MANY = settings(train_steps=1000000)
# Given shares, so that the second worker has work on a busy machine too, where it would not pay.
TWO = settings(train_min_workers=2, train_shares=[1, 1], train_verify=0)
HOUR_S = 3600


def head(motley, *words):
    return motley.start("train", "softmax", *DATA, *words, "--run", "run", "--device", "cpu", "--threads", "1", "--name", "head",
                        "--token-file", "token", *LOCAL)


def wait_without(train, worker):
    train.wait_event("step", lambda e: samples_of(e, worker) == 0, after=train.seen())


@pytest.mark.alone  # a third process would take from one of the two
def test_half_of_the_time_is_half_the_samples(motley):
    """Two workers of one speed. Micro-batches are small, so that the one with half of the time also rests within a lease."""
    train = motley.start("train", "softmax", *DATA, *MANY, *settings(train_min_workers=2, train_global_batch=4096, train_micro_batch=128),
                         "--run", "run", "--device", "none", "--token-file", "token", *LOCAL)
    whole = motley.start("join", "--token-file", "token", "--name", "whole", "--threads", "1")
    half = motley.start("join", "--token-file", "token", "--name", "half", "--threads", "1", "--share", "0.5")
    train.wait_step(60)
    train.stop()
    steps = train.named("step")[20:60]
    ratio = sum(samples_of(s, "whole/cpu") for s in steps) / max(1, sum(samples_of(s, "half/cpu") for s in steps))
    print(f"\n{ratio:.2f} : 1")
    # About two to one, and more where both share a core; how much is the machine's affair (tests/unit/runtime/duty_cycle_test.cpp).
    assert ratio > 1, ratio
    motley.audit("run")
    for joiner in (whole, half):
        joiner.interrupt()
        assert joiner.end() == 0, joiner.story()


def threads_of(pid):
    """Processor time and niceness of each thread of a process."""
    threads = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/stat") as file:
            words = file.read().rpartition(")")[2].split()
        with open(f"/proc/{pid}/task/{thread}/schedstat") as file:  # in ns: a fast machine computes its steps within a tick
            threads[int(thread)] = (int(file.read().split()[0]), int(words[16]))
    return threads


def niceness(pid, before):
    """Of the thread that worked most since `before`, and of the first."""
    threads = threads_of(pid)
    busiest = max(threads, key=lambda thread: threads[thread][0] - before.get(thread, (0, 0))[0])
    return threads[busiest][1], threads[pid][1]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("words, added", [([], 10), (["--nice", "3"], 3), (["--nice", "0"], 0)], ids=["default", "3", "0"])
def test_joined_workers_compute_nicely(motley, words, added):
    train = head(motley, *MANY, *TWO)
    joiner = motley.start("join", "--token-file", "token", "--name", "guest", "--threads", "1", *words)
    train.wait_share("guest/cpu", train.seen())
    before = [threads_of(program.pid) for program in (joiner, train)]
    train.wait_step(train.named("step")[-1]["step"] + 30)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert niceness(joiner.pid, before[0]) == (max(own, added), own)
    assert niceness(train.pid, before[1]) == (own, own)


# --- pausing ---------------------------------------------------------------------------------------------------------------

class Machine:
    """What the system says of itself, in files of the test's: mounted over the system's own for one program alone."""

    PLACES = {"pts": "/dev/pts", "power": "/sys/class/power_supply", "stat": "/proc/stat"}

    def __init__(self, directory):
        self.directory = directory
        for name in ("pts", "power/AC", "power/BAT0"):
            (directory / name).mkdir(parents=True)
        (directory / "stat").write_text("cpu  1 2 3 4 5 6 7 8 0 0\n")
        (directory / "power/AC/type").write_text("Mains\n")
        (directory / "power/BAT0/type").write_text("Battery\n")
        (directory / "pts/0").write_text("")
        self.plugged(True)
        self.typed(HOUR_S)
        mounts = " && ".join(f"mount --bind {directory / name} {place}" for name, place in self.PLACES.items())
        self.prefix = ["unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh"]

    def plugged(self, plugged):
        (self.directory / "power/BAT0/status").write_text("Charging\n" if plugged else "Discharging\n")
        (self.directory / "power/AC/online").write_text("1\n" if plugged else "0\n")

    def typed(self, ago_s):
        os.utime(self.directory / "pts/0", times=(time.time() - ago_s,) * 2)


@pytest.fixture
def machine(tmp_path):
    made = Machine(tmp_path / "machine")
    if not shutil.which("unshare") or subprocess.run([*made.prefix, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs root, to mount files over those of the system")
    return made


@pytest.mark.parametrize("words, begin, end, why", [
    (["--battery", "pause"], lambda m: m.plugged(False), lambda m: m.plugged(True), "paused: on battery"),
    (["--idle-only"], lambda m: m.typed(0), lambda m: m.typed(HOUR_S), "paused: somebody is using this machine"),
], ids=["battery", "in use"])
def test_pauses_and_comes_back(motley, machine, words, begin, end, why):
    train = head(motley, *MANY, *TWO)
    joiner = motley.start("join", "--token-file", "token", "--name", "guest", "--threads", "1", *words, prefix=machine.prefix)
    train.wait_share("guest/cpu", train.seen())
    for _ in range(2):
        at, mine = train.seen(), joiner.seen()
        begin(machine)
        left = joiner.wait_event("worker", after=mine, change="left")
        assert left["reason"] == why, left
        train.wait_event("worker", after=at, worker="guest/cpu", change="left")
        wait_without(train, "guest/cpu")
        mine = joiner.seen()
        end(machine)
        train.wait_event("worker", after=at, worker="guest/cpu", change="readmitted")
        joiner.wait_event("worker", after=mine, change="readmitted")
        train.wait_share("guest/cpu", train.seen())
    train.stop()
    assert not train.named("worker", change="lost") and not joiner.named("error"), train.story()
    assert joiner.text.count(why) == 2 and joiner.text.count("resumed") == 2, joiner.text
    motley.audit("run")
    joiner.interrupt()
    assert joiner.end() == 0, joiner.story()


def test_starts_paused_and_can_be_stopped(motley, machine):
    machine.plugged(False)
    train = head(motley, *MANY)
    joiner = motley.start("join", "--token-file", "token", "--name", "guest", "--battery", "pause", prefix=machine.prefix)
    joiner.wait_text("paused: on battery")
    train.wait_step(20)
    assert not train.named("worker", worker="guest/cpu")
    joiner.interrupt()
    assert joiner.end() == 0, joiner.story()


def test_neither_is_asked_for_by_default(motley, machine):
    machine.plugged(False)
    machine.typed(0)
    train = head(motley, *MANY, *TWO)
    joiner = motley.start("join", "--token-file", "token", "--name", "guest", "--threads", "1", prefix=machine.prefix)
    train.wait_share("guest/cpu", train.seen())
    assert not any("paused" in line for line in joiner.text), joiner.text
