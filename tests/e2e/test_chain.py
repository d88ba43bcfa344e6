"""Weights from worker to worker (wire.chain), and gradients the other way, on several machines (tools/lab): who hands them on is killed,
stands still, comes back.

Needs root, network namespaces and tc; skipped where they are missing.
"""

import signal

import pytest

from program import Starter, settings
from test_lab import lab, laboratory, on, relative

pytestmark = pytest.mark.alone

HOSTS = {"head": 0.4, "first": 0.4, "second": 0.4, "third": 0.4}
FEATURES, CLASSES = 4096, 20
WEIGHTS = 4 * FEATURES * CLASSES  # bytes
RUN = settings(data_uri=f"synthetic:1000:{FEATURES}:{CLASSES}", data_test_uri="", train_global_batch=100, train_seed=5, optimizer_lr=0.02,
               train_verify=0, train_shares="[1,1,1,1,1,1,1,1]")


def followers(step):
    """Who computed something in a step, and got no more from the head meanwhile than hashes: the weights are four times as much in int8."""
    return {part["worker"].split("/")[0] for part in step["workers"]
            if part["samples"] and part["worker"] != "head/cpu" and 0 < part["received_bytes"] < WEIGHTS / 16}


def adders(step):
    """Who computed something in a step and sent the head next to nothing of it."""
    return {part["worker"].split("/")[0] for part in step["workers"]
            if part["samples"] and part["worker"] != "head/cpu" and 0 < part["sent_bytes"] < WEIGHTS / 16}


def evenly(step):
    return [part["samples"] for part in step["workers"]] == [25] * 4


def start_all(motley, run, *more):
    head = motley.start("train", "softmax", *RUN, *settings(train_min_workers=4, train_micro_batch=25), *more, "--run", run,
                        "--device", "cpu", "--threads", "1", "--name", "head", "--token-file", run + ".token",
                        "--listen", f"{lab('ip', 'head')}:7117", prefix=on("head"))
    return head, {host: motley.start("join", "--token-file", run + ".token", "--name", host, "--threads", "1", prefix=on(host))
                  for host in ("first", "second", "third")}


@pytest.mark.parametrize("weights", ["fp32", "int8"])
def test_chain_breaks_and_is_made_anew(motley_path, tmp_path, weights):
    with laboratory(HOSTS), Starter(motley_path, tmp_path) as motley:
        chain = settings(train_steps=100000, train_min_workers=4, wire_chain="weights", wire_weights=weights)
        head = motley.start("train", "softmax", *RUN, *chain, "--run", "run", "--device", "cpu", "--threads", "1", "--name", "head",
                            "--token-file", "token", "--listen", f"{lab('ip', 'head')}:7117", prefix=on("head"))
        workers = {}

        def join(host):
            workers[host] = motley.start("join", "--token-file", "token", "--name", host, "--threads", "1", prefix=on(host))

        def chained(count):
            return head.wait_event("step", lambda step: len(followers(step)) == count, head.seen())

        for host in ("first", "second", "third"):
            join(host)
        chained(2)
        before = head.seen()
        workers["second"].signal(signal.SIGSTOP)
        head.wait_event("worker", after=before, worker="second/cpu", change="lost")
        head.wait_share("third/cpu", head.seen())
        workers["second"].signal(signal.SIGCONT)
        head.wait_event("worker", after=before, worker="second/cpu", change="readmitted")
        chained(2)
        before = head.seen()
        workers["first"].kill()
        head.wait_event("worker", after=before, worker="first/cpu", change="lost")
        chained(1)
        join("first")
        head.wait_event("worker", after=before, worker="first/cpu", change="readmitted")
        chained(2)
        head.stop()
        audit = motley.audit("run")
        losses = head.losses()
        alone = motley.run("train", "softmax", *RUN, *settings(train_steps=len(losses)), "--run", "alone", "--device", "cpu",
                           "--listen", "127.0.0.1:0")
        assert alone.process.returncode == 0, alone.story()
    assert audit["samples"] == 100 * len(losses)
    assert relative(losses, alone.losses()) < (1e-4 if weights == "fp32" else 1e-2)


@pytest.mark.parametrize("gradients", ["fp32", "int8"])
def test_gradients_are_added_up_on_the_way(motley_path, tmp_path, gradients):
    with laboratory(HOSTS), Starter(motley_path, tmp_path) as motley:
        both = settings(train_steps=100000, wire_chain="both", wire_gradients=gradients)
        head, workers = start_all(motley, "run", *both)

        def added(count):
            return head.wait_event("step", lambda step: len(adders(step)) == count, head.seen())

        added(2)
        for host in sorted(adders(added(2))):
            before = head.seen()
            workers[host].kill()
            head.wait_event("worker", after=before, worker=host + "/cpu", change="lost")
            added(1)
            workers[host] = motley.start("join", "--token-file", "run.token", "--name", host, "--threads", "1", prefix=on(host))
            head.wait_event("worker", after=before, worker=host + "/cpu", change="readmitted")
            added(2)
        head.stop()
        losses = head.losses()
        audit = motley.audit("run")
        alone = motley.run("train", "softmax", *RUN, *settings(train_steps=len(losses)), "--run", "alone", "--device", "cpu",
                           "--listen", "127.0.0.1:0")
        assert alone.process.returncode == 0, alone.story()
    assert audit["samples"] == 100 * len(losses)
    assert relative(losses, alone.losses()) < (1e-4 if gradients == "fp32" else 1e-2)


def test_which_way_is_faster_is_tried(motley_path, tmp_path):
    with laboratory(HOSTS), Starter(motley_path, tmp_path) as motley:
        head, _ = start_all(motley, "run", *settings(train_steps=100000, wire_chain="auto"))
        head.wait_event("step", lambda step: step["chain"]["trying"] and len(adders(step)) == 2)
        for way in ("weights", "none"):
            head.wait_event("step", lambda step: step["chain"]["trying"] and step["chain"]["way"] == way)
        # Which one it is depends on the machine.
        settled = head.wait_event("step", lambda step: not step["chain"]["trying"], head.seen())
        assert "measured" in settled["chain"]["why"]
        head.wait_text(settled["chain"]["why"])
        head.stop()
        losses = head.losses()
        audit = motley.audit("run")
        alone = motley.run("train", "softmax", *RUN, *settings(train_steps=len(losses)), "--run", "alone", "--device", "cpu",
                           "--listen", "127.0.0.1:0")
        assert alone.process.returncode == 0, alone.story()
    assert audit["samples"] == 100 * len(losses)
    assert relative(losses, alone.losses()) < 1e-4


def test_the_bits_are_those_without_a_chain(motley_path, tmp_path):
    with laboratory(HOSTS), Starter(motley_path, tmp_path) as motley:
        def run(name, *more):
            head, workers = start_all(motley, name, *more)
            assert head.end() == 0, head.story()
            for worker in workers.values():
                worker.end()
            return head.named("step")

        joint = run("joint", *settings(train_steps=120, wire_chain="both"))
        alike = run("alike", *settings(train_steps=120))
    assert any(len(adders(step)) == 2 for step in joint)
    for step, other in zip(joint, alike):
        if not (evenly(step) and evenly(other)):  # somebody was late on a busy machine, and others did his part: another cut
            break
        assert step["loss"] == other["loss"], step["step"]
