"""What plain torch began goes on here, and what began here goes on in plain torch: model, optimizer and schedule."""

import json
import subprocess

import pytest
import torch

import going_on
import motley as package
from conftest import COMMAND, SCRIPTS, train
from test_body import parts, plainly, run_of, same

ONE_ROUNDING = 1e-6
ALONE = ["--run", "run", "--listen", "127.0.0.1:0", "--device", "cpu", "--threads", "1"]


def bound(kind, first, last, start=None):
    """Of the differences of weights and state: of Muon, which turns rounding into more, those of plain torch with a batch in parts."""
    if kind != "muon":
        return ONE_ROUNDING
    whole = going_on.plainly(kind, first, last, start)
    spreads = [going_on.apart(going_on.plainly(kind, first, last, start, pieces), whole) for pieces in (10, 15, 30)]
    return max(ONE_ROUNDING, 3 * max(value for spread in spreads for value in spread.values()))


def close(found, within):
    assert all(value <= within for value in found.values()), (found, within)


def result(motley):
    return json.loads((motley.directory / "result.json").read_text())


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", going_on.KINDS)
def test_a_plain_training_goes_on(motley, kind, workers):
    program = train(motley, "going_on.py", kind, "here", workers=workers)
    start = going_on.plainly(kind, 0, going_on.CUT)
    close(result(motley), bound(kind, going_on.CUT, going_on.END, start))
    assert any("goes on" in line for line in program.text), program.text


@pytest.mark.parametrize("kind", going_on.KINDS)
def test_a_run_goes_on_in_plain_torch(motley, kind):
    train(motley, "going_on.py", kind, "back", workers=2)
    close(result(motley), bound(kind, 0, going_on.CUT))
    subprocess.run([str(COMMAND), "export", "run", "last.pt"], check=True, cwd=motley.directory)
    content = torch.load(motley.directory / "last.pt", weights_only=True)
    start = {"model": content["model"], "optimizer": content["optimizer"], "schedule": content["scheduler"]}
    went_on = going_on.plainly(kind, going_on.CUT, going_on.END, start)
    close(going_on.apart(went_on, going_on.plainly(kind, 0, going_on.END)), bound(kind, 0, going_on.END))


@pytest.mark.parametrize("kind", ["adamw", "adafactor"])
def test_it_is_resumed_though_the_script_has_saved_a_later_checkpoint_of_its_own(motley, kind):
    train(motley, "going_on.py", kind, "here", run="whole")
    whole = result(motley)
    words = ["train", str(SCRIPTS / "going_on.py"), *ALONE, "--set", "train.checkpoint_seconds=0.02"]
    first = motley.start(*words, kind, "here", "latest.pt")
    first.wait_step(45)
    first.kill()
    assert (motley.directory / "latest.pt").exists()
    again = motley.run(*words, "--resume", kind, "here", "latest.pt")
    assert again.process.returncode == 0, again.story()
    assert result(motley) == whole
    steps = {**first.losses(), **again.losses()}
    assert sorted(steps) == list(range(going_on.END - going_on.CUT))


def test_an_export_of_a_run_that_went_on_counts_all_steps(motley):
    train(motley, "going_on.py", "adamw", "here")
    subprocess.run([str(COMMAND), "export", "run", "last.pt"], check=True, cwd=motley.directory)
    content = torch.load(motley.directory / "last.pt", weights_only=True)
    assert {float(state["step"]) for state in content["optimizer"]["state"].values()} == {going_on.END}
    assert content["scheduler"]["last_epoch"] == going_on.END and content["step"] == going_on.END - going_on.CUT


def begun():
    """An optimizer over named parameters that has made steps."""
    model, _, train = parts()
    optimizer = torch.optim.AdamW(model.named_parameters(), lr=0.01)
    plainly(model, optimizer, train, epochs=1)
    return model, optimizer, train


def test_rounds_do_not_go_on_from_moments(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, optimizer, train = begun()
    with pytest.raises(package.Error, match='an optimizer that has made steps is not supported with train.mode = "rounds"'):
        next(run_of(model, optimizer, train, mode="rounds").epochs(1))


def test_parameters_of_different_numbers_of_steps_go_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (model, optimizer, train), (plain_model, plain_optimizer, _) = begun(), begun()
    for each in (optimizer, plain_optimizer):
        del each.state[each.param_groups[0]["params"][0]]  # as of a layer that was added
    plainly(plain_model, plain_optimizer, train, epochs=2)
    for _ in run_of(model, optimizer, train).epochs(2):
        pass
    same(model, plain_model)
    for p, q in zip(model.parameters(), plain_model.parameters(), strict=True):
        assert float(optimizer.state[p]["step"]) == float(plain_optimizer.state[q]["step"])


def test_a_second_run_goes_on_with_the_optimizer_of_the_first_also_when_it_is_resumed(motley):
    train(motley, "going_on.py", "adam", "twice")
    close(result(motley), ONE_ROUNDING)
    again = motley.run("train", str(SCRIPTS / "going_on.py"), *ALONE, "--resume", "adam", "twice")
    assert again.process.returncode == 0 and not again.named("step"), again.story()
    close(result(motley), ONE_ROUNDING)
