"""One script on two machines of a network of their own (tools/lab): it trains together, and the result is that of a plain loop.

Needs root, network namespaces and tc; skipped where they are missing.
"""

import pytest

import cases
import plain
from conftest import SCRIPTS
from test_lab import lab, laboratory, on, samples_of
from test_parity import epochs_of, loop

HOSTS = {"head": 0.8, "other": 0.4}  # cores
STARTING_CORES = 1  # importing torch would take the slow one ten seconds


@pytest.fixture(scope="module")
def network():
    with laboratory(dict.fromkeys(HOSTS, STARTING_CORES)):
        yield


def test_a_script_trains_on_two_machines(network, motley):
    script = str(SCRIPTS / "train_case.py")
    head = motley.start("train", script, "--run", "run", "--device", "cpu", "--threads", "1", "--name", "head", "--token-file", "token",
                        "--listen", f"{lab('ip', 'head')}:7117", "--set", "train.min_workers=2", "--set", "train.shares=[2,1]", "groups",
                        prefix=on("head"))
    other = motley.start("join", "--token-file", "token", script, "--threads", "1", "--name", "other", "groups", prefix=on("other"))
    head.wait_event("worker", worker="other/cpu", change="joined")
    for name, cores in HOSTS.items():
        lab("cpu", name, str(cores))
    assert head.end() == 0, head.story()
    assert other.end() == 0, other.story()
    motley.audit("run")

    losses, tested = loop(cases.make("groups"))
    assert plain.worst_loss(head.losses(), losses) <= 1e-5
    assert epochs_of(head)[-1]["accuracy"] == tested[-1]["accuracy"]
    assert not epochs_of(other)  # the body runs on the head alone
    together = [samples_of(step, "other/cpu") > 0 for step in head.named("step")]  # what comes too late is computed by the head
    assert sum(together) > len(together) / 2
