"""One worker and one seed give the same bits, however often the run is interrupted, killed or cut off: it goes on from its newest
checkpoint."""

import os
import random
import shutil
import signal
from pathlib import Path

import pytest
from safetensors import safe_open
from safetensors.torch import load_file

import plain
from program import checkpoint

SIZE, BATCH = 1000, 32
SEEDS = [0, pytest.param(1, marks=pytest.mark.nightly)]
PER_EPOCH = -(-SIZE // BATCH)
# What is interrupted: momentum and Adam's moments, clipping, a schedule, evaluation, many checkpoints and only the first.
KINDS = {
    "mlp": ("mlp", 600, ["model.hidden=[24]", *plain.recipe("mlp", "clip-warmup-cosine").settings, "train.checkpoint_seconds=0.1"]),
    "mlp-one-checkpoint": ("mlp", 600, ["model.hidden=[24]", *plain.recipe("mlp", "nesterov").settings, "train.checkpoint_seconds=3600"]),
    "fashion-cnn": ("fashion-cnn", 60, [*plain.recipe("fashion-cnn", "adam").settings, "train.checkpoint_seconds=0.3",
                                        "train.evaluate_every=25"]),
}


def kinds(*names):
    return pytest.mark.parametrize("undisturbed", names, indirect=True)


def settings_of(kind, directory):
    _, steps, settings = KINDS[kind]
    test = directory if "train.evaluate_every=25" in settings else ""
    return [*settings, f"train.steps={steps}", f"train.global_batch={BATCH}", "train.seed=9",
            f'data.uri="{directory}"', f'data.test_uri="{test}"']


def tensors(run, step):
    """Every byte of tensor data of a checkpoint."""
    found = {}
    for name in ("model.safetensors", "optimizer.safetensors"):
        with safe_open(checkpoint(run, step) / name, "pt") as file:
            assert file.metadata()["format"] == "pt"
        for tensor, value in load_file(checkpoint(run, step) / name).items():
            found[name, tensor] = (value.dtype, tuple(value.shape), value.numpy().tobytes())
    return found


def latest(run):
    """The step of the newest checkpoint; 0: there may be none yet."""
    file = Path(run) / "checkpoints" / "latest"
    return int(file.read_text().removeprefix("step-")) if file.exists() else 0


def ledger_steps(run):
    """(step, where its record ends) for each step record in the order of the file (docs/formats/ledger.md)."""
    content, at, found = (Path(run) / "ledger").read_bytes(), 8, []
    while at + 5 <= len(content):
        end = at + 5 + int.from_bytes(content[at : at + 4], "little") + 4
        if end > len(content):
            break
        if content[at + 4] == 3:
            found.append((varint(content, at + 5), end))
        at = end
    return found


def varint(content, at):
    value, shift = content[at] & 0x7F, 7
    while content[at] & 0x80:
        at += 1
        value |= (content[at] & 0x7F) << shift
        shift += 7
    return value


@pytest.fixture(scope="session")
def undisturbed_runs():
    return {}


@pytest.fixture
def undisturbed(request, motley, small_fashion, undisturbed_runs, tmp_path_factory):
    """A kind and how it ends when nothing happens: (kind, losses by step, tensors)."""
    kind = request.param
    if kind not in undisturbed_runs:
        run, steps = tmp_path_factory.mktemp(kind) / "run", KINDS[kind][1]
        process = motley.train(run, KINDS[kind][0], 1, settings_of(kind, small_fashion))
        assert latest(run) == steps and len(process.losses()) == steps
        undisturbed_runs[kind] = (kind, process.losses(), tensors(run, steps))
    return undisturbed_runs[kind]


class Disturbed:
    """One run of a kind in pieces; checks that each piece takes the way of the undisturbed run."""

    def __init__(self, motley, undisturbed, directory, run):
        self.motley, self.run, self.directory = motley, run, directory
        self.kind, self.losses, self.expected = undisturbed
        self.model, self.steps, _ = KINDS[self.kind]
        self.started = False

    def start(self):
        resume, self.started = self.started, True
        if resume:
            return self.motley.start_training(self.run, resume=True)
        return self.motley.start_training(self.run, self.model, 1, settings_of(self.kind, self.directory))

    def check(self, process):
        """The steps of a piece go on from where it started, without a gap, with the losses of the undisturbed run."""
        (first,) = [event["first_step"] for event in process.of("run")] or [0]
        assert [event["step"] for event in process.of("step")] == list(range(first, first + len(process.of("step"))))
        assert all(self.losses[step] == loss for step, loss in process.losses().items())
        return first

    def finish(self):
        process = self.start()
        status = process.finish()
        assert status == 0, f"exit status {status}; {process.say()}"
        first = self.check(process)
        assert first + len(process.losses()) == self.steps
        assert tensors(self.run, self.steps) == self.expected
        audit = self.motley.audit(self.run)
        assert audit["samples"] == self.steps // PER_EPOCH * SIZE + self.steps % PER_EPOCH * BATCH
        return process


@pytest.fixture
def disturbed(motley, undisturbed, small_fashion, tmp_path):
    return Disturbed(motley, undisturbed, small_fashion, tmp_path / "run")


@kinds("mlp", "fashion-cnn")
def test_two_runs_are_equal(disturbed):
    process = disturbed.finish()
    assert process.losses() == disturbed.losses


@pytest.mark.parametrize("undisturbed, number", [("mlp", signal.SIGINT), ("mlp", signal.SIGTERM), ("fashion-cnn", signal.SIGINT)],
                         indirect=["undisturbed"], ids=["mlp-SIGINT", "mlp-SIGTERM", "fashion-cnn-SIGINT"])
def test_interrupted_and_resumed(disturbed, number):
    for step in (3, disturbed.steps // 2):
        process = disturbed.start()
        process.until_step(step)
        process.signal(number)
        assert process.finish() == 130, process.say()
        disturbed.check(process)
        assert process.events[-1]["event"] == "error" and process.events[-1]["code"] == "interrupted"
        # Everything that was done is in the checkpoint: nothing is computed again.
        done = max(process.losses()) + 1
        assert latest(disturbed.run) == done == process.of("checkpoint")[-1]["step"]
        disturbed.motley.audit(disturbed.run)
    process = disturbed.finish()
    assert min(process.losses()) == done


@kinds("mlp-one-checkpoint")
def test_interrupted_before_the_first_step(disturbed):
    process = disturbed.start()
    process.until(lambda event: event["event"] == "run")
    process.signal(signal.SIGINT)
    assert process.finish() == 130, process.say()
    disturbed.check(process)
    disturbed.finish()


@pytest.mark.parametrize("seed", SEEDS)
@kinds(*KINDS)
def test_killed_and_resumed(disturbed, seed):
    """Killed three times at random steps: what is done again is what the newest checkpoint does not have."""
    rng, reached = random.Random(f"{disturbed.kind} {seed}"), 0
    for wanted in sorted(rng.sample(range(disturbed.steps * 2 // 3), 3)):
        process = disturbed.start()
        process.until_step(wanted)
        assert process.kill() == -signal.SIGKILL, process.say()
        assert disturbed.check(process) == reached
        disturbed.motley.audit(disturbed.run)
        reached = latest(disturbed.run)
    assert disturbed.check(disturbed.finish()) == reached


@kinds("mlp", "fashion-cnn")
def test_killed_when_it_has_just_begun(disturbed):
    for awaited in ("run", "worker", "checkpoint"):
        process = disturbed.start()
        process.until(lambda event, awaited=awaited: event["event"] == awaited)
        assert process.kill() == -signal.SIGKILL, process.say()
        disturbed.check(process)
    disturbed.finish()


@pytest.mark.parametrize("file", ["lock", "ledger", "incarnation", "run.toml", "key.pem", "checkpoints"])
@kinds("mlp-one-checkpoint")
def test_killed_while_it_sets_up(disturbed, file):
    """Killed as soon as a file of the run is seen: whoever starts it again gets on, by --resume if there is a run."""
    process = disturbed.start()
    while not (disturbed.run / file).exists():
        assert process.alive(), process.say()
    assert process.kill() == -signal.SIGKILL, process.say()
    disturbed.started = (disturbed.run / "run.toml").exists()
    disturbed.finish()


def writes_checkpoint(run):
    try:
        return any(name.startswith(".step-") for name in os.listdir(run / "checkpoints"))
    except FileNotFoundError:
        return False


@kinds("mlp")
def test_killed_while_it_writes_a_checkpoint(disturbed):
    process = disturbed.start()
    process.until(lambda event: event["event"] == "checkpoint")
    process.read_along()
    while process.alive() and not writes_checkpoint(disturbed.run):
        pass
    process.kill()
    disturbed.check(process)
    disturbed.finish()


@pytest.mark.parametrize("seed", SEEDS)
@kinds(*KINDS)
def test_the_tail_of_the_ledger_is_lost(disturbed, seed):
    """As a power failure leaves it: it ends anywhere behind what the newest checkpoint has synced, even in the middle of a record."""
    rng = random.Random(seed)
    process = disturbed.start()
    process.until_step(disturbed.steps // 2)
    process.kill()
    ledger, steps = disturbed.run / "ledger", ledger_steps(disturbed.run)
    if steps:  # on a slow disk all of them may still have been queued
        synced = max([end for step, end in steps if step < latest(disturbed.run)], default=steps[0][1])
        os.truncate(ledger, rng.randint(synced, ledger.stat().st_size))
    disturbed.finish()


@kinds("mlp")
def test_a_ledger_that_lost_synced_steps_is_found_out(disturbed):
    """No crash takes steps that a checkpoint rests on; if something else does, the result is the same, and the audit says what
    cannot be shown any more."""
    process = disturbed.start()
    process.until_step(disturbed.steps // 2)
    process.signal(signal.SIGINT)
    assert process.finish() == 130, process.say()
    done, keep = latest(disturbed.run), 10
    (end,) = [end for step, end in ledger_steps(disturbed.run) if step == keep - 1]
    os.truncate(disturbed.run / "ledger", end)
    process = disturbed.start()
    assert process.finish() == 0, process.say()
    assert tensors(disturbed.run, disturbed.steps) == disturbed.expected
    audit = disturbed.motley.start("audit", disturbed.run)
    assert audit.finish() == 1
    assert f"steps {keep} to {done - 1} are not in the ledger" in audit.events[0]["findings"][0]


@kinds("mlp-one-checkpoint")
def test_a_damaged_checkpoint_is_passed_over(disturbed):
    process = disturbed.start()
    process.until_step(disturbed.steps // 3)
    process.signal(signal.SIGINT)
    assert process.finish() == 130, process.say()
    file = checkpoint(disturbed.run, latest(disturbed.run)) / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x10
    file.write_bytes(content)
    disturbed.finish()


@kinds("mlp")
def test_a_finished_run_stays_finished(disturbed, tmp_path):
    disturbed.finish()
    process = disturbed.start()
    assert process.finish() == 0, process.say()
    assert process.of("step") == [] and process.of("done")[-1]["steps"] == disturbed.steps
    assert tensors(disturbed.run, disturbed.steps) == disturbed.expected
    disturbed.motley.audit(disturbed.run)


@kinds("mlp-one-checkpoint")
def test_a_copied_run_goes_on_alone(disturbed, tmp_path):
    process = disturbed.start()
    process.until_step(disturbed.steps // 2)
    process.kill()
    shutil.copytree(disturbed.run, tmp_path / "copy")
    disturbed.run = tmp_path / "copy"
    disturbed.finish()
