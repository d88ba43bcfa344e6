"""Real raylets on unequal hosts of an emulated network (tools/lab): they are killed and come back, and nothing is left of them.

Needs root, network namespaces and tc; skipped where they are missing.
"""

import os
import signal
import sys

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install ray")

from processes import await_end, children, command_lines, parent  # noqa: E402
from program import PATIENCE_S, arguments, settings  # noqa: E402
from ray_cluster import CONFIG  # noqa: E402
from ray_hosts import RayHosts  # noqa: E402
from test_lab import laboratory  # noqa: E402

HOSTS = {"home": 1.6, "fast": 1.2, "slow": 0.6, "other": 0.6}  # cores, more than many a machine has: no speed is measured
RECIPE = ["softmax", *arguments(samples=20000, features=256, classes=20, test=0, lr=0.02),
          *settings(train_global_batch=2048, train_seed=5, train_epochs=100000, train_shares=[1])]


@pytest.fixture
def hosts():
    with laboratory(HOSTS), RayHosts(sys.executable, HOSTS, CONFIG) as hosts:
        yield hosts


def of(hosts, name, part):
    """The processes of a host with a word that ends so."""
    lines = command_lines()
    return [pid for pid in hosts.processes(name) if any(word.endswith(part) for word in lines.get(pid, []))]


def wait_share(head, name, after):
    """A host that comes back before Ray has noticed that it went is there twice, and has a longer name for the second time."""
    patient = 3 * PATIENCE_S  # Python itself takes its time on the slow hosts
    head.wait_until(lambda: any(part["worker"].startswith(name) and part["samples"]
                                for _, event in head.events[after:] if event["event"] == "step" for part in event["workers"]),
                    f"a share of {name}", patient)


def test_raylets_come_and_go(hosts, motley):
    head = motley.start("train", "--on", "ray", "--address", hosts.address, "--run", "run", *RECIPE,
                        prefix=hosts.on("home", motley.directory))
    for name in HOSTS:
        wait_share(head, name, 0)

    before, (worker,) = head.seen(), of(hosts, "fast", "join")
    os.kill(worker, signal.SIGKILL)
    head.wait_event("worker", after=before, worker="fast/cpu", change="lost")
    wait_share(head, "fast", head.seen())

    worker, = of(hosts, "other", "join")
    actor = parent(worker)
    left = [actor, *children(actor)]
    os.kill(actor, signal.SIGKILL)
    await_end(left)
    wait_share(head, "other", head.seen())

    before, left = head.seen(), hosts.processes("slow")[1:]
    raylet, = of(hosts, "slow", "raylet/raylet")
    os.kill(raylet, signal.SIGKILL)
    head.wait_event("worker", lambda e: e["change"] in ("left", "lost"), after=before, worker="slow/cpu")
    await_end(pid for pid in left if pid in of(hosts, "slow", "join"))
    hosts.stop("slow")
    await_end(left)
    before = head.seen()
    hosts.start("slow")
    wait_share(head, "slow", before)

    os.kill(of(hosts, "home", "train")[-1], signal.SIGINT)
    assert head.end(2 * PATIENCE_S) == 130, head.story()
    motley.audit("run")
    for name in reversed(HOSTS):
        left = hosts.processes(name)[1:]
        hosts.stop(name)
        await_end(left)
