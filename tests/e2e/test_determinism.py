"""One worker and one seed give the same bits, however often the run is interrupted, killed or cut off: it goes on from its newest
checkpoint. What of it is a script's own is in tests/python/test_resumed.py."""

import os
import random
import shutil
import signal

import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from program import Starter, settings

SEEDS = [0, pytest.param(1, marks=pytest.mark.nightly)]
# The last batch of an epoch is short; a step takes a millisecond, so that a run can be killed in its middle.
SIZE, BATCH, STEPS = 2500, 1000, 300
PER_EPOCH = -(-SIZE // BATCH)
DATA = [f"samples={SIZE}", "features=128", "classes=10", "test=500"]
# What is interrupted: momentum and Adam's moments, clipping, evaluation, many checkpoints and only the first.
KINDS = {
    "adam": (["optimizer=adam", "lr=0.003"],
             {"train_clip_norm": 0.5, "train_clip_norm_of": "previous", "train_checkpoint_seconds": 0.1, "train_evaluate_every": 25}),
    "momentum": (["optimizer=sgd", "lr=0.02", "momentum=0.9"], {"train_checkpoint_seconds": 3600}),
}
HERE = ["--run", "run", "--listen", "127.0.0.1:0", "--device", "cpu", "--threads", "1"]


def kinds(*names):
    return pytest.mark.parametrize("undisturbed", names, indirect=True)


def begin(kind):
    own, keys = KINDS[kind]
    return ["train", "softmax", *DATA, *own, *HERE, *settings(train_steps=STEPS, train_global_batch=BATCH, train_seed=9, **keys)]


def checkpoint(run, step):
    return run / "checkpoints" / f"step-{step:09d}"


def tensors(run, step):
    """Every byte of tensor data of a checkpoint."""
    found = {}
    for name in ("model.safetensors", "optimizer.safetensors"):
        with safe_open(checkpoint(run, step) / name, "np") as file:
            assert file.metadata()["format"] == "pt"
        for tensor, value in load_file(checkpoint(run, step) / name).items():
            found[name, tensor] = (value.dtype, value.shape, value.tobytes())
    return found


def latest(run):
    """The step of the newest checkpoint; 0: there may be none yet."""
    file = run / "checkpoints" / "latest"
    return int(file.read_text().removeprefix("step-")) if file.exists() else 0


def ledger_steps(run):
    """(step, where its record ends) for each step record in the order of the file (docs/formats/ledger.md)."""
    content, at, found = (run / "ledger").read_bytes(), 8, []
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


@pytest.fixture(scope="module")
def undisturbed_runs():
    return {}


@pytest.fixture
def undisturbed(request, motley_path, undisturbed_runs, tmp_path_factory):
    """A kind and how it ends when nothing happens: (kind, losses by step, tensors)."""
    kind = request.param
    if kind not in undisturbed_runs:
        directory = tmp_path_factory.mktemp(kind)
        with Starter(motley_path, directory) as starter:
            program = starter.run(*begin(kind))
        assert program.process.returncode == 0, program.story()
        assert latest(directory / "run") == STEPS and len(program.losses()) == STEPS
        undisturbed_runs[kind] = (kind, program.losses(), tensors(directory / "run", STEPS))
    return undisturbed_runs[kind]


class Disturbed:
    """One run of a kind in pieces; checks that each piece takes the way of the undisturbed run."""

    def __init__(self, motley, undisturbed):
        self.motley, self.run = motley, motley.directory / "run"
        self.kind, self.losses, self.expected = undisturbed
        self.started = False

    def start(self):
        resume, self.started = self.started, True
        return self.motley.start(*(["train", "--resume", *HERE] if resume else begin(self.kind)))

    def check(self, program):
        """The steps of a piece go on from where it started, without a gap, with the losses of the undisturbed run."""
        (first,) = [event["first_step"] for event in program.named("run")] or [0]
        assert [event["step"] for event in program.named("step")] == list(range(first, first + len(program.named("step"))))
        assert all(self.losses[step] == loss for step, loss in program.losses().items())
        return first

    def killed(self, program):
        """Killed, and all that it said has been read."""
        program.kill()
        program.wait_until(lambda: program.over, "its output closed")
        assert program.process.returncode == -signal.SIGKILL, program.story()
        return self.check(program)

    def finish(self):
        program = self.start()
        assert program.end() == 0, program.story()
        first = self.check(program)
        assert first + len(program.losses()) == STEPS
        assert tensors(self.run, STEPS) == self.expected
        assert self.motley.audit("run")["samples"] == STEPS // PER_EPOCH * SIZE + STEPS % PER_EPOCH * BATCH
        return program


@pytest.fixture
def disturbed(motley, undisturbed):
    return Disturbed(motley, undisturbed)


@kinds(*KINDS)
def test_two_runs_are_equal(disturbed):
    assert disturbed.finish().losses() == disturbed.losses


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@kinds(*KINDS)
def test_interrupted_and_resumed(disturbed, number):
    rng, done = random.Random(f"{disturbed.kind} {number}"), 0
    for _ in range(2):
        program = disturbed.start()
        program.wait_step(done + rng.randint(1, STEPS // 4))
        program.signal(number)
        assert program.end() == 130, program.story()
        assert disturbed.check(program) == done
        assert program.error()["code"] == "interrupted"
        # Everything that was done is in the checkpoint: nothing is computed again.
        done = max(program.losses()) + 1
        assert latest(disturbed.run) == done == program.named("checkpoint")[-1]["step"]
        disturbed.motley.audit("run")
    assert min(disturbed.finish().losses()) == done


@kinds("momentum")
def test_interrupted_before_the_first_step(disturbed):
    program = disturbed.start()
    program.wait_event("run")
    program.interrupt()
    assert program.end() == 130, program.story()
    disturbed.check(program)
    disturbed.finish()


@pytest.mark.parametrize("seed", SEEDS)
@kinds(*KINDS)
def test_killed_and_resumed(disturbed, seed):
    """Killed three times at random steps: what is done again is what the newest checkpoint does not have."""
    rng, reached = random.Random(f"{disturbed.kind} {seed}"), 0
    for wanted in sorted(rng.sample(range(STEPS * 2 // 3), 3)):
        program = disturbed.start()
        program.wait_step(wanted)
        assert disturbed.killed(program) == reached
        disturbed.motley.audit("run")
        reached = latest(disturbed.run)
    assert disturbed.check(disturbed.finish()) == reached


@kinds("adam")
def test_killed_when_it_has_just_begun(disturbed):
    for awaited in ("run", "worker", "checkpoint"):
        program = disturbed.start()
        program.wait_event(awaited)
        disturbed.killed(program)
    disturbed.finish()


def wait_for(seen, program):
    while not seen():
        assert program.process.poll() is None, program.story()


@pytest.mark.parametrize("file", ["lock", "ledger", "incarnation", "run.toml", "key.pem", "checkpoints"])
@kinds("momentum")
def test_killed_while_it_sets_up(disturbed, file):
    """Killed as soon as a file of the run is seen: whoever starts it again gets on, by --resume if there is a run."""
    program = disturbed.start()
    wait_for((disturbed.run / file).exists, program)
    disturbed.killed(program)
    disturbed.started = (disturbed.run / "run.toml").exists()
    disturbed.finish()


@kinds("adam")
def test_killed_while_it_writes_a_checkpoint(disturbed):
    program = disturbed.start()
    program.wait_event("checkpoint")
    wait_for(lambda: any(name.startswith(".step-") for name in os.listdir(disturbed.run / "checkpoints")), program)
    disturbed.killed(program)
    disturbed.finish()


@pytest.mark.parametrize("seed", SEEDS)
@kinds(*KINDS)
def test_the_tail_of_the_ledger_is_lost(disturbed, seed):
    """As a power failure leaves it: it ends anywhere behind what the newest checkpoint has synced, even in the middle of a record."""
    rng = random.Random(seed)
    program = disturbed.start()
    program.wait_step(STEPS // 2)
    disturbed.killed(program)
    ledger, steps = disturbed.run / "ledger", ledger_steps(disturbed.run)
    if steps:  # on a slow disk all of them may still have been queued
        synced = max([end for step, end in steps if step < latest(disturbed.run)], default=steps[0][1])
        os.truncate(ledger, rng.randint(synced, ledger.stat().st_size))
    disturbed.finish()


@kinds("adam")
def test_a_ledger_that_lost_synced_steps_is_found_out(disturbed):
    """No crash takes steps that a checkpoint rests on; if something else does, the result is the same, and the audit says what
    cannot be shown any more."""
    program = disturbed.start()
    program.wait_step(STEPS // 2)
    program.stop()
    done, keep = latest(disturbed.run), 10
    (end,) = [end for step, end in ledger_steps(disturbed.run) if step == keep - 1]
    os.truncate(disturbed.run / "ledger", end)
    program = disturbed.start()
    assert program.end() == 0, program.story()
    assert tensors(disturbed.run, STEPS) == disturbed.expected
    audit = disturbed.motley.run("audit", "run")
    assert audit.process.returncode == 1
    assert f"steps {keep} to {done - 1} are not in the ledger" in audit.named("audit")[0]["findings"][0]


@kinds("momentum")
def test_a_damaged_checkpoint_is_passed_over(disturbed):
    program = disturbed.start()
    program.wait_step(STEPS // 3)
    program.stop()
    file = checkpoint(disturbed.run, latest(disturbed.run)) / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x10
    file.write_bytes(content)
    disturbed.finish()


@kinds("adam")
def test_a_finished_run_stays_finished(disturbed):
    disturbed.finish()
    program = disturbed.start()
    assert program.end() == 0, program.story()
    assert program.named("step") == [] and program.named("done")[-1]["steps"] == STEPS
    assert tensors(disturbed.run, STEPS) == disturbed.expected
    disturbed.motley.audit("run")


@kinds("momentum")
def test_a_copied_run_goes_on_alone(disturbed):
    program = disturbed.start()
    program.wait_step(STEPS // 2)
    disturbed.killed(program)
    shutil.move(disturbed.run, disturbed.motley.directory / "original")
    shutil.copytree(disturbed.motley.directory / "original", disturbed.run)
    disturbed.finish()
