"""Gradients and weights in fewer bits teach a model as much: a script with two workers on connections of their own, against a plain loop.

Losses of single steps differ as soon as weights do; what must agree is what was learned: the mean loss of the last epochs.
"""

import statistics

import pytest

import cases
from conftest import SCRIPTS
from program import settings
from test_parity import loop

LAST = 14  # steps, of two epochs


# The coarsest says most of what is left for the next step; the others follow the same way with less.
@pytest.mark.parametrize("up, down, limit", [("int4", "int4", 0.01), pytest.param("int8", "int8", 0.005, marks=pytest.mark.nightly),
                                             pytest.param("bf16", "bf16", 0.005, marks=pytest.mark.nightly)])
def test_learns_as_much_as_fp32(motley, up, down, limit):
    script, case = str(SCRIPTS / "train_case.py"), cases.make("wide")
    exact, _ = loop(case)
    token = ["--token-file", "token"]
    words = settings(train_min_workers=2, train_shares="[5,3]", wire_gradients=up, wire_weights=down)
    # The head has no device, so everything travels.
    head = motley.start("train", script, "wide", "--run", "run", "--listen", "127.0.0.1:0", "--device", "none", *token, *words)
    workers = [motley.start("join", *token, script, "wide", "--name", name, "--device", "cpu", "--threads", "1") for name in "ab"]
    assert head.end() == 0, head.story()
    assert [worker.end() for worker in workers] == [0, 0], workers[0].story()
    motley.audit("run")
    found = list(head.losses().values())
    assert found != exact and exact[-1] < 0.8 * exact[0]
    assert statistics.fmean(found[-LAST:]) == pytest.approx(statistics.fmean(exact[-LAST:]), rel=limit)
