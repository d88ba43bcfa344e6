"""Machines compare what runs of their scripts at join: its code in a normal form, and the values that this code reads."""

import ast
import functools
import subprocess
import sys
import types

import pytest

from conftest import SCRIPTS
from motley._trials import _compared, _layers
from numbered import source

# What a run is made of, with all kinds of places that a setting may stand at. Lines below are changed one by one.
HELPER = '''"""Beside the script."""
import math
SCALE = 2.0

def smooth(x, by=0.1):
    return x * (1 - by) + math.sqrt(SCALE) * by
'''
SCRIPT = '''"""A script."""
import functools
import os
import random
import time
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import Dataset
import helper
from helper import smooth as smoothed

HOST, PLACE, DEVICE, BEGUN, RANK, NAME = "head", "/data/a", "cpu", 1764361104.25, 0, os.environ.get("RUN_NAME", "one")
weight, act, calls = 0.5, F.relu, 0
classes = torch.tensor([1.0, 2.0, 3.0])
config = {"place": "/data/a", "beta": 0.9, "workers": 4}
reduce = "mean"

def doubled(function):
    @functools.wraps(function)
    def wrapper(*given):
        return 2 * function(*given)
    return wrapper

@doubled
def term(out):
    return out.pow(2).mean()

def scaled(by):
    def scale(x):
        return x * by
    return scale

half = scaled(0.25)

class Base(nn.Module):
    slope = 0.1
    def extra(self, x):
        return F.leaky_relu(x, self.slope)

class Net(Base):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.drop, self.last = nn.Linear(8, 8), nn.BatchNorm1d(8, eps=1e-5), nn.Dropout(0.1), nn.Linear(8, 3)
        self.middle = nn.Sequential(nn.ReLU(), nn.LayerNorm(8))
        self.mixed = 0.7
    def forward(self, x):
        """Of the input."""
        x = act(self.norm(self.first(x)))  # a comment
        return self.last(self.drop(self.middle(x))) * self.mixed + self.extra(x).sum() * 0

class Smooth:
    def __init__(self, by):
        self.by, self.inner = by, nn.CrossEntropyLoss(label_smoothing=0.1)
    def __call__(self, out, y):
        return self.inner(out, y) + self.by

criterion = Smooth(0.2)

class Points(Dataset):
    def __init__(self):
        self.place, self.flip = PLACE, 0.5
        self.x, self.y = torch.zeros(40, 8), torch.arange(40) % 3
        self.seen = {}
    def __len__(self):
        return len(self.x)
    def __getitem__(self, index):
        self.seen[index] = True
        x = self.x[index]
        return (x.flip(0) if random.random() < self.flip else x), self.y[index]

def collate(items):
    return torch.stack([x for x, _ in items]), torch.stack([y for _, y in items])

def loss(model, batch, epoch=1):
    global calls
    calls += 1
    if RANK == 0 and calls % 1000 == 0:
        print(HOST, PLACE, DEVICE, NAME, time.time() - BEGUN, config["place"], config["workers"])
    out = model(batch[0].to(DEVICE))
    extra = weight * term(out) + half(smoothed(out)).mean() * config["beta"] + helper.smooth(out).sum() * 0
    if model.training and epoch > 1:
        extra = extra + out.abs().mean()
    return criterion(out, batch[1]) + extra * classes[batch[1]].mean() + F.mse_loss(out, out, reduction=reduce)

score = lambda model, batch: {"accuracy": (model(batch[0]).argmax(1) == batch[1]).sum()}; other = lambda model, batch: {}
'''
CHANGES = {
    "weight": ("weight, act, calls = 0.5", "weight, act, calls = 0.6", "weight\t=0.6"),
    "an activation by name": ("act, calls = 0.5, F.relu", "act, calls = 0.5, F.gelu", "act\t=gelu"),
    "class weights": ("[1.0, 2.0, 3.0]", "[1.0, 2.0, 5.0]", "classes\t"),
    "a setting in a dictionary": ('"beta": 0.9', '"beta": 0.8', "config['beta']\t=0.8"),
    "a word": ('reduce = "mean"', 'reduce = "sum"', "reduce\t=sum"),
    "a decorator": ("return 2 * function", "return 3 * function", "wrapper()\t"),
    "a decorator left out": ("@doubled\ndef term", "def term", "term()\t"),
    "what is decorated": ("out.pow(2)", "out.pow(4)", "term()\t"),
    "a closure's number": ("scaled(0.25)", "scaled(0.3)", "by in scale()\t=0.3"),
    "a class's attribute": ("slope = 0.1", "slope = 0.2", "Base.slope\t=0.2"),
    "a method of a base": ("F.leaky_relu", "F.elu", "Base.extra()\t"),
    "an attribute": ("self.mixed = 0.7", "self.mixed = 0.8", "Net.mixed\t=0.8"),
    "dropout": ("nn.Dropout(0.1)", "nn.Dropout(0.2)", "Dropout.p\t=0.2"),
    "BatchNorm's eps": ("eps=1e-5", "eps=1e-3", "BatchNorm1d.eps\t=0.001"),
    "a layer": ("nn.ReLU()", "nn.GELU()", "the layers of model\t"),
    "smoothing in a loss object": ("label_smoothing=0.1", "label_smoothing=0.2", "CrossEntropyLoss.label_smoothing\t=0.2"),
    "a loss object's number": ("Smooth(0.2)", "Smooth(0.3)", "Smooth.by\t=0.3"),
    "a transform's chance": ("PLACE, 0.5", "PLACE, 0.6", "Points.flip\t=0.6"),
    "the collate function": ("torch.stack([x for", "torch.stack([2 * x for", "collate()\t"),
    "a later epoch": ("epoch > 1", "epoch > 2", "loss()\t"),
    "training only": ("if model.training and", "if", "loss()\t"),
    "a default": ("epoch=1)", "epoch=2)", "epoch of loss()\t=2"),
    "the score": (".argmax(1) == batch[1]).sum()}; other", ".argmin(1) == batch[1]).sum()}; other", "score (a lambda)\t"),
}


def words(path, script=SCRIPT, helper=HELPER):
    """What a machine says, whose script and helper lie there."""
    path.mkdir(parents=True, exist_ok=True)
    main = types.ModuleType("__main__")
    main.__file__ = str(path / "script.py")
    (path / "script.py").write_text(script)
    (path / "helper.py").write_text(helper)
    before = sys.modules["__main__"]
    try:
        sys.path.insert(0, str(path))
        sys.modules["__main__"] = main
        exec(compile(script, main.__file__, "exec"), main.__dict__)
        model = main.Net()
        roots = {"loss": main.loss, "score": main.score, "model": model,
                 "train_loader": source(main.Points(), batch=8, collate_fn=main.collate)}
        return _layers.words(roots, (*model.parameters(), *model.buffers()))
    finally:
        sys.modules["__main__"] = before
        sys.modules.pop("helper", None)
        sys.path.remove(str(path))


def by_name(text):
    return dict(line.split("\t") for line in text.splitlines())


def differing(here, there):
    """As src/wire/script.cpp finds it, but for the last bits of floating-point numbers."""
    here, there = by_name(here), by_name(there)
    return sorted(name for name in here.keys() & there.keys() if here[name] != there[name])


@functools.cache
def said(path):
    return words(path / "head")


@pytest.mark.parametrize("change", CHANGES)
def test_what_differs_is_named(tmp_path, change):
    before, after, line = CHANGES[change]
    assert SCRIPT.count(before) == 1, before
    there = words(tmp_path / "other", SCRIPT.replace(before, after))
    made = {f"{kind}.__init__()" for kind in ("Net", "Points", "Smooth")}  # where it is written, too
    assert [name for name in differing(said(tmp_path), there) if name not in made] == [line.split("\t")[0]]
    assert line in there


@pytest.mark.parametrize(("before", "after", "name"), [("return x * (1 - by)", "return x * (2 - by)", "helper.smooth()"),
                                                       ("SCALE = 2.0", "SCALE = 3.0", "helper.SCALE"),
                                                       ("by=0.1", "by=0.2", "by of helper.smooth()")])
def test_a_helper_in_another_module_counts(tmp_path, before, after, name):
    assert differing(said(tmp_path), words(tmp_path / "other", helper=HELPER.replace(before, after))) == [name]


def test_what_a_machine_is_like_is_no_difference(tmp_path, monkeypatch):
    here = said(tmp_path)
    monkeypatch.setenv("RUN_NAME", "two")
    there = SCRIPT
    for before, after in (('"head"', '"gpu-box-7"'), ('"/data/a", "cpu"', '"D:\\\\data", "cuda:1"'),
                          ("1764361104.25, 0,", "1764361999.5, 3,"), ('{"place": "/data/a"', '{"place": "C:/b.npy"'),
                          ('"workers": 4', '"workers": 16'), ("F.relu, 0", "F.relu, 17")):
        assert there.count(before) == 1, before
        there = there.replace(before, after)
    monkeypatch.setattr("platform.node", lambda: "gpu-box-7")
    assert differing(here, words(tmp_path / "a" / "deeper", there)) == []


def formatted(text):
    """Other comments, no docstrings, another layout."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            node.returns = None if isinstance(node, ast.ClassDef) else ast.Name("object")
            kept = [each for each in node.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
            node.body = [ast.parse('"Another docstring."').body[0], *kept]
    return "# another comment\n\n\n" + ast.unparse(ast.fix_missing_locations(tree)).replace("\n\n", "\n\n\n# more\n\n")


def test_path_comments_and_formatting_are_no_difference(tmp_path):
    here, there = said(tmp_path), words(tmp_path / "another" / "place", formatted(SCRIPT), formatted(HELPER))
    assert differing(here, there) == []
    assert by_name(here).keys() == by_name(there).keys(), "all of it was compared"


WAITING = """
import time
PAUSE, SCALE = 0.1, 2.0
def loss(model, batch):
    time.sleep(PAUSE * 2)
    return SCALE * model(batch).mean()
"""


@pytest.mark.parametrize(("before", "after", "names"), [
    ("PAUSE, SCALE = 0.1", "PAUSE, SCALE = 0.7", []),
    ("    time.sleep(PAUSE * 2)\n", "", []),
    ("= 0.1, 2.0", "= 0.1, 3.0", ["SCALE"]),
    ("time.sleep(PAUSE * 2)", "time.sleep(model.step())", ["loss()"])])
def test_how_long_a_machine_waits_is_no_difference(tmp_path, before, after, names):
    def words_of(name, text):
        (tmp_path / name).write_text(text)
        given = {"__name__": "__main__"}
        exec(compile(text, str(tmp_path / name), "exec"), given)
        return _layers.words({"loss": given["loss"]}, ())

    assert differing(words_of("here.py", WAITING), words_of("there.py", WAITING.replace(before, after))) == names
    read = WAITING.replace("SCALE *", "PAUSE *")
    assert differing(words_of("read.py", read), words_of("other.py", read.replace("0.1", "0.7"))) == ["PAUSE"]


def test_what_has_no_source_is_compared_under_one_version_of_python(tmp_path):
    given = {"__name__": "script"}
    exec(compile("def loss(model, batch):\n    return 2 * model(batch).mean()\n", "<nowhere>", "exec"), given)
    text = _layers.words({"loss": given["loss"]}, ())
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert f"loss() in Python {version}\t#" in text and "loss\t=loss" in text
    path = tmp_path / "edited.py"
    path.write_text("def loss(model, batch):\n    return 2 * model(batch).mean()\n")
    exec(compile(path.read_text(), str(path), "exec"), given)
    path.write_text("def loss(model, batch):\n    return 3 * model(batch).mean()\n")  # meanwhile
    assert f"loss() in Python {version}\t#" in _layers.words({"loss": given["loss"]}, ())


def test_an_array_run_has_its_words_without_torch():
    code = ("import sys; from motley._trials import _compared\n"
            "class C:\n    scale = 2.0\n    def gradients(self, samples, sums): return self.scale * len(samples), 1\n"
            "print(_compared.words({'computation': C()}, used=_compared.OF_ARRAYS)); assert 'torch' not in sys.modules")
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "C.scale\t=2\n" in told and "C.gradients() in Python" in told


def test_the_words_fit(tmp_path):
    source = "\n".join(f"def helper_{'x' * 60}_{n}(x):\n    return x + {n}\n" for n in range(2000))
    source += "def loss(model, batch):\n    return " + " + ".join(f"helper_{'x' * 60}_{n}(1)" for n in range(2000)) + "\n"
    (tmp_path / "long.py").write_text(source)
    given = {"__name__": "script"}
    exec(compile(source, str(tmp_path / "long.py"), "exec"), given)
    text = _layers.words({"loss": given["loss"]}, ())
    assert 50_000 < len(text.encode()) <= _compared.BYTES_MAX and text.endswith("\n")


TRAINING = (SCRIPTS / "kept_apart.py").read_text()


def copied(motley, place, before="", after=""):
    """Of the training, with one change."""
    assert before == "" or TRAINING.count(before) == 1
    path = motley.directory / place / "training.py"
    path.parent.mkdir()
    path.write_text(TRAINING.replace(before, after) if before else TRAINING)
    return str(path)


def head_of(motley):
    head = motley.start("train", copied(motley, "head"), "--run", "run", "--listen", "127.0.0.1:0", "--device", "none", "--threads", "1",
                        "--token-file", "token")
    head.wait_event("run")
    return head


@pytest.mark.parametrize(("before", "after", "told"), [
    ("Dropout(0.1)", "Dropout(0.4)", "Dropout.p (0.4 instead of 0.1)"),
    ("WEIGHT = 0.5", "WEIGHT = 0.25", "WEIGHT (0.25 instead of 0.5)"),
    ("epoch > 1", "epoch > 2", "loss()"),
    ("model.training and ", "", "loss()"),
    ("argmax(1) == batch", "argmin(1) == batch", "score()")])
def test_who_has_another_script_is_refused_by_name(motley, before, after, told):
    head = head_of(motley)
    error = motley.fails("join", "--token-file", "token", copied(motley, "other", before, after), "--threads", "1", status=1)
    assert f"expected the script of the run, found another script: not the same in {told}" in error["message"]
    assert "motley join TOKEN --fetch" in error["try"]
    refused = head.wait_event("worker", lambda e: e["change"] == "refused")
    assert told in refused["reason"]
    assert not head.named("step")


def test_the_heads_script_is_fetched_instead(motley, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    head = head_of(motley)
    motley.fails("join", "--token-file", "token", copied(motley, "old", "Dropout(0.1)", "Dropout(0.4)"), status=1)
    script = copied(motley, "same", "    for epoch in", "    # one machine of several\n    for epoch in")
    same = motley.start("join", "--token-file", "token", script, "--name", "same", "--threads", "1")
    other = motley.start("join", "--token-file", "token", "--fetch", "--yes", "--threads", "1", "--name", "other")
    assert [each.end() for each in (head, same, other)] == [0, 0, 0], head.story()
    assert {part["worker"] for step in head.named("step") for part in step["workers"]} <= {"same/cpu", "other/cpu"}
