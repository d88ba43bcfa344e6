"""The built-in models by the torch of this Python: what the native program makes of them, alone and beside it."""

import pathlib

import pytest
import torch

import plain
from beside_native import ALONE, NATIVE, in_one_run, needs_native, same_training
from conftest import COMMAND
from program import Starter

STEPS = 20
GPT = ["model.block=32", "model.layers=2", "model.heads=4", "model.width=64", "data.uri=text:text.txt", "data.test_uri=text:text.txt",
       "train.global_batch=16"]
MODELS = {
    "fashion-cnn": ["train.global_batch=64"],
    "mlp": ["train.global_batch=64", "model.hidden=[32]", "optimizer.groups=[{match=\"*.bias\", lr=0.01}]"],
    "gpt-mini": GPT,
}


@pytest.fixture
def data(tmp_path):
    plain.write_idx(plain.find_fashion(), tmp_path, {"train": 1000, "test": 300})
    (tmp_path / "text.txt").write_bytes(pathlib.Path(__file__).read_bytes() * 4)
    return tmp_path


@pytest.fixture
def native(data):
    with Starter(str(NATIVE), data) as starter:
        yield starter


def settings(model, *more):
    uri = [] if model == "gpt-mini" else ["data.uri=.", "data.test_uri=."]
    return [word for key in [f"train.steps={STEPS}", *uri, *MODELS[model], *more] for word in ("--set", key)]


def train(starter, model, run):
    program = starter.run("train", model, *settings(model), "--run", run, *ALONE)
    assert program.process.returncode == 0, program.story()
    return program


@needs_native
@pytest.mark.parametrize("model", MODELS)
def test_one_recipe_is_one_training(motley, native, data, model):
    here, there = train(motley, model, "here"), train(native, model, "there")
    same_training(data, here, there, STEPS)


@needs_native
@pytest.mark.parametrize("model, head_is_native", [("fashion-cnn", True), ("mlp", False), ("gpt-mini", True)])
def test_both_in_one_run(motley, native, data, model, head_is_native):
    head, other = (native, motley) if head_is_native else (motley, native)
    shared = settings(model, "train.min_workers=2", "train.shares=[1,1]", "train.verify=0")
    run = in_one_run(head, other, data, model, shared)
    alone = train(head, model, "alone")
    assert run.losses() == pytest.approx(alone.losses(), rel=1e-4)


@needs_native
def test_a_text_goes_on_and_a_model_is_exported_as_by_the_native_program(motley, native, data):
    train(motley, "gpt-mini", "run")
    said = [starter.run("sample", "run", "--prompt", "def", "--bytes", "40", "--seed", "3").named("sample")[0]["text"]
            for starter in (motley, native)]
    assert said[0] == said[1] and len(said[0]) >= 30
    for starter, name in ((motley, "here.pt"), (native, "there.pt")):
        assert starter.run("export", "run", name).process.returncode == 0
    here, there = (torch.jit.load(data / name) for name in ("here.pt", "there.pt"))
    x = torch.randint(0, 256, (2, 32)).float()
    assert torch.allclose(here(x), there(x), atol=1e-5) and here.state_dict().keys() == there.state_dict().keys()


def test_what_does_not_fit_is_named(motley, data):
    wide = ["--set", "data.uri=synthetic:640:32:10", "--set", "data.test_uri="]
    assert "takes images of [1, 28, 28]" in motley.fails("train", "fashion-cnn", *wide, "--run", "run", status=1)["message"]


def test_without_torch_it_is_said_how_to_get_it(data, monkeypatch):
    (data / "without").mkdir()
    (data / "without" / "torch.py").write_text("raise ImportError('no torch here')\n")
    monkeypatch.setenv("PYTHONPATH", str(data / "without"))
    with Starter(str(COMMAND), data) as starter:
        told = starter.fails("train", "mlp", "--set", "data.uri=.", "--run", "run", *ALONE)
        assert "torch" in told["message"] and "pip install torch" in told["try"]
        assert starter.run("train", "softmax", "--set", "train.steps=2", "--run", "soft", *ALONE).process.returncode == 0


# A micro-batch of one is computed without the compiler, and rounds have an optimizer of torch's: with some versions of torch either loads
# parts of it that want a place for temporary files, after the joiner's files were confined (on Linux).
@pytest.mark.parametrize("more", [["train.micro_batch=1"], ["train.mode=rounds", "train.rounds.steps=5"]])
def test_who_joins_needs_no_file_that_it_may_not_write(motley, data, more):
    in_one_run(motley, motley, data, "gpt-mini", settings("gpt-mini", "train.min_workers=2", "train.shares=[1,1]", *more))
