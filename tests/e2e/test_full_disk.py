"""A disk that is full: an error event at once, training goes on, what was written before stays valid."""

import resource

import pytest

from program import arguments, settings
from small_disk import mounted

DATA = [*arguments(samples=20000, features=128, classes=10, test=0, lr=0.02), *settings(train_global_batch=4096, train_seed=2)]
LOCAL = ["--device", "cpu", "--listen", "127.0.0.1:0"]


def losses_of(motley, steps):
    return motley.run("train", "softmax", *DATA, *settings(train_steps=steps), "--run", "whole", *LOCAL).losses()


@pytest.fixture
def small_disk(tmp_path):
    """Four megabytes of their own."""
    with mounted(tmp_path / "disk", 4) as place:
        yield place


def fill(disk):
    with open(disk / "filler", "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass


def valid_export(motley, run, name):
    program = motley.run("export", run, name)
    assert program.process.returncode == 0, program.story()
    return program.named("export")[0]["step"]


def test_disk_fills_and_is_freed(motley, small_disk):
    words = settings(train_steps=100000, train_checkpoint_seconds=0.2)
    head = motley.start("train", "softmax", *DATA, *words, "--run", small_disk / "run", *LOCAL)
    head.wait_event("checkpoint", lambda e: e["step"] > 0)
    fill(small_disk)
    error = head.wait_event("error")
    assert error["code"] == "disk-full" and str(small_disk) in error["message"] and error["try"], error
    step = head.named("step")[-1]["step"]
    head.wait_step(step + 20)  # training goes on
    assert valid_export(motley, small_disk / "run", "old.safetensors") > 0
    (small_disk / "filler").unlink()
    before = head.seen()
    head.wait_event("checkpoint", lambda e: e["step"] > step, after=before)
    head.stop()
    done = max(head.losses()) + 1
    assert motley.audit(small_disk / "run")["samples"] == sum(e["samples"] for e in head.named("step"))
    assert valid_export(motley, small_disk / "run", "new.safetensors") == done
    assert head.losses() == losses_of(motley, done)


def test_disk_stays_full(motley, small_disk):
    """The run ends with an error, and goes on from its last checkpoint once there is room again."""
    words = ["softmax", *DATA, *settings(train_steps=400, train_checkpoint_seconds=0.2)]
    head = motley.start("train", *words, "--run", small_disk / "run", *LOCAL)
    kept = head.wait_event("checkpoint", lambda e: e["step"] > 0)["step"]
    fill(small_disk)
    head.wait_event("error", code="disk-full")
    assert head.end() == 1, head.story()
    assert max(head.losses()) == 399 and not head.named("done")
    assert sum("ledger" in error["message"] for error in head.named("error")) == 1  # not one a step
    assert valid_export(motley, small_disk / "run", "old.safetensors") >= kept
    (small_disk / "filler").unlink()
    again = motley.run("train", "--resume", "--run", small_disk / "run", *LOCAL)
    assert again.process.returncode == 0, again.story()
    motley.audit(small_disk / "run")
    assert {**head.losses(), **again.losses()} == losses_of(motley, 400)


def test_full_from_the_start(motley, small_disk):
    fill(small_disk)
    error = motley.fails("train", "softmax", *DATA, *settings(train_steps=5), "--run", small_disk / "run", *LOCAL, status=1)
    assert error["code"] == "disk-full" and error["try"], error


def test_file_size_limit(motley, tmp_path):
    """Without root: files of at most 8 KiB. The ledger cannot grow beyond that; checkpoints are less."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 10, 8 << 10))
    words = settings(train_steps=300, train_checkpoint_seconds=1000)
    head = motley.start("train", "softmax", *DATA, *words, "--run", "run", *LOCAL, preexec=limit)
    error = head.wait_event("error")
    assert error["code"] in ("io", "disk-full") and "ledger" in error["message"] and error["try"], error
    assert head.end() == 0, head.story()
    assert {error["code"] for error in head.named("error")} <= {"io", "disk-full"}
    assert len(head.losses()) == 300
    motley.audit("run")
    assert valid_export(motley, tmp_path / "run", "model.safetensors") == 300


def test_read_only_files(motley, tmp_path):
    """The ledger as a directory, the lock as a directory: refused before anything is written."""
    for name in ("lock", "ledger"):
        run = tmp_path / name
        (run / name).mkdir(parents=True)
        program = motley.run("train", "softmax", *DATA, *settings(train_steps=2), "--run", run, *LOCAL)
        assert program.process.returncode in (1, 2), program.story()
        assert name in program.error()["message"]
