"""Ctrl-C and kill -9, on joiners and on the head: what was promised about the run holds, and everybody comes back."""

import signal

import pytest

import wire
from program import arguments, settings

DATA = [*arguments(samples=20000, features=256, classes=20, test=0, lr=0.02), *settings(train_global_batch=2048, train_seed=5)]
LOCAL = ["--listen", "127.0.0.1:0"]


def head_and_joiner(motley, *words):
    # Given shares, so that the joiner has work on a busy machine too, where it would not pay.
    shares = settings(train_min_workers=2, train_shares=[1, 1], train_verify=0)
    head = motley.start("train", "softmax", *DATA, *shares, *words, "--run", "run", "--device", "cpu", "--name", "head",
                        "--token-file", "token", *LOCAL)
    joiner = motley.start("join", "--token-file", "token", "--name", "guest")
    return head, joiner


def same_losses(ours, theirs, tolerance=1e-5):
    assert list(ours) == list(theirs)
    worst = max(abs(ours[step] - theirs[step]) / abs(theirs[step]) for step in ours)
    assert worst <= tolerance, worst


def alone(motley, *words):
    program = motley.run("train", "softmax", *DATA, *words, "--run", "alone", "--device", "cpu", *LOCAL)
    assert program.process.returncode == 0, program.story()
    return program.losses()


def newest(run):
    """The step of the newest checkpoint."""
    return int((run / "checkpoints" / "latest").read_text().removeprefix("step-"))


def test_interrupted_joiner_finishes_its_lease(motley):
    steps = settings(train_steps=80)
    head, joiner = head_and_joiner(motley, *steps)
    head.wait_share("guest/cpu")
    joiner.interrupt()
    assert joiner.end() in (0, 130), joiner.story()
    left = head.wait_event("worker", worker="guest/cpu", change="left")
    assert left["reason"]
    assert head.end() == 0, head.story()
    assert not head.named("worker", change="lost")
    motley.audit("run")
    same_losses(head.losses(), alone(motley, *steps))


HUGE = [*arguments(samples=200000, features=64, classes=1000, test=0),
        *settings(train_global_batch=200000, train_micro_batch=200000, train_steps=1)]


def test_second_interrupt_leaves_at_once(motley):
    """One lease that takes many seconds: the first Ctrl-C waits for it, the second does not."""
    head = motley.start("train", "softmax", *HUGE, "--run", "run", "--device", "none", "--token-file", "token", *LOCAL)
    joiner = motley.start("join", "--token-file", "token", "--name", "guest")
    head.wait_text("waiting for guest/cpu (0 of")
    joiner.interrupt()
    joiner.wait_text("Ctrl-C again")
    assert not head.named("step")
    joiner.interrupt()
    assert joiner.end(10) == 130, joiner.story()
    head.wait_event("worker", worker="guest/cpu", change="lost")
    assert not head.named("step")


def test_second_interrupt_of_the_head(motley):
    head = motley.start("train", "softmax", *HUGE, "--run", "run", "--device", "cpu", "--name", "head", *LOCAL)
    head.wait_text("waiting for head/cpu (0 of")
    head.interrupt()
    head.wait_text("Ctrl-C again")
    head.interrupt()
    assert head.end(10) == 130, head.story()
    assert not head.named("step")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["ctrl-c", "terminate", "kill -9"])
def test_head_stops_and_resumes(motley, tmp_path, how):
    steps = settings(train_steps=150, train_checkpoint_seconds=0.2)
    first, joiner = head_and_joiner(motley, *steps)
    first.wait_share("guest/cpu")
    first.wait_step(40)
    first.signal(how)
    if how == signal.SIGKILL:
        first.process.wait()
        first.wait_until(lambda: first.over, "its output closed")
        reached = newest(tmp_path / "run")
    else:
        assert first.end() == 130, first.story()
        error = first.error()
        assert error["code"] == "interrupted" and "--resume" in error["try"], error
        reached = max(first.losses()) + 1
        assert first.named("checkpoint")[-1]["step"] == reached
    joiner.wait_event("worker", change="lost")
    assert joiner.process.poll() is None

    second = motley.start("train", "--resume", "--run", "run", "--device", "cpu", "--name", "head")
    started = second.wait_event("run")
    assert started["first_step"] == reached, (started, reached)
    assert started["run"] == first.named("run")[0]["run"]
    done = max(first.losses()) + 1
    assert reached == done if how != signal.SIGKILL else 0 < reached <= done + 1
    second.wait_share("guest/cpu")
    assert joiner.named("worker", change="readmitted"), joiner.story()
    assert second.end() == 0, second.story()
    assert joiner.end() == 0, joiner.story()
    audit = motley.audit("run")
    assert audit["samples"] == 15 * 20000
    again = set(first.losses()) & set(second.losses())
    assert again == set(range(reached, done))
    same_losses(dict(sorted({**first.losses(), **second.losses()}.items())), alone(motley, *steps))


def test_another_head_on_the_port_ends_no_worker(motley):
    """While the head is away, another run's takes its port; the worker waits for its own, which comes back on another."""
    first, joiner = head_and_joiner(motley, *settings(train_steps=150, train_checkpoint_seconds=0.5))
    first.wait_share("guest/cpu")
    first.signal(signal.SIGKILL)
    first.process.wait()
    port = wire.parse_token((motley.directory / "token").read_text())["port"]
    other = motley.start("train", "softmax", *DATA, *settings(train_steps=100000), "--run", "other", "--device", "none",
                         "--listen", f"127.0.0.1:{port}")
    joiner.wait_text("is not the coordinator this token was made for")
    second = motley.start("train", "--resume", "--run", "run", "--device", "cpu", "--name", "head")
    second.wait_text(f"port {port} is taken")
    second.wait_share("guest/cpu")
    assert second.end() == 0, second.story()
    assert joiner.end() == 0, joiner.story()
    motley.audit("run")
    other.interrupt()
    assert other.end() == 130, other.story()
