"""The scripts of the package: each is the training of a plain loop, and machines join them by their names."""

import json
import math
import sys

import pytest
import torch
from safetensors.torch import load_file

from conftest import COMMAND, ScriptStarter
from motley import _core, _errors
from motley._machines import _fetch
from motley.recipes import _images, fashion_cnn, gpt_mini, mlp, resnet
from program import Starter
from sample_order import sample_order

HERE = ["--listen", "127.0.0.1:0", "--threads", "1"]
ALONE = [*HERE, "--device", "cpu"]
TEXT = b"".join(b"%d bottles hang on the wall. " % number for number in range(200, 0, -1))
SMALL = ["--block", "16", "--layers", "2", "--heads", "2", "--width", "32"]
SAMPLES, BATCH, EPOCHS = 96, 32, 2


def write_images(directory):
    """IDX files with random images of 28 x 28 and random classes."""
    draws = torch.Generator().manual_seed(7)
    directory.mkdir()
    for part in ("train", "t10k"):
        for kind, shape, most in (("images-idx3", [SAMPLES, 28, 28], 256), ("labels-idx1", [SAMPLES], 10)):
            values = torch.randint(most, shape, generator=draws, dtype=torch.uint8)
            head = bytes([0, 0, 8, len(shape)]) + b"".join(size.to_bytes(4, "big") for size in shape)
            (directory / f"{part}-{kind}-ubyte").write_bytes(head + values.numpy().tobytes())


@pytest.fixture
def data(tmp_path):
    write_images(tmp_path / "images")
    (tmp_path / "text.txt").write_bytes(TEXT)
    return tmp_path


def images(data):
    return (_images.read(str(data / "images" / "train-images-idx3-ubyte"), 3).unsqueeze(1),
            _images.read(str(data / "images" / "train-labels-idx1-ubyte"), 1).long())


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=2e-3)


def adamw(model):
    groups = [{"params": [p for p in model.parameters() if (p.dim() >= 2) == matrices], "weight_decay": 0.1 * matrices}
              for matrices in (True, False)]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99))


def cosine(step, steps):
    return (1 + math.cos(math.pi * step / steps)) / 2


CASES = {
    "fashion-cnn": (fashion_cnn, lambda: fashion_cnn.Cnn(0.2860, 0.3530), images, adam, cosine, 0.0, ["--data", "images"]),
    "mnist-cnn": (fashion_cnn, lambda: fashion_cnn.Cnn(0.1307, 0.3081), images, adam, cosine, 0.0, ["--data", "images"]),
    "mlp": (fashion_cnn, lambda: mlp.Mlp([32, 16]), images, adam, cosine, 0.0, ["--data", "images", "--hidden", "32", "16"]),
    "gpt-mini": (gpt_mini, lambda: gpt_mini.Gpt(16, 2, 2, 32), lambda _: gpt_mini.windows(TEXT, 16)[0].tensors, adamw,
                 lambda step, _: (step + 1) / 100, 1.0, ["--text", "text.txt", *SMALL]),
    "resnet": (resnet, lambda: resnet.ResNet(8), lambda _: resnet.random(SAMPLES, 1).tensors,
               lambda model: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4), cosine, 0.0,
               ["--width", "8", "--samples", str(SAMPLES)]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_recipe_is_the_training_of_a_plain_loop(motley, data, name):
    recipe, make, read, optimize, factor, clip, arguments = CASES[name]
    program = motley.run("train", name, *arguments, "--epochs", str(EPOCHS), "--batch-size", str(BATCH), "--run", "run", *ALONE)
    assert program.process.returncode == 0, program.story()
    torch.manual_seed(1)
    model, (x, y) = make(), read(data)
    optimizer, steps = optimize(model), EPOCHS * -(-len(x) // BATCH)
    first, losses = [group["lr"] for group in optimizer.param_groups], {}
    for epoch in range(EPOCHS):
        for numbers in torch.from_numpy(sample_order(1, epoch, len(x))).split(BATCH):
            for group, rate in zip(optimizer.param_groups, first, strict=True):
                group["lr"] = rate * factor(len(losses), steps)
            loss = recipe.loss(model, [x[numbers], y[numbers]])
            optimizer.zero_grad()
            loss.backward()
            if clip:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            losses[len(losses)] = loss.item()
    assert program.losses() == pytest.approx(losses, rel=1e-5)
    left = load_file(data / "run" / "checkpoints" / f"step-{steps:09}" / "model.safetensors")
    wanted = model.state_dict()
    assert all(torch.allclose(left[each], wanted[each], rtol=1e-4, atol=1e-5) for each in left)
    if name != "resnet":  # random images have no test set
        assert program.named("eval")[-1]["step"] == steps


@pytest.fixture
def elsewhere(tmp_path, forks, monkeypatch):
    """Another machine: a directory and a cache of its own, and another file where the head's arguments name one."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "text.txt").write_bytes(b"another text, which nobody is to read")
    with ScriptStarter(str(COMMAND), place, forks) as starter:
        monkeypatch.setenv("MOTLEY_CACHE", str(place / "cache"))
        yield starter


def start_head(motley, data, *more, name="head"):
    head = motley.start("train", "gpt-mini", "--text", "text.txt", *SMALL, "--steps", "6", "--run", "run", "--token-file", "token",
                        *HERE, "--device", "none", "--name", name, *more)
    head.wait_event("run")
    return head


def test_a_machine_joins_a_recipe_that_nobody_names(motley, elsewhere, data):
    head = start_head(motley, data)
    other = elsewhere.start("join", str(data / "token"), "--threads", "1", "--name", "other")
    assert other.end() == 0, other.story()
    assert head.end() == 0, head.story()
    assert any("The head trains gpt-mini --text text.txt" in line for line in other.text)
    assert head.workers() == {"other/cpu"}
    kept = [path.read_bytes() for path in (elsewhere.directory / "cache").rglob("text.txt")]
    assert kept == [TEXT]
    motley.audit("run")
    # What is left of it.
    assert motley.run("export", "run", "run.pt").process.returncode == 0
    assert motley.run("export", "run", "run.safetensors").process.returncode == 0
    content, whole = torch.load(data / "run.pt", weights_only=True), load_file(data / "run.safetensors")
    assert content["step"] == 6 and set(content) >= {"model", "optimizer"}
    assert all(torch.equal(content["model"][each], whole[each]) for each in whole)
    texts = [motley.run("sample", "run", "--prompt", "99 b", "--tokens", "30", "--seed", seed, "--top-k", "9").named("sample")[0]["text"]
             for seed in ("3", "3", "4")]
    assert texts[0] == texts[1] != texts[2] and len(texts[0]) > 10
    # Its directory knows which recipe it was.
    more = motley.run("train", "--resume", "--run", "run", "--set", "train.steps=8", *ALONE)
    assert more.process.returncode == 0 and max(more.losses()) == 7, more.story()


def test_another_version_of_motley_is_refused(motley, data):
    other_head = data / "other.py"
    other_head.write_text("import sys\nfrom motley import _command, _core\n_core.version = '9.9.9'\nsys.exit(_command.main())\n")
    words = ["train", "gpt-mini", "--text", "text.txt", *SMALL, "--run", "run", "--token-file", "token", *HERE, "--device", "none"]
    with Starter(sys.executable, data) as starter:
        starter.start(other_head, *words)
        told = motley.fails("join", "--token-file", "token")
    assert "motley 9.9.9" in told["message"] and _core.version in told["message"]
    assert told["code"] == "mismatch" and told["try"] == "pip install motley==9.9.9"


def packed(**change):
    return json.dumps({"recipe": "mlp", "arguments": ["--lr", "1"], "version": _core.version, **change}).encode()


def test_nothing_that_a_head_says_of_a_recipe_is_believed(capsys):
    assert _fetch.receive(packed(), False, False) == ("mlp", ["--lr", "1"], [])
    assert _fetch.receive(packed(arguments=["\x1b[2J"]), False, False)[0] == "mlp"
    assert "\x1b" not in capsys.readouterr().err
    wrong = [packed(recipe="../mlp"), packed(recipe="_images"), packed(recipe="softmax"), packed(recipe=["mlp"]), packed(recipe=None),
             packed(arguments="x"), packed(arguments=[1]), packed(arguments=["x"] * 300), packed(arguments=["x" * 5000]),
             packed(version=1), packed(version="9.9.9"), packed(version="1\x1b[2J"), packed(version="1" * 99)]
    for each in wrong:
        with pytest.raises(_errors.Error) as raised:
            _fetch.receive(each, True, True)
        assert str(raised.value).isprintable() or "try:" in str(raised.value)
    whole = packed()
    for end in range(len(whole)):
        with pytest.raises(_errors.Error):
            _fetch.receive(whole[:end], True, True)


@pytest.mark.parametrize("words, part", [
    (["gpt-mini"], "--text"),
    (["gpt-mini", "--text", "text.txt", "--width", "9999999"], "from 1 to 2048"),
    (["gpt-mini", "--text", "text.txt", "--width", "30", "--heads", "4"], "no multiple"),
    (["gpt-mini", "--text", "text.txt", "--block", "4096"], "expected at least 8193"),
    (["mlp", "--data", "images", "--hidden", *["8192"] * 9], "at most 8 layers"),
    (["fashion-cnn", "--data", "text.txt"], "expected train-images-idx3-ubyte"),
    (["fashion-cm"], "is neither a recipe"),
    (["--name", "mlp", "motley.toml"], "motley.toml"),
])
def test_wrong_words_are_named(motley, data, words, part):
    told = motley.fails("train", *words, *ALONE)
    assert part in told["message"], told


def test_settings_stand_in_a_file(motley, data):
    (data / "motley.toml").write_text("[train]\nseed = 4\nmin_workers = 1\n")
    words = ["train", "mlp", "--data", "images", "--config", "motley.toml", "--set", "train.min_workers=2", "--run", "run", "--batch-size", "32"]
    motley.start(*words, *ALONE).wait_event("run")
    text = (data / "run" / "run.toml").read_text()
    assert "seed = 4" in text and "min_workers = 2" in text
    (data / "motley.toml").write_text("[train]\nseed = 4\nstepz = 1\n")
    told = motley.fails(*words, *ALONE)
    assert told["message"] == "motley.toml:3: there is no key 'train.stepz'" and "train.steps" in told["try"]


def test_files_of_images_are_checked(tmp_path):
    good = bytes([0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3])
    path = tmp_path / "labels"
    path.write_bytes(good)
    assert _images.read(str(path), 1).tolist() == [1, 2, 3]
    for wrong in [*(good[:end] for end in range(len(good))), b"\1" + good[1:], bytes([0, 0, 8, 1, 255, 0, 0, 0]) + good]:
        path.write_bytes(wrong)
        with pytest.raises(_errors.Error):
            _images.read(str(path), 1)
