"""gpt-mini against a plain loop over the same text, and what `motley sample` writes."""

import json
import subprocess

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

import plain
from program import LIMIT_S, checkpoint

BLOCK, LAYERS, HEADS, WIDTH = 32, 2, 4, 64
STEPS, BATCH, SEED = 20, 16, 1
WINDOWS = 500
MODEL = [f"model.block={BLOCK}", f"model.layers={LAYERS}", f"model.heads={HEADS}", f"model.width={WIDTH}"]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.c_proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = (part.view(n, t, HEADS, -1).transpose(1, 2) for part in self.c_attn(x).split(WIDTH, dim=2))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(mixed.transpose(1, 2).contiguous().view(n, t, WIDTH))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc = nn.Linear(WIDTH, 4 * WIDTH)
        self.c_proj = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(WIDTH), Attention()
        self.ln_2, self.mlp = nn.LayerNorm(WIDTH), Mlp()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """As nanoGPT writes it."""

    def __init__(self):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(256, WIDTH), "wpe": nn.Embedding(BLOCK, WIDTH),
            "h": nn.ModuleList(Block() for _ in range(LAYERS)), "ln_f": nn.LayerNorm(WIDTH)})
        self.lm_head = nn.Linear(WIDTH, 256, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, tokens):
        parts = self.transformer
        x = parts["wte"](tokens) + parts["wpe"](torch.arange(tokens.shape[1]))
        for block in parts["h"]:
            x = block(x)
        return self.lm_head(parts["ln_f"](x))


def loss_of(output, target, reduction="mean"):
    return functional.cross_entropy(output.flatten(0, 1), target.flatten(), reduction=reduction)


def decayed(module):
    """The parameter groups of the recipe: biases and LayerNorm do not decay."""
    named = list(module.named_parameters())
    return [{"params": [value for _, value in named if value.dim() == 2]},
            {"params": [value for _, value in named if value.dim() == 1], "weight_decay": 0.0}]


def recipe(fused):
    factor = plain.warmup_then_cosine(4, STEPS, 0.1)
    return plain.Recipe(lambda groups: torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1, fused=fused),
                        clip=1.0, schedule=lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, factor))


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Words of a made-up language: (path, training windows, test windows), each as samples and targets."""
    random = np.random.default_rng(5)
    words = [bytes(random.integers(97, 123, size=random.integers(2, 8)).astype(np.uint8)) for _ in range(40)]
    content = b" ".join(words[i] for i in random.integers(0, len(words), size=8000))[: WINDOWS * BLOCK + 7]
    path = tmp_path_factory.mktemp("text") / "words.txt"
    path.write_bytes(content)
    tokens = torch.tensor(list(content[: WINDOWS * BLOCK + 1]))
    x, y = tokens[:-1].view(WINDOWS, BLOCK), tokens[1:].view(WINDOWS, BLOCK)
    kept = WINDOWS * 9 // 10
    return path, (x[:kept], y[:kept]), (x[kept:], y[kept:])


def train(motley, run, text, workers, *more):
    settings = [f'data.uri="text:{text[0]}"', *MODEL, f"train.steps={STEPS}", f"train.global_batch={BATCH}", f"train.seed={SEED}"]
    shares = ["train.shares=[5,3]"] if workers > 1 else []
    return motley.train(run, "gpt-mini", workers, [*settings, "schedule.warmup_steps=4", *shares, *more])


@pytest.fixture(scope="module", params=[1, 2], ids=lambda workers: f"{workers}-worker")
def trained(request, motley, text, tmp_path_factory):
    run = tmp_path_factory.mktemp("gpt") / "run"
    return request.param, run, train(motley, run, text, request.param)


@pytest.fixture(scope="module")
def finished(motley, text, tmp_path_factory):
    run = tmp_path_factory.mktemp("finished") / "run"
    train(motley, run, text, 1)
    return run


def restored(run, step):
    module = Gpt()
    module.load_state_dict(load_file(checkpoint(run, step) / "model.safetensors"), strict=True)
    return module


def without_key_biases(weights):
    """Softmax takes no notice of the keys' biases, so their gradients are rounding and nothing else, which Adam makes steps of."""
    weights = {name: value.clone() for name, value in weights.items()}
    for name, value in weights.items():
        if name.endswith("attn.c_attn.bias"):
            value[WIDTH : 2 * WIDTH] = 0
    return weights


def test_follows_the_plain_loop(trained, text, measure):
    workers, run, process = trained
    for fused in (True, False):
        module = restored(run, 0)
        picks = plain.batches(SEED, len(text[1][0]), BATCH, STEPS)
        loop = plain.train(module, recipe(fused), text[1], picks, loss_of, decayed(module))
        suffix = "" if fused else ", default"
        measure(f"loss{suffix}", plain.worst_loss(process.losses(), loop.losses), 1e-6 if workers == 1 and fused else 1e-5)
        final = load_file(checkpoint(run, STEPS) / "model.safetensors")
        found, expected = without_key_biases(final), without_key_biases(module.state_dict())
        measure(f"weights{suffix}", plain.worst_weights(found, expected), 1e-4)
        assert loop.losses[-1] < 0.8 * loop.losses[0] and loop.clipped > 0
    if workers > 1:
        assert {tuple(part["samples"] for part in event["workers"]) for event in process.of("step")} == {(10, 6)}


@torch.no_grad()
def test_evaluates_the_bytes_held_out(trained, text, measure):
    _, run, process = trained
    x, y = text[2]
    output, found = restored(run, STEPS)(x), process.of("eval")[-1]
    assert found["samples"] == len(x)
    assert round(found["accuracy"] * y.numel()) == int((output.argmax(-1) == y).sum())
    measure("loss of the evaluation", abs(found["loss"] / loss_of(output, y).item() - 1), 1e-6)


@torch.no_grad()
def test_exports_load_in_torch(trained, motley, text, measure, tmp_path):
    _, run, _ = trained
    motley.export(run, tmp_path / "gpt.pt")
    script, module, x = torch.jit.load(tmp_path / "gpt.pt"), restored(run, STEPS), text[2][0]
    assert list(script.state_dict()) == list(module.state_dict())
    measure("outputs", (script(x.float()) - module(x)).abs().max().item(), 1e-5)
    assert script(x[:, :7].float()).shape == (len(x), 7, 256)


def sample(motley, run, *options):
    process = motley.start("sample", run, *options)
    assert process.finish() == 0, process.say()
    (event,) = process.events
    assert event["event"] == "sample"
    return event["text"]


@torch.no_grad()
def test_samples_are_those_of_the_model(finished, motley):
    run, prompt = finished, "ab cd"
    options = ["--bytes", 3 * BLOCK, "--prompt", prompt]
    assert sample(motley, run, *options, "--seed", 3) == sample(motley, checkpoint(run, STEPS), *options, "--seed", 3)
    assert sample(motley, run, *options, "--seed", 3) != sample(motley, run, *options, "--seed", 4)

    module, tokens = restored(run, STEPS), list(prompt.encode())
    for _ in range(3 * BLOCK):
        tokens.append(int(module(torch.tensor([tokens[-BLOCK:]]))[0, -1].argmax()))
    assert sample(motley, run, *options, "--temperature", 0).encode() == bytes(tokens[len(prompt):])
    assert sample(motley, run, *options, "--top-k", 1).encode() == bytes(tokens[len(prompt):])


def test_a_terminal_gets_nothing_but_text(finished, motley):
    """An untrained model writes any bytes; what is printed is UTF-8 without control characters."""
    out = subprocess.run([motley.path, "sample", checkpoint(finished, 0), "--bytes", "400", "--prompt", "größer: "], check=True,
                         capture_output=True, timeout=LIMIT_S).stdout.decode()
    assert out.startswith("größer: ") and out.endswith("\n")
    assert "\N{REPLACEMENT CHARACTER}" in out
    assert all(c in "\n\t" or not (ord(c) < 32 or 127 <= ord(c) < 160) for c in out)


@pytest.mark.parametrize("options, code", [
    (["--temperature", "-1"], "usage"), (["--temperature", "nan"], "usage"), (["--bytes", "0"], "usage"), (["--top-k", "257"], "usage")])
def test_wrong_numbers(finished, motley, options, code):
    process = motley.start("sample", finished, *options)
    assert process.finish() == 2
    assert [event["code"] for event in process.events] == [code]


def test_other_runs_write_no_text(motley, tmp_path):
    motley.train(tmp_path / "run", "softmax", 1, ["train.steps=1"])
    for source, said in ((tmp_path / "run", "found one of softmax"), (tmp_path / "nothing", "nothing")):
        process = motley.start("sample", source)
        assert process.finish() == 2
        assert said in json.dumps(process.events)
