#!/usr/bin/env python3
"""What rounds of local steps cost in quality: a GPT of 1.8 million parameters on nine million bytes of text, made in exact steps and in
rounds, at equal samples and with the same seeds.

This is a plain PyTorch program of the rounds, which tests/python/test_rounds.py holds the product to (1e-5): AdamW with warm-up, cosine to
5 % and clipping on every worker, and its state stays there; Nesterov over rounds. All trainings of one local batch go at once, so that a
card has enough to do; nothing here measures time. The text is what every Python brings along: the sources of its standard library, cut into
windows, each tenth block of 64 KiB held out. One JSON object a line on standard output, a table on standard error.

  bench/rounds_quality.py [--device cuda:0] [--steps 1140] [--seeds 3] [--local 30]
"""

import argparse
import dataclasses
import math
import pathlib
import statistics
import sysconfig

import measure
import torch
from torch import nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn import functional

BLOCK, WIDTH, LAYERS, HEADS, BATCH = 128, 192, 4, 6, 64
LR, LAST_LR, WARM_UP, CLIP, DECAY = 2e-3, 0.05, 60, 1.0, 0.1
MOMENTUM = 0.9
RATES = {1: 0.4, 2: 0.6, 4: 0.6, 8: 0.8}  # src/ps/outer_rate.cpp
EVALUATED = 1024  # windows
STUDENT = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 7: 2.365, 9: 2.262}  # 95 %, by degrees of freedom


@dataclasses.dataclass
class Way:
    """`shares`: samples of a step that each worker has. One alone makes exact steps."""

    name: str
    shares: tuple[int, ...]
    codec: str = "fp32"

    @property
    def exact(self):
        return len(self.shares) == 1

    @property
    def rate(self):
        known = sorted(RATES)
        count = len(self.shares)
        below, above = max(n for n in known if n <= count), min(n for n in known if n >= count)
        part = 0 if above == below else (count - below) / (above - below)
        return RATES[below] + part * (RATES[above] - RATES[below])


WAYS = [Way("exact", (64,)), Way("two workers", (32, 32)), Way("four workers", (16,) * 4), Way("four workers, int4", (16,) * 4, "int4"),
        Way("speeds 10:5:1", (40, 20, 4)), Way("speeds 10:5, without the slow one's samples", (40, 20))]


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.symbols, self.places = nn.Embedding(256, WIDTH), nn.Parameter(torch.zeros(BLOCK, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1 and name != "places":
                nn.init.normal_(parameter, std=0.02 / (math.sqrt(2 * LAYERS) if "back" in name else 1))

    def forward(self, x):
        h = self.symbols(x) + self.places
        for block in self.blocks:
            h = block(h)
        return self.out(self.norm(h))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.qkv, self.back = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.wide_back = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, h):
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(self.norms[0](h)).chunk(3, -1))
        later = torch.ones(h.shape[1], h.shape[1], dtype=torch.bool, device=h.device).triu(1)
        scores = (q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)).masked_fill(later, float("-inf"))
        h = h + self.back((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return h + self.wide_back(functional.gelu(self.wide(self.norms[1](h))))


def texts():
    """(to train on, to test on), each [windows, BLOCK + 1]."""
    library = pathlib.Path(sysconfig.get_paths()["stdlib"])
    names = (name for name in sorted(library.rglob("*.py")) if "site-packages" not in name.parts)
    whole = b"".join(name.read_bytes() for name in names)
    blocks = [whole[at : at + (1 << 16)] for at in range(0, len(whole) - (1 << 16), 1 << 16)]
    parts = b"".join(block for i, block in enumerate(blocks) if i % 10), b"".join(blocks[::10])
    return [torch.frombuffer(bytearray(part), dtype=torch.uint8).unfold(0, BLOCK + 1, BLOCK) for part in parts]


def loss_of(model, parameters, windows):
    windows = windows.long()
    return functional.cross_entropy(functional_call(model, parameters, (windows[:, :-1],)).flatten(0, 1), windows[:, 1:].flatten())


def lr_at(step, steps):
    if step < WARM_UP:
        return LR * (step + 1) / WARM_UP
    return LR * (LAST_LR + (1 - LAST_LR) * 0.5 * (1 + math.cos(math.pi * (step - WARM_UP) / max(1, steps - WARM_UP))))


def int4(values):
    """As src/codec: blocks of 64, the largest magnitude over 7, rounded up to 1 or 1.5 times a power of two, is their scale."""
    if values.numel() < 4096:
        return values
    flat = functional.pad(values.flatten(), (0, -values.numel() % 64)).view(-1, 64)
    fraction, exponent = torch.frexp(flat.abs().amax(1, keepdim=True) / 7)
    scale = torch.ldexp(torch.where(fraction <= 0.5, 0.5, torch.where(fraction <= 0.75, 0.75, 1.0)), exponent)
    codes = torch.where(scale > 0, flat / scale, 0).round().clamp(-7, 7)
    return (codes * scale).flatten()[: values.numel()].view_as(values)


class Group:
    """The workers of all trainings whose local batch has one size: their tensors are rows of one. members: (training, worker)."""

    def __init__(self, model, members, outers, batch):
        self.model, self.members, self.batch = model, members, batch
        self.weights = {name: torch.stack([outers[training][name] for training, _ in members]) for name in outers[0]}
        for tensor in self.weights.values():
            tensor.requires_grad_()
        matrices = [tensor for tensor in self.weights.values() if tensor.dim() > 2]
        others = [tensor for tensor in self.weights.values() if tensor.dim() <= 2]
        self.optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}], LR)
        self.gradients = vmap(grad_and_value(lambda parameters, windows: loss_of(model, parameters, windows)))

    def step(self, windows, lr):
        """windows: [members, batch, BLOCK + 1]."""
        gradients, _ = self.gradients({name: tensor.detach() for name, tensor in self.weights.items()}, windows)
        norm = sum(each.square().flatten(1).sum(1) for each in gradients.values()).sqrt()
        factor = (CLIP / (norm + 1e-6)).clamp(max=1)
        for name, tensor in self.weights.items():
            tensor.grad = gradients[name] * factor.view(-1, *[1] * (tensor.dim() - 1))
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()


class Training:
    """One way with one seed: the weights between rounds, and who computes."""

    def __init__(self, way, seed, weights):
        self.way, self.seed, self.weights = way, seed, {name: tensor.clone() for name, tensor in weights.items()}
        self.momentum, self.residuals, self.curve = None, {}, []

    def take(self, worker, there):
        """The change of a worker in a round, times its samples."""
        change = {name: self.way.shares[worker] * (self.weights[name] - there[name]) for name in there}
        if self.way.codec == "fp32":
            return change
        left = self.residuals.setdefault(worker, {name: torch.zeros_like(tensor) for name, tensor in there.items()})
        sent = {name: int4(change[name] + left[name]) for name in change}
        self.residuals[worker] = {name: change[name] + left[name] - sent[name] for name in change}
        return sent

    def end_round(self, changes):
        mean = {name: sum(change[name] for change in changes) / sum(self.way.shares) for name in self.weights}
        if self.way.exact:
            for name, tensor in self.weights.items():
                tensor -= mean[name]
            return
        self.momentum = mean if self.momentum is None else {name: MOMENTUM * self.momentum[name] + mean[name] for name in mean}
        for name, tensor in self.weights.items():
            tensor -= self.way.rate * (mean[name] + MOMENTUM * self.momentum[name])


@torch.no_grad()
def evaluate(model, trainings, windows):
    stacked = {name: torch.stack([training.weights[name] for training in trainings]) for name in trainings[0].weights}
    of_all = vmap(lambda parameters, part: loss_of(model, parameters, part), in_dims=(0, None))
    losses = torch.stack([of_all(stacked, part) for part in windows.split(64)]).mean(0)
    return losses.tolist()


def run(args, device):
    train, test = texts()
    if len(train) < BATCH * args.steps:
        raise measure.Failed(f"the text has {len(train)} windows, and {args.steps} steps take {BATCH * args.steps}; try --steps")
    model = Gpt().to(device)
    trainings = []
    for seed in range(args.seeds):
        torch.manual_seed(seed)
        first = {name: tensor.detach().to(device) for name, tensor in Gpt().named_parameters()}
        trainings += [Training(way, seed, first) for way in WAYS]
    orders = [torch.randperm(len(train), generator=torch.Generator().manual_seed(seed)) for seed in range(args.seeds)]
    workers = [(i, worker) for i, training in enumerate(trainings) for worker in range(len(training.way.shares))]
    outers = [training.weights for training in trainings]
    groups = [Group(model, [(i, w) for i, w in workers if trainings[i].way.shares[w] == batch], outers, batch)
              for batch in sorted({trainings[i].way.shares[w] for i, w in workers})]
    test = test[torch.randperm(len(test), generator=torch.Generator().manual_seed(99))[:EVALUATED]].to(device)
    for step in range(args.steps):
        for group in groups:
            picked = []
            for i, worker in group.members:  # each step of a worker has the next samples of its slice of the round
                shares, first = trainings[i].way.shares, step // args.local * args.local
                local = min(args.local, args.steps - first)
                at = first * BATCH + local * sum(shares[:worker]) + (step - first) * shares[worker]
                picked.append(orders[trainings[i].seed][at : at + shares[worker]])
            windows = train[torch.cat(picked)].to(device).view(len(picked), group.batch, BLOCK + 1)
            group.step(windows, lr_at(step, args.steps))
        if (step + 1) % args.local == 0 or step + 1 == args.steps:
            exchange(trainings, groups)
            if (step + 1) // args.local % args.every == 0 or step + 1 == args.steps:
                for training, found in zip(trainings, evaluate(model, trainings, test), strict=True):
                    training.curve.append((step + 1, round(found, 5)))
                measure.say(f"step {step + 1}: " + ", ".join(f"{t.way.name} {t.curve[-1][1]:.4f}" for t in trainings[: len(WAYS)]))
    return trainings


@torch.no_grad()
def exchange(trainings, groups):
    changes = [[] for _ in trainings]
    for group in groups:
        for row, (i, worker) in enumerate(group.members):
            changes[i].append(trainings[i].take(worker, {name: tensor[row] for name, tensor in group.weights.items()}))
    for training, found in zip(trainings, changes, strict=True):
        training.end_round(found)
    for group in groups:
        for row, (i, _) in enumerate(group.members):
            for name, tensor in group.weights.items():
                tensor[row].copy_(trainings[i].weights[name])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=1140, help="of 64 windows of 128 bytes")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--local", type=int, default=30, help="steps of a round")
    parser.add_argument("--every", type=int, default=5, help="rounds between two evaluations")
    args = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    trainings = run(args, torch.device(args.device))
    rows = []
    exact = [training.curve[-1][1] for training in trainings if training.way.exact]
    for way in WAYS:
        of_way = [training for training in trainings if training.way.name == way.name]
        last = [training.curve[-1][1] for training in of_way]
        above = [100 * (found / beside - 1) for found, beside in zip(last, exact, strict=True)]
        spread = STUDENT.get(len(above) - 1, 1.96 if len(above) > 10 else math.nan) if len(above) > 1 else math.nan
        margin = spread * statistics.stdev(above) / math.sqrt(len(above)) if len(above) > 1 else math.nan
        measure.emit(bench="rounds_quality", way=way.name, shares=way.shares, codec=way.codec, local=args.local, steps=args.steps,
                     losses=last, above_exact_percent=round(statistics.fmean(above), 3), margin=round(margin, 3),
                     curves=[training.curve for training in of_way])
        rows.append([way.name, " ".join(f"{each:.4f}" for each in last), f"{statistics.fmean(above):+.2f} ± {margin:.2f} %"])
    measure.emit(bench="rounds_quality", machine=measure.machine(), device=args.device)
    measure.table(["way", "loss on texts it did not see, by seed", "above exact steps"], rows)


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        raise SystemExit(f"rounds_quality: {failure}") from None
