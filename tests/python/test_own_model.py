"""TorchScript files by the torch of this Python: what the native program makes of them, alone and beside it."""

import pathlib
import subprocess
import sys

import pytest
import torch

from beside_native import ALONE, NATIVE, in_one_run, needs_native, same_training
from conftest import ROOT
from program import Starter

MAKER = ROOT / "tests" / "parity" / "make_torchscript_models.py"
STEPS = 20
# Of each file of MAKER: the samples that it takes, and keys of the run file.
MODELS = {
    "convnet": ("64:5", ["train.global_batch=48", "data.uri=images.npy+classes.npy", "data.test_uri=images.npy+classes.npy"]),
    "tied": ("6:3", ["train.global_batch=24", 'optimizer.groups=[{match="*.bias", lr=0.01}]']),
    "frozen": ("6:3", ["train.global_batch=24"]),
    "attention": ("6:3", ["train.global_batch=64", "train.grain=16"]),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    directory = tmp_path_factory.mktemp("models")
    subprocess.run([sys.executable, MAKER, directory], check=True)
    return directory


@pytest.fixture
def data(tmp_path):
    import numpy as np

    random = np.random.default_rng(1)
    np.save(tmp_path / "images.npy", random.normal(size=(200, 1, 8, 8)).astype(np.float32))
    np.save(tmp_path / "classes.npy", random.integers(0, 5, size=200))
    return tmp_path


@pytest.fixture
def native(data):
    with Starter(str(NATIVE), data) as starter:
        yield starter


def run_file(directory, file):
    (directory / "run.toml").write_text(f'[model]\nkind = "torchscript"\nfile = "{file}"\n')
    return "run.toml"


def settings(name, *more):
    shape, keys = MODELS[name]
    made_up = [f"data.uri=synthetic:300:{shape}", f"data.test_uri=synthetic:90:{shape}"]
    return [word for key in [f"train.steps={STEPS}", *made_up, *keys, *more] for word in ("--set", key)]


def train(starter, models, name, run, *more):
    program = starter.run("train", run_file(starter.directory, models / f"{name}.pt"), *settings(name, *more), "--run", run, *ALONE)
    assert program.process.returncode == 0, program.story()
    return program


@needs_native
@pytest.mark.parametrize("name", MODELS)
def test_one_file_is_one_training(motley, native, models, data, name):
    here, there = train(motley, models, name, "here"), train(native, models, name, "there")
    same_training(data, here, there, STEPS)


@needs_native
@pytest.mark.parametrize("name, head_is_native", [("convnet", True), ("convnet", False), ("frozen", False)])
def test_both_in_one_run(motley, native, models, data, name, head_is_native):
    head, other = (native, motley) if head_is_native else (motley, native)
    shared = settings(name, "train.min_workers=2", "train.shares=[1,1]", "train.verify=0", "train.global_batch=64")
    run = in_one_run(head, other, data, run_file(data, models / f"{name}.pt"), shared)
    alone = train(head, models, name, "alone", "train.global_batch=64")
    assert run.losses() == pytest.approx(alone.losses(), rel=1e-4)


@needs_native
@pytest.mark.parametrize("name", ["convnet", "frozen"])
def test_a_model_is_exported_and_resumed_as_by_the_native_program(motley, native, models, data, name):
    train(motley, models, name, "run")
    for starter, file in ((motley, "here.pt"), (native, "there.pt")):
        assert starter.run("export", "run", file).process.returncode == 0
    here, there = (torch.jit.load(data / file) for file in ("here.pt", "there.pt"))
    state, reference = here.state_dict(), there.state_dict()
    assert list(state) == list(reference) and all(torch.equal(state[tensor], reference[tensor]) for tensor in state)
    assert not here.training
    resumed = motley.run("train", "--resume", "--run", "run", "--set", f"train.steps={2 * STEPS}", *ALONE)
    assert resumed.process.returncode == 0, resumed.story()
    assert max(step["step"] for step in resumed.named("step")) == 2 * STEPS - 1


@needs_native
def test_what_a_file_may_not_do_is_refused_in_the_same_words(motley, native, models, data):
    told = set()
    for path in sorted(models.glob("hostile-*.pt")):
        words = ["train", run_file(data, path), *settings("tied"), "--run", f"run-{path.stem}", *ALONE]
        here, there = motley.fails(*words), native.fails(*words)
        assert (here["code"], here["message"], here["try"]) == (there["code"], there["message"], there["try"])
        told.add(here["message"])
    assert len(told) >= 5 and not (models / "written").exists()


@needs_native
@pytest.mark.parametrize("content", [b"no model", b"", b"PK\x03\x04 and no more"])
def test_what_is_no_model_is_said_in_the_same_words(motley, native, data, content):
    (data / "model.pt").write_bytes(content)
    words = ["train", run_file(data, "model.pt"), *settings("tied"), "--run", "run", *ALONE]
    here, there = motley.fails(*words), native.fails(*words)
    assert (here["code"], here["try"]) == (there["code"], there["try"])
    assert here["message"].partition(":")[0] == there["message"].partition(":")[0]


@needs_native
@pytest.mark.parametrize("keys, status", [(["data.uri=synthetic:300:7:3", "data.test_uri="], 1),
                                          (["data.uri=synthetic:300:6:4", "data.test_uri="], 1), (["model.loss=huber"], 2)])
def test_what_does_not_fit_is_named(motley, native, models, data, keys, status):
    words = ["train", run_file(data, models / "tied.pt"), *settings("tied", *keys), "--run", "run", *ALONE]
    here, there = motley.fails(*words, status=status), native.fails(*words, status=status)
    assert (here["code"], here["try"]) == (there["code"], there["try"])
    assert here["message"][:40] == there["message"][:40]


WARNS = """
import sys
import warnings

import torch


class Warns(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(6, 3)

    def forward(self, x):
        warnings.warn("heard of it")
        return self.out(x)


torch.jit.script(Warns()).save(sys.argv[1])
"""


def test_what_a_file_warns_of_is_not_shown(motley, data):
    (data / "warns.py").write_text(WARNS)  # the compiler reads the source
    subprocess.run([sys.executable, data / "warns.py", data / "warns.pt"], check=True)
    words = ["train", run_file(data, pathlib.Path("warns.pt")), *settings("tied"), "--run", "run", *ALONE]
    program = motley.run(*words)
    assert program.process.returncode == 0 and "heard of it" not in program.story()
