"""A head that is helped by a machine which dies, freezes or is slow: it waits for nobody, every sample counts once, and the weights are
those of a plain program that is told which samples were computed one version before."""

import pathlib
import signal

import ledger
import numpy as np
import pytest
from program import settings
from test_rounds import LOCAL, gradient, model, motley_order, tensors

SAMPLES, BATCH, FEATURES, CLASSES, RATE = 8192, 2048, 4000, 4, 1e-4
PLAIN_OFF = 1e-5  # of the norm of the weights


def helped(event):
    return any("early" in part for part in event["workers"])


class Helped:
    """A head and its helper on samples in files. Steps take some hundredths of a second, a helper's part of them much less."""

    def __init__(self, motley, directory, epochs, **more):
        self.motley, self.epochs = motley, epochs
        random = np.random.default_rng(11)
        self.y = random.integers(0, CLASSES, SAMPLES)
        self.x = random.integers(0, 200, (SAMPLES, FEATURES), dtype=np.uint8) + (14 * self.y[:, None]).astype(np.uint8)
        np.save(directory / "x.npy", self.x)
        np.save(directory / "y.npy", self.y.astype(np.int64))
        self.words = settings(data_uri="x.npy+y.npy", data_test_uri="", train_mode="helper", train_seed=0, train_global_batch=BATCH,
                              train_epochs=epochs, optimizer_lr=RATE, optimizer_momentum=0.9, train_min_workers=2, train_verify=0, **more)

    def head(self, *words):
        return self.motley.start("train", *words, "--run", "run", "--device", "cpu", "--threads", "1", *LOCAL)

    def begin(self):
        return self.head("softmax", *self.words), self.guest()

    def guest(self):
        return self.motley.start("join", "--token-file", "token", "--name", "guest", "--data-dir", ".")

    def off(self):
        """How far the run's weights are from the plain program's, in parts of these; and samples that were early."""
        audit = self.motley.audit("run")
        assert audit["samples"] == self.epochs * SAMPLES and audit["missing"] == audit["duplicate"] == 0
        path = pathlib.Path(self.motley.directory, "run", "ledger")
        steps, early = ledger.ranges_by_step(path), ledger.early_by_step(path)
        per_epoch = SAMPLES // BATCH
        assert sorted(steps) == list(range(self.epochs * per_epoch))
        order = [int(line) for epoch in range(self.epochs) for line in motley_order(self.motley, epoch)]
        before, momentum, count_early = None, 0.0, 0
        w = np.zeros(CLASSES * FEATURES + CLASSES)
        for step in sorted(steps):
            total = np.zeros_like(w)
            for number, (first, count, _) in enumerate(steps[step]):
                samples = order[step * BATCH + first:step * BATCH + first + count]
                at = before if number in early[step] else w
                total += count * gradient(at, self.x[samples] / 255, self.y[samples])
                count_early += count if number in early[step] else 0
            momentum = total / BATCH + 0.9 * momentum
            before, w = w, w - RATE * momentum
        found = tensors(model(self.motley, "run"))
        flat = np.concatenate([found[name].ravel() for name in sorted(found, key=lambda name: "bias" in name)])
        return np.linalg.norm(flat - w) / np.linalg.norm(w), count_early


def test_a_helped_run_is_the_plain_program(motley, tmp_path):
    run = Helped(motley, tmp_path, 6)
    head, guest = run.begin()
    assert head.end() == 0, head.story()
    assert guest.end() == 0, guest.story()
    off, early = run.off()
    assert off < PLAIN_OFF
    assert early == head.named("done")[0]["helped_samples"] > 0
    assert all(10 * part.get("early", 0) <= BATCH for event in head.named("step") for part in event["workers"])


def test_a_helper_is_killed_and_another_frozen(motley, tmp_path):
    run = Helped(motley, tmp_path, 75)
    head, guest = run.begin()
    head.wait_event("step", helped)
    guest.kill()
    head.wait_event("step", lambda event: not helped(event), after=head.seen())
    guest = run.guest()
    head.wait_event("step", helped, after=head.seen())
    guest.signal(signal.SIGSTOP)
    head.wait_event("step", lambda event: not helped(event), after=head.seen())
    guest.signal(signal.SIGCONT)
    assert head.end() == 0, head.story()
    assert run.off()[0] < PLAIN_OFF


def test_the_head_is_killed_too(motley, tmp_path):
    run = Helped(motley, tmp_path, 30, train_checkpoint_seconds=1)
    head, _ = run.begin()
    for _ in range(2):
        head.wait_event("step", helped, after=head.seen())
        head.kill()
        head = run.head("--resume")
    assert head.end() == 0, head.story()
    assert run.off()[0] < PLAIN_OFF


@pytest.mark.parametrize(("key", "value"), [("wire.gradients", "int4"), ("train.global_batch", "auto"), ("train.shares", "[2,1]")])
def test_what_helpers_do_not_do_is_refused(motley, key, value):
    words = settings(data_uri="synthetic:400:64:10", train_mode="helper")
    error = motley.fails("train", "softmax", *words, "--set", f"{key}={value}", "--run", "run")
    assert error["message"].startswith(f"{key} ") and 'train.mode = "helper"' in error["message"]
