"""The recipe gpt-mini against a plain loop over the same text, of a model as nanoGPT writes it."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

import plain
from sample_order import sample_order

BLOCK, LAYERS, HEADS, WIDTH, RATE, WARMUP = 32, 2, 4, 64, 1e-2, 100
STEPS, BATCH, SEED, WINDOWS = 20, 16, 1, 500


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


def loss_of(output, target):
    return functional.cross_entropy(output.flatten(0, 1), target.flatten())


def words_of_a_made_up_language():
    random = np.random.default_rng(5)
    words = [bytes(random.integers(97, 123, size=random.integers(2, 8)).astype(np.uint8)) for _ in range(40)]
    return b" ".join(words[i] for i in random.integers(0, len(words), size=8000))[: WINDOWS * BLOCK + 7]


def weights(directory, step):
    found = load_file(directory / "run" / "checkpoints" / f"step-{step:09d}" / "model.safetensors")
    return found | {"lm_head.weight": found["transformer.wte.weight"]}


def without_key_biases(state):
    """Softmax takes no notice of the keys' biases, so their gradients are rounding and nothing else, which Adam makes steps of."""
    state = {name: value.clone() for name, value in state.items()}
    for name, value in state.items():
        if name.endswith("attn.c_attn.bias"):
            value[WIDTH : 2 * WIDTH] = 0
    return state


def train_plainly(module, x, y):
    """Losses by step, and at how many of them clipping acted."""
    decay = [[p for p in module.parameters() if (p.dim() == 2) == matrix] for matrix in (True, False)]
    optimizer = torch.optim.AdamW([{"params": decay[0], "weight_decay": 0.1}, {"params": decay[1], "weight_decay": 0.0}], betas=(0.9, 0.99))
    losses, clipped, per_epoch = [], 0, -(-len(x) // BATCH)
    for step in range(STEPS):
        first = step % per_epoch * BATCH
        pick = sample_order(SEED, step // per_epoch, len(x), range(first, min(first + BATCH, len(x)))).tolist()
        for group in optimizer.param_groups:
            group["lr"] = RATE * (step + 1) / WARMUP
        optimizer.zero_grad()
        loss = loss_of(module(x[pick]), y[pick])
        loss.backward()
        clipped += plain.clip(module.parameters(), 1.0, None)[1]
        optimizer.step()
        losses.append(loss.item())
    return losses, clipped


@pytest.mark.parametrize("workers", [1, 2])
def test_follows_the_plain_loop(motley, workers):
    content = words_of_a_made_up_language()
    (motley.directory / "words.txt").write_bytes(content)
    tokens = torch.tensor(list(content[: WINDOWS * BLOCK + 1]))
    x, y = tokens[:-1].view(WINDOWS, BLOCK), tokens[1:].view(WINDOWS, BLOCK)
    kept = WINDOWS * 9 // 10
    shares = ["--set", "train.min_workers=2", "--set", "train.shares=[5,3]", "--set", "train.verify=0"] if workers > 1 else []
    sizes = ["--block", BLOCK, "--layers", LAYERS, "--heads", HEADS, "--width", WIDTH, "--batch-size", BATCH]
    program = motley.run("train", "gpt-mini", "--run", "run", "--listen", "127.0.0.1:0", "--threads", "1", *["--device", "cpu"] * workers,
                         *shares, "--text", "words.txt", "--steps", STEPS, "--lr", RATE, "--seed", SEED, *sizes)
    assert program.process.returncode == 0, program.story()
    module = Gpt()
    module.load_state_dict(weights(motley.directory, 0))
    losses, clipped = train_plainly(module, x[:kept], y[:kept])
    assert plain.worst_loss(program.losses(), losses) <= 1e-5
    assert losses[-1] < 0.8 * losses[0] and clipped > 0
    found = weights(motley.directory, STEPS)
    assert plain.worst_weights(without_key_biases(found), without_key_biases(module.state_dict())) <= 1e-4
    if workers > 1:
        assert {tuple(part["samples"] for part in event["workers"]) for event in program.named("step")} == {(10, 6)}
    module.load_state_dict(found)
    with torch.no_grad():
        output, evaluation = module(x[kept:]), program.named("eval")[-1]
        assert evaluation["loss"] == pytest.approx(loss_of(output, y[kept:]).item(), rel=1e-5)
    assert evaluation["samples"] == WINDOWS - kept
    assert evaluation["scores"]["accuracy"] == pytest.approx((output.argmax(2) == y[kept:]).double().mean().item(), abs=1e-6)
