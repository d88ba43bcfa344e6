"""Weights from worker to worker (wire.chain), on several machines (tools/lab): who hands them on is killed, stands still, comes back.

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
