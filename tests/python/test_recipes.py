"""The built-in models by the torch of this Python: what the native program makes of them, alone and beside it."""

import pathlib

import pytest
import torch
from safetensors.torch import load_file

import plain
from conftest import COMMAND, ROOT
from program import Starter

NATIVE = ROOT / "build" / "motley"
STEPS = 20
GPT = ["model.block=32", "model.layers=2", "model.heads=4", "model.width=64", "data.uri=text:text.txt", "data.test_uri=text:text.txt",
       "train.global_batch=16"]
MODELS = {
    "fashion-cnn": ["train.global_batch=64"],
    "mlp": ["train.global_batch=64", "model.hidden=[32]", "optimizer.groups=[{match=\"*.bias\", lr=0.01}]"],
    "gpt-mini": GPT,
}
ALONE = ["--listen", "127.0.0.1:0", "--threads", "1", "--device", "cpu"]
needs_native = pytest.mark.skipif(not NATIVE.is_file(), reason="needs the native program: make build")


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


def weights(directory, step):
    return load_file(directory / "checkpoints" / f"step-{step:09}" / "model.safetensors")


@needs_native
@pytest.mark.parametrize("model", MODELS)
def test_one_recipe_is_one_training(motley, native, data, model):
    here, there = train(motley, model, "here"), train(native, model, "there")
    first, reference = weights(data / "here", 0), weights(data / "there", 0)
    assert list(first) == list(reference)
    assert all(torch.equal(first[name], reference[name]) for name in first), "the initial weights differ"
    assert here.losses() == pytest.approx(there.losses(), rel=1e-5)
    last, reference = weights(data / "here", STEPS), weights(data / "there", STEPS)
    assert all(torch.allclose(last[name], reference[name], rtol=1e-4, atol=1e-5) for name in last)
    found, wanted = here.named("eval")[-1], there.named("eval")[-1]
    assert found["loss"] == pytest.approx(wanted["loss"], rel=1e-5) and found["samples"] == wanted["samples"]
    assert found["accuracy"] == pytest.approx(wanted["accuracy"], abs=1 / 300)


@needs_native
@pytest.mark.parametrize("model, head_is_native", [("fashion-cnn", True), ("mlp", False), ("gpt-mini", True)])
def test_both_in_one_run(motley, native, data, model, head_is_native):
    head, other = (native, motley) if head_is_native else (motley, native)
    shared = settings(model, "train.min_workers=2", "train.shares=[1,1]", "train.verify=0")
    run = head.start("train", model, *shared, "--run", "run", *ALONE, "--token-file", "token")
    run.wait_event("run")
    joined = other.start("join", "--token-file", "token", "--threads", "1", "--device", "cpu", "--name", "other", "--data-dir", str(data))
    assert run.end() == 0, run.story()
    assert joined.end() == 0, joined.story()
    assert any(part["worker"] == "other/cpu" and part["samples"] for step in run.named("step") for part in step["workers"])
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
