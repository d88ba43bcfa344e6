"""Several runs of one script, and machines that joined once: pre-training, then fine-tuning; cross-validation."""

import fcntl
import json
import math
import pathlib
import shutil
import socket
import sys
import time

import pytest
import torch

import several
from conftest import SCRIPTS
from program import PATIENCE_S, settings
from sample_order import sample_order

SCRIPT = str(SCRIPTS / "several.py")
RUNS = {"folds": several.FOLDS, "tuned": 2, "normed": 2}
BOTH = settings(train_min_workers=2, train_shares=[2, 1], train_verify=0)
HERE = ["--run", "run", "--listen", "127.0.0.1:0", "--threads", "1", "--device", "cpu"]
ENDS_WITHIN_S = 30
HELD = {}  # open files of gates that are shut


class Plain:
    """A plain loop over the batches of motley.Run with the same arguments."""

    def __init__(self, model, loss, loader, optimizer, *, test=None, score=None, clip_norm=None, seed=1):
        self.model, self.loss, self.optimizer = model, loss, optimizer
        self.data, self.clip_norm, self.seed = loader.dataset, clip_norm, seed

    def losses(self):
        found, data = [], self.data
        for epoch in range(several.EPOCHS):
            sums, order = 0.0, sample_order(self.seed, epoch, len(data)).tolist()
            for first in range(0, len(order), several.BATCH):
                batch = torch.utils.data.default_collate([data[i] for i in order[first : first + several.BATCH]])
                self.optimizer.zero_grad()
                loss = self.loss(self.model, batch)
                loss.backward()
                if self.clip_norm:
                    torch.nn.utils.clip_grad_norm_([p for p in self.model.parameters() if p.requires_grad], self.clip_norm)
                self.optimizer.step()
                sums += loss.item() * len(batch[1])
            found.append(sums / len(data))
        return found


def plainly(what):
    """(losses by epoch, sum of all that the model holds) by run."""
    found = {}
    for number, losses, model in getattr(several, what)(Plain, lambda _, made: made.losses()):
        found[number] = losses, sum(float(tensor.detach().double().sum()) for tensor in model.state_dict().values())
    return found


def told(program):
    found = [json.loads(line.partition("told ")[2]) for line in program.text if "told {" in line]
    return {each["run"]: each for each in found}


def right(program, what, runs=None):
    expected, found = plainly(what), told(program)
    assert set(found) == set(runs or expected), program.story()
    for number, each in found.items():
        losses, weights = expected[number]
        assert len(each["losses"]) == len(losses)
        for a, b in zip(each["losses"], losses, strict=True):
            assert math.isclose(a, b, rel_tol=1e-5), (number, each["losses"], losses)
        assert math.isclose(each["weights"], weights, rel_tol=1e-4, abs_tol=1e-4), (number, each, weights)


def head_of(motley, what, *words, options=()):
    return motley.start("train", SCRIPT, *HERE, *options, what, *words)


def joiner(motley, *words, token="run/token", script=SCRIPT):
    return motley.start("join", "--token-file", token, script, "--threads", "1", "--device", "cpu", "--name", "other", *words)


def ends_with(joined, head):
    """The joiner ends soon after the head, and well."""
    assert head.end(5 * PATIENCE_S) == 0, head.story()
    ended = time.monotonic()
    assert joined.end() == 0, joined.story()
    assert time.monotonic() - ended < ENDS_WITHIN_S


def directories(what):
    return ["run", *(f"run-{number}" for number in range(2, RUNS[what] + 1))]


@pytest.mark.parametrize("what", ["folds", "tuned"])
def test_one_join_for_all_runs(motley, what):
    head = head_of(motley, what, options=BOTH)
    joined = joiner(motley, what)
    ends_with(joined, head)
    right(head, what)
    same = {number: each for number, each in told(head).items() if number < RUNS[what]}
    assert told(joined) == same, joined.story()
    tokens = {(motley.directory / run / name).read_text() for run in directories(what) for name in ("token", "key.pem")}
    assert len(tokens) == 2
    for run in directories(what):
        motley.audit(run)
    assert any("run 2 of the script, in " in line and "run-2" in line for line in head.text), head.story()
    assert all({part["worker"] for part in step["workers"]} >= {"other/cpu"} for step in head.named("step"))


def test_a_script_by_itself_too(motley):
    what = "folds"
    gates(motley)
    command, motley.path = motley.path, sys.executable
    head = motley.start(SCRIPT, what, "gates")
    motley.path = command
    joined = joiner(motley, "--json", "--", what, "gates", token="runs/several-1/token")  # the last word is the script's, as the head's is
    for number in range(1, RUNS[what] + 1):
        joined.wait_until(lambda number=number: times_joined(joined) >= number, f"it joins run {number}")
        open_gate(motley, number)
    open_gate(motley, "end")
    ends_with(joined, head)
    right(head, what)
    assert times_joined(joined) == RUNS[what]


def test_what_a_run_left_frozen_is_the_same_on_machines_that_join(motley):
    alone = head_of(motley, "normed")
    assert alone.end(5 * PATIENCE_S) == 0, alone.story()
    for run in directories("normed"):
        shutil.rmtree(motley.directory / run)
    head = head_of(motley, "normed", options=BOTH)
    joined = joiner(motley, "normed")
    ends_with(joined, head)
    for number, each in told(alone).items():
        assert told(head)[number]["losses"] == pytest.approx(each["losses"], rel=1e-5)
    assert told(joined) == {1: told(head)[1]}


def gates(motley):
    """Locked, until each is opened."""
    (motley.directory / "gates").mkdir()
    for name in ("1", "2", "3", "end"):
        path = motley.directory / "gates" / name
        HELD[path] = open(path, "w", encoding="utf-8")  # noqa: SIM115
        fcntl.flock(HELD[path], fcntl.LOCK_EX)


def open_gate(motley, name):
    HELD.pop(motley.directory / "gates" / str(name)).close()


def times_joined(program):
    return len(program.named("worker", change="joined"))


def test_who_joins_a_later_run_gets_what_the_first_left(motley):
    gates(motley)
    head = head_of(motley, "tuned", "gates")
    open_gate(motley, 1)
    head.wait_until(lambda: pathlib.Path(motley.directory, "run-2", "token").exists(), "the second run begins")
    joined = joiner(motley, "tuned", "gates")
    joined.wait_until(lambda: times_joined(joined), "it joins")
    open_gate(motley, 2)
    open_gate(motley, "end")
    ends_with(joined, head)
    right(head, "tuned")
    assert told(joined) == {1: told(head)[1]} and times_joined(joined) == 1


def test_resumed_goes_on_with_the_run_that_was_not_finished_and_the_joiner_stays(motley):
    gates(motley)
    head = head_of(motley, "folds", "gates")
    joined = joiner(motley, "folds", "gates")
    joined.wait_until(lambda: times_joined(joined) == 1, "it joins the first run")
    open_gate(motley, 1)
    joined.wait_until(lambda: times_joined(joined) == 2, "it joins the second run")
    head.wait_until(lambda: told(head).get(1), "the first run's result")
    first = told(head)[1]
    head.kill()
    for gate in (2, 3, "end"):
        open_gate(motley, gate)
    again = head_of(motley, "folds", "gates", options=["--resume", *settings(train_min_workers=2)])  # it waits until it is back
    ends_with(joined, again)
    assert again.named("step") and told(again)[1] == first
    expected = plainly("folds")
    for number, each in told(again).items():
        assert math.isclose(each["weights"], expected[number][1], rel_tol=1e-4, abs_tol=1e-4)
    for run in directories("folds"):
        motley.audit(run)


def test_resumed_when_all_is_done_gives_all_results(motley):
    head = head_of(motley, "tuned")
    assert head.end(5 * PATIENCE_S) == 0, head.story()
    again = head_of(motley, "tuned", options=["--resume"])
    assert again.end(5 * PATIENCE_S) == 0, again.story()
    assert not again.named("step") and told(again) == told(head)


def test_a_script_that_makes_fewer_runs_says_so(motley):
    text = (SCRIPTS / "several.py").read_text().replace("    yield 2, train(2, made), second\n", "    return\n")
    (motley.directory / "fewer.py").write_text(f"import sys\nsys.path.append({str(SCRIPTS)!r})\n{text}")
    gates(motley)
    head = head_of(motley, "tuned", "gates")
    joined = joiner(motley, "tuned", "gates", script="fewer.py")
    for gate in (1, "end"):
        open_gate(motley, gate)
    assert joined.end() == 1, joined.story()
    error = joined.error()
    assert error["code"] == "mismatch" and "ended here after run 1" in error["message"] and "same script" in error["try"]
    open_gate(motley, 2)
    assert head.end(5 * PATIENCE_S) == 0, head.story()
    right(head, "tuned")


def test_a_second_run_in_a_directory_that_has_one_is_refused(motley):
    head = head_of(motley, "tuned")
    assert head.end(5 * PATIENCE_S) == 0, head.story()
    shutil.rmtree(motley.directory / "run")
    error = motley.fails("train", SCRIPT, *HERE, "tuned")
    assert "run-2: there is a run already" in error["message"]


def test_a_port_that_is_taken_is_one_error(motley):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        error = motley.fails("train", SCRIPT, "--run", "run", "--listen", f"127.0.0.1:{port}", "tuned", status=1)
    assert error["code"] == "busy" and str(port) in error["message"]
