"""The native program beside the Python package: the same training by each of them, and by both in one run."""

import pytest
import torch
from safetensors.torch import load_file

from conftest import ROOT

NATIVE = ROOT / "build" / "motley"
ALONE = ["--listen", "127.0.0.1:0", "--threads", "1", "--device", "cpu"]
needs_native = pytest.mark.skipif(not NATIVE.is_file(), reason="needs the native program: make build")


def weights(directory, step):
    return load_file(directory / "checkpoints" / f"step-{step:09}" / "model.safetensors")


def same_training(directory, here, there, steps):
    """Of two programs, whose runs are `here` and `there` below the directory."""
    first, reference = weights(directory / "here", 0), weights(directory / "there", 0)
    assert list(first) == list(reference)
    assert all(torch.equal(first[name], reference[name]) for name in first), "the initial weights differ"
    assert here.losses() == pytest.approx(there.losses(), rel=1e-5)
    last, reference = weights(directory / "here", steps), weights(directory / "there", steps)
    assert all(torch.allclose(last[name], reference[name], rtol=1e-4, atol=1e-5) for name in last)
    found, wanted = here.named("eval")[-1], there.named("eval")[-1]
    assert found["loss"] == pytest.approx(wanted["loss"], rel=1e-5) and found["samples"] == wanted["samples"]
    assert found["accuracy"] == pytest.approx(wanted["accuracy"], abs=1 / wanted["samples"])


def in_one_run(head, other, directory, target, words):
    """The head's program, after a run in which both had samples of each step."""
    run = head.start("train", target, *words, "--run", "run", *ALONE, "--token-file", "token")
    run.wait_event("run")
    joined = other.start("join", "--token-file", "token", "--threads", "1", "--device", "cpu", "--name", "other", "--data-dir",
                         str(directory))
    run.wait_until(lambda: run.over or joined.over, "the end of either")
    if joined.over:
        assert joined.end() == 0, f"{joined.story()}\n{run.story()}"
    assert run.end() == 0, run.story()
    assert joined.end() == 0, joined.story()
    assert any(part["worker"] == "other/cpu" and part["samples"] for step in run.named("step") for part in step["workers"])
    return run
