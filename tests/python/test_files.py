"""Weights and optimizers in and out of runs of scripts."""

import json
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

import cases
import motley as package
from conftest import COMMAND, SCRIPTS, train
from motley._models import _files, _parts
from motley._runs import _best, _epoch
from test_parity import loop, weights_of


@pytest.mark.parametrize("name", ["groups", "nadam"])
def test_a_run_goes_on_in_torch_with_its_optimizer(motley, tmp_path, name):
    case = cases.make(name)
    loop(case)
    train(motley, "train_case.py", name)
    subprocess.run([str(COMMAND), "export", "run", "last.pt"], check=True, cwd=tmp_path)
    content = torch.load(tmp_path / "last.pt", weights_only=True)
    fresh = cases.make(name)
    fresh.model.load_state_dict(content["model"])
    fresh.optimizer.load_state_dict(content["optimizer"])
    assert content["step"] == 42
    expected = case.optimizer.state_dict()["state"]
    found = fresh.optimizer.state_dict()["state"]
    assert found.keys() == expected.keys()
    for number, state in expected.items():
        assert found[number].keys() == state.keys()
        for name, tensor in state.items():
            torch.testing.assert_close(found[number][name], tensor, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("name", ["dropout", "adagrad", "plateau", "nadam", "lookahead"])
def test_an_interrupted_run_is_resumed_as_if_nothing_had_been(motley, name):
    whole = train(motley, "train_case.py", name, run="whole")
    options = ["--run", "run", "--listen", "127.0.0.1:0", "--device", "cpu", "--threads", "1", "--set", "train.checkpoint_seconds=0.02"]
    first = motley.start("train", str(SCRIPTS / "train_case.py"), *options, name)
    first.wait_step(17)
    first.kill()
    again = motley.run("train", str(SCRIPTS / "train_case.py"), *options, "--resume", name)
    assert again.process.returncode == 0, again.story()
    assert {**first.losses(), **again.losses()} == whole.losses()
    motley.audit("run")


def test_saved_weights_are_those_of_the_model(motley, tmp_path):
    model = cases.Normed(0.0)
    for name in ("model.safetensors", "model.pt"):
        _files.save(model, str(tmp_path / name))
        other = cases.Normed(0.0)
        _files.load(other, str(tmp_path / name))
        assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), other.state_dict().values(), strict=True))
    found = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(found[name], tensor) for name, tensor in model.state_dict().items())
    with pytest.raises(package.Error, match="of another model"):
        _files.load(cases.mlp(), str(tmp_path / "model.safetensors"))
    (tmp_path / "model.safetensors").write_bytes((tmp_path / "model.safetensors").read_bytes()[:-1])
    with pytest.raises(package.Error, match="no whole safetensors"):
        _files.load(model, str(tmp_path / "model.safetensors"))


def test_fit_starts_from_a_run(motley, tmp_path):
    program = train(motley, "train_case.py", "normed")
    script = f"""
import sys
sys.path.insert(0, {str(SCRIPTS)!r})
import cases, motley, json
from torch.utils.data import DataLoader
case = cases.make("normed")
case.optimizer.param_groups[0]["lr"] = 0.0
done = motley.fit(case.model, case.loss, DataLoader(case.train, 112), case.optimizer, 1, init="run")
print(json.dumps([epoch.number for epoch in done]))
print(float(case.model.head.weight.detach().sum()))
"""
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=tmp_path).stdout.splitlines()
    assert json.loads(said[-2]) == [1]
    assert float(said[-1]) == pytest.approx(float(weights_of(motley, program)["head.weight"].sum()), rel=1e-6)


@pytest.mark.parametrize("what, scores, best", [
    ("f1", ["nan", 0.25, "nan", 0.5, 0.1], 0.5), ("test_loss", ["nan", 3.0, "inf", 2.0, "nan"], 2.0),
    ("f1", ["nan", "-inf"], float("-inf"))])
def test_any_score_that_is_a_number_beats_one_that_is_none(tmp_path, what, scores, best):
    kept, parts = _best.Best(what, None, True), _parts.together(torch.nn.Linear(1, 1), len)
    for step, score in enumerate(map(float, scores)):
        kept.look(_epoch.Epoch.of({"step": step, "scores": {"f1": score}, "test_loss": score}), parts, str(tmp_path))
    assert kept.value == best
