"""Rounds of local steps: what they come to where they must be exact steps, alone twice, and with a machine that dies inside of them."""

import hashlib
import json
import pathlib
import signal
import struct
import subprocess

import ledger
import made_up
import numpy as np
import pytest
from program import arguments, settings

MADE_UP = {"samples": 4000, "features": 64, "classes": 10, "test": 500, "lr": 0.02}
SEEDED = settings(train_seed=5, train_verify=0)
RUN = [*arguments(**MADE_UP), *SEEDED]
LOCAL = ["--listen", "127.0.0.1:0", "--token-file", "token"]
LOSS_OFF = 1e-6  # of the loss of a step
PLAIN_OFF = 1e-5  # of the norm of the weights
SAMPLES, FEATURES, CLASSES, BATCH, RATE = 400, 12, 4, 40, 0.05  # of the runs beside the plain program


def rounds(steps, rate=None, momentum=0.9, overlap="none"):
    """`rate`: none, then it follows the number of workers."""
    own = [] if rate is None else ["--set", f"train.rounds.rate={rate}"]
    words = [*own, "--set", f"train.rounds.momentum={momentum}", "--set", f"train.rounds.overlap={overlap}"]
    return ["--set", "train.mode=rounds", "--set", f"train.rounds.steps={steps}", *words]


def alone(motley, run, *words, data=MADE_UP):
    here = ["--run", run, "--device", "cpu", "--listen", "127.0.0.1:0"]
    program = motley.run("train", "softmax", *arguments(**data), *SEEDED, *words, *here)
    assert program.process.returncode == 0, program.story()
    return program


def model(motley, run):
    checkpoints = pathlib.Path(motley.directory, run, "checkpoints")
    newest = checkpoints / (checkpoints / "latest").read_text().strip()
    return (newest / "model.safetensors").read_bytes()


def tensors(content):
    size = struct.unpack("<Q", content[:8])[0]
    entries = json.loads(content[8:8 + size])
    entries.pop("__metadata__", None)
    body = content[8 + size:]
    return {name: np.frombuffer(body[slice(*e["data_offsets"])], dtype="<f4").reshape(e["shape"]).astype(np.float64)
            for name, e in entries.items()}


class Inner:
    """A worker's own optimizer: Adam, SGD with momentum, or plain SGD, which remembers nothing."""

    def __init__(self, kind, size):
        self.kind, self.steps = kind, 0
        self.m, self.v = np.zeros(size), np.zeros(size)

    def step(self, w, g):
        self.steps += 1
        if self.kind == "plain":
            return w - RATE * g
        if self.kind == "sgd":
            self.m = g if self.steps == 1 else 0.9 * self.m + g
            return w - RATE * self.m
        self.m, self.v = 0.9 * self.m + 0.1 * g, 0.999 * self.v + 0.001 * g * g
        root = np.sqrt(self.v) / np.sqrt(1 - 0.999 ** self.steps)
        return w - RATE / (1 - 0.9 ** self.steps) * self.m / (root + 1e-8)


def gradient(w, x, y):
    """Of the mean loss of softmax regression, as one vector: weight, then bias."""
    features = x.shape[1]
    weight, bias = w[:CLASSES * features].reshape(CLASSES, features), w[CLASSES * features:]
    scores = x @ weight.T + bias
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y] -= 1
    return np.concatenate([(p.T @ x / len(y)).ravel(), p.mean(axis=0)])


def outer_rate(workers):
    return float(np.interp(workers, [1, 2, 4, 8], [0.4, 0.6, 0.6, 0.8]))


def plain(x, y, order, rounds_of, kind):
    """The same rounds as loops over numpy arrays: `order` by epoch, `rounds_of` the shares of workers by round."""
    w = np.zeros(CLASSES * x.shape[1] + CLASSES)
    momentum = None
    inner = {}
    at = {epoch: 0 for epoch in order}
    for epoch, shares in rounds_of:
        total = sum(count for _, count in shares)
        steps = -(-total // BATCH)
        change = np.zeros_like(w)
        for worker, count in shares:
            samples = order[epoch][at[epoch]:at[epoch] + count]
            at[epoch] += count
            own = inner.setdefault(worker, Inner(kind, w.size))
            there = w
            for k in range(steps):
                part = samples[count * k // steps:count * (k + 1) // steps]
                there = own.step(there, gradient(there, x[part], y[part]))
            change += count * (w - there)
        change /= total
        momentum = change if momentum is None else 0.9 * momentum + change
        w = w - outer_rate(len(shares)) * (change + 0.9 * momentum)
    return w


def weights(motley, run):
    return hashlib.sha256(model(motley, run)).hexdigest()


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
    words, by_adam = [*settings(train_global_batch=100, train_epochs=3), *rounds(8)], {**MADE_UP, "optimizer": "adam"}
    first, again = (alone(motley, run, *words, data=by_adam) for run in ("first", "again"))
    assert first.losses() == again.losses()
    assert weights(motley, "first") == weights(motley, "again")
    assert motley.audit("first")["samples"] == 3 * 4000
    evaluations = [event["loss"] for event in first.named("eval")]
    assert len(evaluations) == 3 and evaluations[-1] < evaluations[0], evaluations


@pytest.mark.parametrize("overlap", ["none", "next"])
def test_joiners_are_killed_inside_of_rounds(motley, overlap):
    large = arguments(**MADE_UP | {"features": 512})  # of more than 4,096 numbers
    words = [*settings(train_global_batch=100, train_epochs=300, train_min_workers=4, train_shares="[1,1,1,1]"),
             *settings(wire_gradients="int4"), *rounds(10, overlap=overlap)]
    head = motley.start("train", "softmax", *large, *SEEDED, *words, "--run", "run", "--device", "cpu", *LOCAL)
    names = ["anna", "berta", "carla"]
    guests = {name: motley.start("join", "--token-file", "token", "--name", name) for name in names}
    for name in names:
        head.wait_event("step", lambda e, name=name: any(p["worker"] == f"{name}/cpu" for p in e["workers"]), after=head.seen())
        guests[name].kill()
    assert head.end() == 0, head.story()
    assert motley.audit("run")["samples"] == 300 * 4000
    assert any("ahead" in part for event in head.named("step") for part in event["workers"]) == (overlap == "next")


def test_the_head_is_killed_inside_of_rounds(motley):
    """Its workers remember nothing from round to round, so that each round made again is the same. Who is alone begins none ahead."""
    words = settings(train_global_batch=100, train_epochs=200, train_checkpoint_seconds=0.2)
    alone(motley, "whole", *words, *rounds(8))
    words = [*words, *rounds(8, overlap="next")]
    head = motley.start("train", "softmax", *RUN, *words, "--run", "run", "--device", "cpu", *LOCAL)
    for _ in range(5):
        head.wait_event("step", after=head.seen())
        head.kill()
        head = motley.start("train", "--resume", "--run", "run", "--device", "cpu", *LOCAL)
    assert head.end() == 0, head.story()
    assert weights(motley, "run") == weights(motley, "whole")
    assert motley.audit("run")["samples"] == 200 * 4000


@pytest.mark.parametrize("overlap", ["none", "next"])
def test_all_are_killed_inside_of_rounds(motley, overlap):
    words = [*settings(train_global_batch=100, train_epochs=300, train_min_workers=2, train_shares="[1,1,1]",
                       train_checkpoint_seconds=0.2), *rounds(10, overlap=overlap)]
    head = motley.start("train", "softmax", *RUN, *words, "--run", "run", "--device", "cpu", *LOCAL)
    guest = motley.start("join", "--token-file", "token", "--name", "guest")
    for _ in range(2):
        head.wait_event("step", lambda e: len(e["workers"]) == 2, after=head.seen())
        guest.kill()
        head.wait_event("step", lambda e: len(e["workers"]) == 1, after=head.seen())
        head.kill()
        head = motley.start("train", "--resume", "--run", "run", "--device", "cpu", *LOCAL)
        guest = motley.start("join", "--token-file", "token", "--name", "guest")
    assert head.end() == 0, head.story()
    assert motley.audit("run")["samples"] == 300 * 4000


def test_what_a_stopped_run_owes_is_not_missing(motley):
    # Rounds that take longer than to tell of one and to be interrupted.
    large = arguments(samples=10000, features=4096, classes=60, test=0, lr=0.02)
    words = [*settings(train_global_batch=1000, train_epochs=12, train_min_workers=2, train_shares="[1,1]"), *rounds(10)]
    head = motley.start("train", "softmax", *large, *SEEDED, *words, "--run", "run", "--device", "cpu", *LOCAL)
    guest = motley.start("join", "--token-file", "token", "--name", "guest")
    head.wait_event("step", lambda e: len(e["workers"]) == 2)
    guest.signal(signal.SIGSTOP)
    head.wait_event("step", lambda e: len(e["workers"]) == 1, after=head.seen())
    head.stop()
    guest.kill()
    stopped = motley.audit("run")
    assert stopped["owed"] > 0 and stopped["missing"] == stopped["duplicate"] == 0
    head = motley.start("train", "--resume", "--run", "run", "--device", "cpu", *LOCAL)
    motley.start("join", "--token-file", "token", "--name", "another")
    assert head.end() == 0, head.story()
    whole = motley.audit("run")
    assert whole["samples"] == 12 * 10000 and whole["owed"] == 0


def test_a_run_without_a_published_price_has_no_momentum(motley):
    """Its rounds make the mean of what the workers came to; a run that goes on reads that."""
    words = [*settings(train_mode="rounds", train_epochs=2), "--set", "train.rounds.steps=4"]
    made = alone(motley, "run", *words)
    assert {event["learning_rate"] for event in made.named("step")} == {1}
    assert "momentum = 0\n" in pathlib.Path(motley.directory, "run", "run.toml").read_text()


def test_what_rounds_do_not_do_is_refused(motley):
    error = motley.fails("train", "softmax", *RUN, *rounds(4), *settings(train_drop_last="true"))
    assert "train.drop_last" in error["message"]


class TwoAndThePlainProgram:
    """A head and a guest on a few samples, and what the same rounds come to in numpy."""

    def __init__(self, motley, epochs, *words, optimizer="sgd", momentum=0):
        self.motley, self.epochs = motley, epochs
        own = arguments(samples=SAMPLES, features=FEATURES, classes=CLASSES, test=0, optimizer=optimizer, lr=RATE, momentum=momentum)
        self.words = [*own, *settings(train_seed=0, train_global_batch=BATCH, train_epochs=epochs, train_min_workers=2,
                                      train_shares="[2,1]"), *words, *rounds(3)]

    def head(self, *words):
        return self.motley.start("train", *words, "--run", "run", "--device", "cpu", *LOCAL)

    def begin(self):
        head = self.head("softmax", *self.words)
        return head, self.motley.start("join", "--token-file", "token", "--name", "guest")

    def resume(self):
        return self.head("--resume")

    def off(self, kind):
        """How far the run's weights are from the plain program's, in parts of these."""
        assert self.motley.audit("run")["samples"] == self.epochs * SAMPLES
        # A head that is killed may have written a round and not told of it.
        steps = ledger.ranges_by_step(pathlib.Path(self.motley.directory, "run", "ledger"))
        assert sorted(steps) == list(range(self.epochs * 4))
        rounds_of = [(step // 4, [(worker, count) for _, count, worker in steps[step]]) for step in sorted(steps)]
        order = {epoch: [int(line) for line in motley_order(self.motley, epoch)] for epoch in range(self.epochs)}
        expected = plain(*made_up.training_set(SAMPLES, FEATURES, CLASSES), order, rounds_of, kind)
        found = tensors(model(self.motley, "run"))
        flat = np.concatenate([found[name].ravel() for name in sorted(found, key=lambda name: "bias" in name)])
        return np.linalg.norm(flat - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("kind, momentum", [("sgd", 0.9), ("adam", 0)])
def test_two_workers_are_the_plain_program(motley, kind, momentum):
    two = TwoAndThePlainProgram(motley, 3, optimizer=kind, momentum=momentum)
    head, guest = two.begin()
    assert head.end() == 0, head.story()
    assert guest.end() == 0, guest.story()
    assert all(len(event["workers"]) == 2 and event["learning_rate"] == 0.6 for event in head.named("step"))
    assert two.off(kind) < PLAIN_OFF


def test_the_rate_follows_who_contributed_also_where_rounds_are_made_again(motley):
    two = TwoAndThePlainProgram(motley, 100, *settings(train_checkpoint_seconds=0.05))
    head, guest = two.begin()
    for _ in range(2):
        head.wait_event("step", after=head.seen())
        head.kill()
        head = two.resume()
    assert head.end() == 0, head.story()
    assert guest.end() == 0, guest.story()
    assert two.off("plain") < PLAIN_OFF


def test_the_rate_of_one_worker_and_ones_own(motley):
    words = settings(train_global_batch=400, train_steps=4)
    assert {e["learning_rate"] for e in alone(motley, "by-number", *words, *rounds(2)).named("step")} == {0.4}
    assert {e["learning_rate"] for e in alone(motley, "own", *words, *rounds(2, 0.7)).named("step")} == {0.7}


def test_auto_measures_first_and_who_joined_comes_back(motley):
    words = settings(train_global_batch=400, train_epochs=300, train_mode="auto", train_min_workers=2)
    head = motley.start("train", "softmax", *RUN, *words, "--run", "run", "--device", "cpu", *LOCAL)
    guest = motley.start("join", "--token-file", "token", "--name", "guest")
    taken = head.wait_event("mode")  # a softmax regression predicts no text, so nobody knows what rounds would cost
    assert taken["mode"] == "exact" and taken["sentence"].startswith("exact steps: "), taken
    head.wait_until(lambda: len(head.named("worker", worker="guest/cpu", change="joined")) == 2, "the guest's second coming")
    head.wait_event("step")
    head.kill()
    head = motley.start("train", "softmax", *RUN, *words, "--resume", "--run", "run", "--device", "cpu", *LOCAL)
    assert head.end() == 0, head.story()
    assert not head.named("mode")  # it goes on in the mode that it was begun in
    assert guest.end() == 0, guest.story()
    assert head.named("done")[0]["mode"] == "exact"
    assert motley.audit("run")["samples"] == 300 * 4000


def test_auto_with_fixed_shares_is_refused(motley):
    error = motley.fails("train", "softmax", *RUN, *settings(train_mode="auto", train_shares="[1]"), "--device", "cpu", *LOCAL)
    assert error["message"].startswith("train.shares ")


def motley_order(motley, epoch):
    return subprocess.run([motley.path, "audit", "run", "--order", str(epoch)], cwd=motley.directory, check=True,
                          capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize(("key", "fits"), [("train.steps", 20), ("train.evaluate_every", 20)])
def test_what_falls_inside_of_a_round_is_refused_with_what_does_not(motley, key, fits):
    """An epoch of 20 steps, whose rounds of 8 end with one of 4."""
    words = ["--set", "train.global_batch=200", "--set", "train.epochs=1", *rounds(8), "--device", "cpu", "--listen", "127.0.0.1:0"]
    error = motley.fails("train", "softmax", *RUN, *words, "--set", f"{key}=18", "--run", "refused")
    assert f"{key}: 18 steps end 2 steps into a round" in error["message"] and error["try"].startswith(f"--set {key}={fits},")
    program = motley.run("train", "softmax", *RUN, *words, "--set", f"{key}={fits}", "--run", "run")
    assert program.process.returncode == 0, program.story()
