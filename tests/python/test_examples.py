"""The examples run, and differ from what one writes without Motley by a dozen lines at most."""

import difflib
import pathlib
import sys

import pytest

from conftest import ROOT
from program import PATIENCE_S

EXAMPLES = ROOT / "examples"
CHANGED_MAX = 12
SMALL = {"shortest": [], "image_cnn": ["--epochs", "1", "--samples", "600"], "tabular": ["--epochs", "2", "--samples", "3000"]}
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")


@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_plain_script_changes_by_a_dozen_lines(name):
    plain, ours = ((folder / f"{name}.py").read_text().splitlines() for folder in (EXAMPLES / "plain", EXAMPLES))
    codes = difflib.SequenceMatcher(None, plain, ours, autojunk=False).get_opcodes()
    changed = sum(max(b - a, d - c) for tag, a, b, c, d in codes if tag != "equal")
    assert changed <= CHANGED_MAX


@pytest.mark.parametrize("name", sorted(SMALL))
def test_an_example_trains(motley, name):
    if name == "image_cnn" and not FASHION.is_dir():
        pytest.skip("needs Fashion-MNIST")
    process = motley.open([sys.executable, str(EXAMPLES / f"{name}.py"), *SMALL[name]], None)
    with process.stdout, process.stderr:  # what they say fits into a pipe
        told, said = process.stdout.read().decode(), process.stderr.read().decode()
    assert process.wait(PATIENCE_S) == 0, said
    lines = told.splitlines()
    assert [line.split()[0] for line in lines] == [str(number) for number in range(1, len(lines) + 1)], told
    assert "done: " in said
    motley.audit(f"runs/{name}-1")


def test_numpy_is_a_worker(motley):
    script = str(EXAMPLES / "numpy_softmax.py")
    here = ["--run", "run", "--listen", "127.0.0.1:0", "--device", "none", "--token-file", "token", "--name", "head"]
    head = motley.start("train", script, *here, "--set", "train.min_workers=2", "--set", "train.shares=[2,1]")
    others = [motley.start("join", "--token-file", "token", script, "--name", name) for name in ("a", "b")]
    assert head.end() == 0, head.story()
    assert [other.end() for other in others] == [0, 0]
    losses = head.losses()
    assert losses[0] == pytest.approx(1.6094379, rel=1e-5)  # of five classes, before anything is learned
    assert losses[max(losses)] < 0.4
    motley.audit("run")


def test_the_shortest_example_is_the_one_of_the_readme():
    assert (EXAMPLES / "shortest.py").read_text().strip() in (ROOT / "README.md").read_text()
