"""Rounds of local steps: what they come to where they must be exact steps, alone twice, and with a machine that dies inside of them."""

import hashlib
import pathlib

from program import settings

RUN = settings(data_uri="synthetic:4000:64:10", data_test_uri="synthetic:500:64:10", train_seed=5, optimizer_lr=0.02, train_verify=0)
LOCAL = ["--listen", "127.0.0.1:0", "--token-file", "token"]
LOSS_OFF = 1e-6  # of the loss of a step


def rounds(steps, rate=0.6, momentum=0.9):
    return ["--set", "train.mode=rounds", "--set", f"train.rounds.steps={steps}", "--set", f"train.rounds.rate={rate}",
            "--set", f"train.rounds.momentum={momentum}"]


def alone(motley, run, *words):
    program = motley.run("train", "softmax", *RUN, *words, "--run", run, "--device", "cpu", "--listen", "127.0.0.1:0")
    assert program.process.returncode == 0, program.story()
    return program


def weights(motley, run):
    checkpoints = pathlib.Path(motley.directory, run, "checkpoints")
    newest = checkpoints / (checkpoints / "latest").read_text().strip()
    return hashlib.sha256((newest / "model.safetensors").read_bytes()).hexdigest()


def test_one_step_a_round_is_an_exact_step(motley):
    batches = settings(train_global_batch=400, train_steps=100)
    exact = alone(motley, "exact", *batches).losses()
    head = motley.start("train", "softmax", *RUN, *batches, *rounds(1, 1, 0), *settings(train_min_workers=2, train_shares="[1,1]"),
                        "--run", "run", "--device", "cpu", *LOCAL)
    joiner = motley.start("join", "--token-file", "token", "--name", "guest")
    assert head.end() == 0, head.story()
    assert joiner.end() == 0, joiner.story()
    found = head.losses()
    assert list(found) == list(exact) and len(found) == 100
    assert max(abs(found[step] - exact[step]) for step in exact) < LOSS_OFF
    assert all(len(event["workers"]) == 2 for event in head.named("step"))
    assert motley.audit("run")["samples"] == 100 * 400


def test_alone_the_same_twice_and_better_than_at_first(motley):
    words = [*settings(train_global_batch=100, train_epochs=3, optimizer_kind="adamw"), *rounds(8)]
    first, again = alone(motley, "first", *words), alone(motley, "again", *words)
    assert first.losses() == again.losses()
    assert weights(motley, "first") == weights(motley, "again")
    assert motley.audit("first")["samples"] == 3 * 4000
    evaluations = [event["loss"] for event in first.named("eval")]
    assert len(evaluations) == 3 and evaluations[-1] < evaluations[0], evaluations


def test_a_joiner_is_killed_inside_of_rounds(motley):
    words = [*settings(train_global_batch=100, train_epochs=40, train_min_workers=2, train_shares="[1,1,1,1,1]", wire_gradients="int4"),
             *rounds(10)]
    head = motley.start("train", "softmax", *RUN, *words, "--run", "run", "--device", "cpu", *LOCAL)
    for _ in range(3):
        joiner = motley.start("join", "--token-file", "token", "--name", "guest")
        head.wait_event("step", lambda e: any(p["worker"] == "guest/cpu" for p in e["workers"]), after=head.seen())
        joiner.kill()
    assert head.end() == 0, head.story()
    assert motley.audit("run")["samples"] == 40 * 4000


def test_what_rounds_do_not_do_is_refused(motley):
    error = motley.fails("train", "softmax", *RUN, *rounds(4), *settings(train_drop_last="true"))
    assert "train.drop_last" in error["message"]
    error = motley.fails("train", "softmax", *RUN, *rounds(4), *settings(train_global_batch="auto"))
    assert "train.global_batch" in error["message"]
