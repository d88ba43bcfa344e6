"""What two devices make of the same samples and made-up weights is compared before one of them counts."""

import pytest

from conftest import SCRIPTS
from program import settings

SCRIPT = str(SCRIPTS / "probed.py")
BOTH = settings(train_min_workers=2, train_shares=[1])  # both have a share, however small the steps


def both(motley, here, *options):
    for name in ("alike", here):  # paths may differ between machines
        (motley.directory / name).mkdir(exist_ok=True)
    head = motley.start("train", SCRIPT, "--run", "run", "--listen", "127.0.0.1:0", "--name", "head", "--token-file", "token",
                        "--threads", "1", *options, "./alike")
    if not options:
        head.wait_step(3)
    return head, motley.start("join", "--token-file", "token", SCRIPT, "--name", "other", "--threads", "1", f"./{here}")


def takes_part(head):
    return head.wait_event("step", lambda e: any(p["worker"].startswith("other") and p["samples"] for p in e["workers"]))


def told(program):
    return [line for line in program.text if "makes another gradient" in line]


def test_who_computes_otherwise_never_counts(motley):
    head, other = both(motley, "louder")
    other.end()
    assert "another gradient" in other.story() and "check the memory and the drivers" in other.story()
    assert "motley join TOKEN --fetch" in other.story()
    line, = told(head)
    assert "other/cpu makes another gradient of the same samples and weights than head/cpu: " in line
    assert "first." in line
    chip = head.wait_event("worker", worker="head/cpu", change="joined")["description"]
    assert chip and line.endswith(f"; other/cpu is {chip}, head/cpu is {chip}"), line
    head.interrupt()
    head.end()
    assert not any(p["worker"].startswith("other") and p["samples"] for step in head.named("step") for p in step["workers"])


def test_a_small_difference_is_told_and_trains(motley):
    head, _ = both(motley, "tanh", *BOTH)
    takes_part(head)
    line, = told(head)
    assert "first." in line and "another script, other data, another version of a library, or a faulty device" in line


@pytest.mark.parametrize("here", ["alike", "drawn"])
def test_others_train_in_silence(motley, here):
    head, _ = both(motley, here, *BOTH)
    takes_part(head)
    assert told(head) == []
