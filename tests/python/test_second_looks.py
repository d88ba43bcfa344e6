"""Shares of a model that draws random numbers are computed twice, too, and come to the same."""

import pytest

from conftest import SCRIPTS

HERE = ["--listen", "127.0.0.1:0", "--device", "none", "--set", "train.min_workers=3", "--set", "train.shares=[1, 1, 1]"]


def trained(motley, run, *options):
    script, token = str(SCRIPTS / "drawing.py"), ["--token-file", f"token-{run}", "--threads", "1"]
    head = motley.start("train", script, "--run", run, *token, *HERE, *options)
    others = [motley.start("join", *token, script, "--name", name) for name in "abc"]
    assert [each.end() for each in (head, *others)] == [0, 0, 0, 0], head.story()
    return head


def test_what_draws_is_computed_twice_and_comes_to_the_same(motley):
    once, twice = trained(motley, "once", "--set", "train.verify=0"), trained(motley, "twice", "--set", "train.verify=0.5")
    (ended,) = twice.named("done")
    assert ended["verified_samples"] > 0 and once.named("done")[0]["verified_samples"] == 0
    assert twice.losses() == pytest.approx(once.losses(), rel=1e-5)
    assert {told["change"] for told in twice.named("worker")} <= {"joined", "left"}
    assert not any("differ" in line for line in twice.text), twice.story()
