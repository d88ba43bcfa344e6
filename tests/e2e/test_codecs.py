"""Fewer bits in both directions, with machines that die and come back: every sample once, and hardly another loss."""

import pathlib

from program import arguments, settings

STEPS = 80  # each of an epoch: long enough for a joiner to come back in the middle
RUN = [*arguments(samples=20000, features=256, classes=20, test=0, lr=0.02),
       *settings(train_global_batch=20000, train_seed=5, train_steps=STEPS)]
LOCAL = ["--listen", "127.0.0.1:0", "--token-file", "token"]


def test_killed_joiner_and_interrupted_head(motley):
    codecs = settings(wire_gradients="int8", wire_weights="int8", train_shares="[1,1,1,1]", train_verify=0)
    head = motley.start("train", "softmax", *RUN, *codecs, *settings(train_min_workers=2), "--run", "run", "--device", "cpu", *LOCAL)
    joiner = motley.start("join", "--token-file", "token", "--name", "guest")
    head.wait_share("guest/cpu")
    joiner.kill()
    joiner = motley.start("join", "--token-file", "token", "--name", "guest")
    head.wait_event("worker", worker="guest/cpu", change="readmitted")
    head.wait_share("guest/cpu", head.seen())
    head.stop()
    joiner.kill()  # the head's port will be another
    pathlib.Path(motley.directory, "token").unlink(missing_ok=True)
    again = motley.start("train", "--resume", "--run", "run", "--device", "cpu", *LOCAL)
    joiner = motley.start("join", "--token-file", "token", "--name", "guest")
    again.wait_share("guest/cpu")
    assert again.end() == 0, again.story()
    assert joiner.end() == 0, joiner.story()
    assert motley.audit("run")["samples"] == STEPS * 20000
    alone = motley.run("train", "softmax", *RUN, "--run", "alone", "--device", "cpu", "--listen", "127.0.0.1:0")
    assert alone.process.returncode == 0, alone.story()
    exact, lossy = alone.losses(), head.losses() | again.losses()
    assert list(exact) == list(lossy)
    assert max(abs(lossy[step] - exact[step]) / exact[step] for step in exact) < 1e-2
