"""Paths of the command line, whose script goes to another directory; and a token's file that gets another token."""

import pytest

import wire
from program import PATIENCE_S, settings

SCRIPT = """
import os
import torch
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset
import motley
ELSEWHERE
x, y = torch.randn(300, 8, generator=torch.Generator().manual_seed(1)), torch.arange(300) % 3
torch.manual_seed(0)
model = torch.nn.Linear(8, 3)
run = motley.Run(model, lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]), DataLoader(TensorDataset(x, y), 60),
                 torch.optim.SGD(model.parameters(), 0.1))
for epoch in run.epochs(3):
    os.chdir("/")
"""
PLACES = ["--token-file", "token", "--device", "cpu", "--threads", "1"]
BOTH = settings(train_min_workers=2)


@pytest.fixture
def script(motley):
    def write(elsewhere=""):
        (motley.directory / "script.py").write_text(SCRIPT.replace("ELSEWHERE", elsewhere))
        return "script.py"

    return write


def ended(*programs):
    for program in programs:
        assert program.end(PATIENCE_S) == 0, program.story()


@pytest.mark.parametrize("run", [["--run", "run"], []])
def test_a_script_that_goes_to_another_directory_moves_no_path(motley, script, run):
    name = script('os.makedirs("elsewhere", exist_ok=True); os.chdir("elsewhere")')
    head = motley.start("train", name, *run, "--listen", "127.0.0.1:0", *PLACES, *BOTH)
    joined = motley.start("join", name, *PLACES)
    ended(head, joined)
    place = motley.directory / "run" if run else motley.directory / "runs" / "script-1"
    assert (place / "checkpoints" / "latest").is_file() and not (motley.directory / "elsewhere" / "run").exists()
    again = motley.start("train", name, "--resume", "--run", str(place.relative_to(motley.directory)), "--listen", "127.0.0.1:0", *PLACES)
    ended(again)
    assert not again.named("step")


def killed(motley, name):
    """The token of a head that has left its file where it was."""
    head = motley.start("train", name, "--run", "first", "--listen", "127.0.0.1:0", *PLACES, *BOTH)
    head.wait_event("run")
    head.kill()
    return (motley.directory / "token").read_text()


def test_a_token_file_is_read_again_while_nobody_answers(motley, script):
    name = script()
    killed(motley, name)
    joined = motley.start("join", name, *PLACES)
    joined.wait_text("cannot connect")
    head = motley.start("train", name, "--run", "second", "--listen", "127.0.0.1:0", *PLACES, *BOTH)
    ended(head, joined)
    assert any("has another token now" in line for line in joined.text), joined.story()


def test_who_comes_when_the_run_is_over_ends(motley, script):
    name = script()
    killed(motley, name)
    joined = motley.start("join", name, *PLACES)
    joined.wait_text("cannot connect")
    (motley.directory / "token").unlink()  # as a head does when its run is over
    assert joined.end() == 1 and "the token's file is gone: the run is over" in joined.error()["message"], joined.story()


def test_the_tokens_file_goes_with_the_run(motley, script):
    ended(motley.start("train", script(), "--run", "run", "--listen", "127.0.0.1:0", *PLACES))
    assert not (motley.directory / "token").exists() and (motley.directory / "run" / "token").exists()


def test_a_token_file_is_read_again_where_another_run_refuses_the_old_one(motley, script):
    name = script()
    old = killed(motley, name)
    head = motley.start("train", name, "--run", "second", "--listen", f"127.0.0.1:{wire.parse_token(old)['port']}", *PLACES, *BOTH)
    head.wait_event("run")
    new = (motley.directory / "token").read_text()
    (motley.directory / "token").write_text(old)
    joined = motley.start("join", name, *PLACES)
    joined.wait_text("looking for another token in its file")
    (motley.directory / "token").write_text(new)
    ended(head, joined)

