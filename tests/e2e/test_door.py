"""Floods of bare connections keep nobody out who has the token: a machine joins, is killed and is back at its first attempt.

Needs root, network namespaces and tc; skipped where they are missing.
"""

import contextlib
import pathlib
import subprocess
import sys
import time

import pytest

import wire
from program import Starter, arguments, settings
from test_lab import lab, laboratory, on

pytestmark = pytest.mark.alone

FLOOD = pathlib.Path(__file__).with_name("flood.py")
OTHERS = [f"10.77.0.{number}" for number in range(60, 250)]
# From how many addresses, and how many a second.
FLOODS = {"own address": ("worker", 200, []), "many addresses": ("crowd", 1000, OTHERS)}


@contextlib.contextmanager
def flooded(kind, port):
    host, rate, sources = FLOODS[kind]
    for source in sources:
        subprocess.run(["ip", "-n", f"lab-{host}", "address", "add", f"{source}/24", "dev", "eth0"], check=True)
    process = subprocess.Popen([*on(host), sys.executable, str(FLOOD), lab("ip", "head"), str(port), str(rate), *sources],
                               stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "flooding\n"
        yield
        assert process.poll() is None, "the flood ended by itself"
    finally:
        process.kill()
        process.wait()


def join(motley, head):
    """Seconds until the head counts it in; at its first attempt."""
    before, began = head.seen(), time.monotonic()
    worker = motley.start("join", "--token-file", "token", "--name", "worker", prefix=on("worker"))
    head.wait_event("worker", after=before, worker="worker/cpu", where=lambda e: e["change"] in ("joined", "readmitted"))
    took = time.monotonic() - began
    assert [e["change"] for e in worker.named("worker")] in ([], ["joined"]), worker.story()
    return worker, took


@pytest.mark.parametrize("kind", FLOODS)
def test_who_has_the_token_comes_in_and_back(motley_path, tmp_path, kind):
    with laboratory({"head": 0.6, "worker": 0.5, "crowd": 0.5}), Starter(motley_path, tmp_path) as motley:
        head = motley.start("train", "softmax", *arguments(samples=20000, features=64, test=0),
                            *settings(train_global_batch=1024, train_steps=1000000),
                            "--device", "none", "--token-file", "token", "--listen", f"{lab('ip', 'head')}:0", prefix=on("head"))
        head.wait_event("run")
        with flooded(kind, wire.parse_token((tmp_path / "token").read_text())["port"]):
            worker, first = join(motley, head)
            worker.kill()
            head.wait_event("worker", worker="worker/cpu", change="lost")
            worker, again = join(motley, head)
            seen = head.seen()
            head.wait_event("step", after=seen)
            print(f"{kind}: joined after {first:.2f} s, back after {again:.2f} s", file=sys.stderr)
        head.stop()
