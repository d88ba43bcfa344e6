#!/usr/bin/env python3
"""What rounds of local steps cost in quality: a GPT of 1.8 million parameters on nine million bytes of text, made in exact steps and in
rounds, at equal samples and with the same seeds.

This is a plain PyTorch program of the rounds, which tests/python/test_rounds.py holds the product to (1e-5): AdamW with warm-up, cosine to
5 % and clipping on every worker, and its state stays there; Nesterov over rounds. All trainings of one local batch go at once, so that a
card has enough to do; nothing here measures time. The text is what every Python brings along: the sources of its standard library, cut into
windows, each tenth block of 64 KiB held out. One JSON object a line on standard output, a table on standard error.

  bench/rounds_quality.py [--device cuda:0] [--steps 1140] [--seeds 3] [--local 30]
  bench/rounds_quality.py --small --device cpu --steps 300 --local 10       a tenth of a million parameters, for processors
"""

import argparse
import dataclasses
import functools
import math
import pathlib
import re
import statistics
import sysconfig

import measure
import torch
from torch import nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn import functional

BLOCK, WIDTH, LAYERS, HEADS, BATCH = 128, 192, 4, 6, 64
SMALL = {"BLOCK": 32, "WIDTH": 64, "LAYERS": 2, "HEADS": 4, "BATCH": 16, "WARM_UP": 20, "EVALUATED": 512}
LR, LAST_LR, WARM_UP, CLIP, DECAY = 2e-3, 0.05, 60, 1.0, 0.1
RATES = {1: 0.4, 2: 0.6, 4: 0.6, 8: 0.8}  # src/ps/outer_rate.cpp
EVALUATED = 1024  # windows
STUDENT = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 7: 2.365, 9: 2.262}  # 95 %, by degrees of freedom


@dataclasses.dataclass(frozen=True)
class Way:
    """`shares`: samples of a step of 64 that each worker has. One alone makes exact steps. `ahead`: the part of a round that is made before
    its weights are there. `anew`: in each round the next worker begins with an optimizer that remembers nothing, or what another does.
    `momentum` and `fixed_rate`: of the step that a round makes; without `fixed_rate` that of so many workers. `fragments`: the layers
    are exchanged in so many parts, one after the other within a round, and what comes of one is there `delay` steps later and mixed, half
    and half, with what the worker has by then (arXiv:2501.18512)."""

    name: str
    shares: tuple[int, ...]
    codec: str = "fp32"
    ahead: float = 0
    anew: str = ""
    momentum: float = 0.9
    fixed_rate: float = 0
    fragments: int = 0
    delay: int = 0

    @property
    def exact(self):
        return len(self.shares) == 1

    @property
    def rate(self):
        if self.fixed_rate:
            return self.fixed_rate
        known = sorted(RATES)
        count = len(self.shares)
        below, above = max(n for n in known if n <= count), min(n for n in known if n >= count)
        part = 0 if above == below else (count - below) / (above - below)
        return RATES[below] + part * (RATES[above] - RATES[below])


WAYS = [Way("exact", (64,)), Way("two workers", (32, 32)), Way("four workers", (16,) * 4), Way("four workers, int4", (16,) * 4, "int4"),
        Way("speeds 10:5:1", (40, 20, 4)), Way("speeds 10:5, without the slow one's samples", (40, 20)),
        Way("two workers, a tenth ahead", (32, 32), ahead=0.1), Way("two workers, half ahead", (32, 32), ahead=0.5),
        Way("four workers, a tenth ahead", (16,) * 4, ahead=0.1), Way("four workers, half ahead", (16,) * 4, ahead=0.5),
        Way("four workers, means", (16,) * 4, momentum=0, fixed_rate=1),
        Way("four workers, half the momentum", (16,) * 4, momentum=0.5, fixed_rate=0.7),
        Way("two workers, means", (32, 32), momentum=0, fixed_rate=1),
        Way("two workers, means, half ahead", (32, 32), ahead=0.5, momentum=0, fixed_rate=1),
        Way("two workers, means, two fragments", (32, 32), momentum=0, fixed_rate=1, fragments=2, delay=5),
        Way("two workers, two fragments", (32, 32), fragments=2, delay=5),
        Way("four workers, one anew each round", (16,) * 4, anew="nothing"),
        Way("four workers, one like another each round", (16,) * 4, anew="another")]


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


def in_blocks(values, most):
    """int4 (`most` 7) and int8 (127) as in src/codec: blocks of 64, the largest magnitude over `most`, rounded up to 1 or 1.5 times a
    power of two, is their scale."""
    if values.numel() < 4096:
        return values
    flat = functional.pad(values.flatten(), (0, -values.numel() % 64)).view(-1, 64)
    scale = scale_of(flat.abs().amax(1, keepdim=True) / most)
    codes = torch.where(scale > 0, flat / scale, 0).round().clamp(-most, most)
    return (codes * scale).flatten()[: values.numel()].view_as(values)


def scale_of(step):
    fraction, exponent = torch.frexp(step)
    return torch.ldexp(torch.where(fraction <= 0.5, 0.5, torch.where(fraction <= 0.75, 0.75, 1.0)), exponent)


CODECS = {"int4": functools.partial(in_blocks, most=7)}


class Group:
    """The workers of all trainings whose local batch has one size: their tensors are rows of one. members: (training, worker)."""

    def __init__(self, model, members, outers, batch):
        self.model, self.members, self.batch = model, members, batch
        self.weights = {name: torch.stack([outers[training][name] for training, _ in members]) for name in outers[0]}
        for tensor in self.weights.values():
            tensor.requires_grad_()
        zeros = {name: torch.zeros_like(tensor) for name, tensor in self.weights.items()}
        self.means, self.squares = zeros, {name: zero.clone() for name, zero in zeros.items()}
        self.steps = torch.zeros(len(members), device=outers[0]["places"].device)
        self.start = {}  # by row: where it went on from, until the weights of the round are there
        self.gradients = vmap(grad_and_value(lambda parameters, windows: loss_of(model, parameters, windows)))

    def step(self, windows, lr):
        """windows: [members, batch, BLOCK + 1]."""
        gradients, _ = self.gradients({name: tensor.detach() for name, tensor in self.weights.items()}, windows)
        norm = sum(each.square().flatten(1).sum(1) for each in gradients.values()).sqrt()
        factor = (CLIP / (norm + 1e-6)).clamp(max=1)
        self.steps += 1
        with torch.no_grad():
            for name, tensor in self.weights.items():
                self.update(tensor, gradients[name] * of_rows(factor, tensor), self.means[name], self.squares[name], lr)

    def update(self, tensor, gradient, mean, square, lr):
        """AdamW, with a count of steps for each row."""
        mean.lerp_(gradient, 0.1)
        square.lerp_(gradient.square(), 0.001)
        root = (square / of_rows(1 - 0.999**self.steps, tensor)).sqrt() + 1e-8
        tensor.mul_(1 - lr * DECAY if tensor.dim() > 2 else 1)
        tensor.sub_(lr * mean / of_rows(1 - 0.9**self.steps, tensor) / root)

    @torch.no_grad()
    def weights_are_here(self, row, outer):
        """It goes on from the weights of the round, and how far the steps so far led."""
        start = self.start.pop(row)
        for name, tensor in self.weights.items():
            tensor[row] = outer[name] + (tensor[row] - start[name])

    @torch.no_grad()
    def mix(self, row, outer, names):
        for name in names:
            self.weights[name][row].lerp_(outer[name], 0.5)

    @torch.no_grad()
    def begin_anew(self, row, like):
        self.steps[row] = 0 if like is None else self.steps[like]
        for state in (self.means, self.squares):
            for tensor in state.values():
                tensor[row] = 0 if like is None else tensor[like].bfloat16().float()


def of_rows(factors, tensor):
    return factors.view(-1, *[1] * (tensor.dim() - 1))


class Training:
    """One way with one seed: the weights between rounds, and who computes."""

    def __init__(self, way, seed, weights):
        self.way, self.seed, self.weights = way, seed, {name: tensor.clone() for name, tensor in weights.items()}
        self.momentum, self.residuals, self.curve = {}, {}, []
        self.under_way = {}  # by fragment: the step at which it is there, the mean change

    def take(self, worker, there):
        """The change of a worker in a round, times its samples."""
        change = {name: self.way.shares[worker] * (self.weights[name] - there[name]) for name in there}
        if self.way.codec == "fp32":
            return change
        left = self.residuals.setdefault(worker, {name: torch.zeros_like(tensor) for name, tensor in there.items()})
        sent = {name: CODECS[self.way.codec](change[name] + left[name]) for name in change}
        self.residuals[worker] = {name: change[name] + left[name] - sent[name] for name in change}
        return sent

    def mean_of(self, changes):
        return {name: sum(change[name] for change in changes) / sum(self.way.shares) for name in changes[0]}

    def end_round(self, mean):
        kept, rate = (0, 1) if self.way.exact else (self.way.momentum, self.way.rate)
        for name, change in mean.items():
            self.momentum[name] = kept * self.momentum.get(name, 0) + change
            self.weights[name] -= rate * (change + kept * self.momentum[name])

    def fragment_of(self, name):
        """Layers one after the other; what is before the first and behind the last goes with these."""
        layer = int(name.split(".")[1]) if name.startswith("blocks.") else LAYERS - 1 if name.startswith(("norm", "out")) else 0
        return layer * self.way.fragments // LAYERS


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
    ways = [dataclasses.replace(way, shares=tuple(share * BATCH // 64 for share in way.shares)) for way in WAYS
            if way.exact or re.fullmatch(args.ways, way.name)]
    trainings = []
    for seed in range(args.seeds):
        torch.manual_seed(seed)
        first = {name: tensor.detach().to(device) for name, tensor in Gpt().named_parameters()}
        trainings += [Training(way, seed, first) for way in ways]
    orders = [torch.randperm(len(train), generator=torch.Generator().manual_seed(seed)) for seed in range(args.seeds)]
    workers = [(i, worker) for i, training in enumerate(trainings) for worker in range(len(training.way.shares))]
    outers = [training.weights for training in trainings]
    groups = [Group(model, [(i, w) for i, w in workers if trainings[i].way.shares[w] == batch], outers, batch)
              for batch in sorted({trainings[i].way.shares[w] for i, w in workers})]
    test = test[torch.randperm(len(test), generator=torch.Generator().manual_seed(99))[:EVALUATED]].to(device)
    for step in range(args.steps):
        for group in groups:
            for row in [row for row in group.start if step % args.local >= trainings[group.members[row][0]].way.ahead * args.local]:
                group.weights_are_here(row, trainings[group.members[row][0]].weights)
            picked = []
            for i, worker in group.members:  # each step of a worker has the next samples of its slice of the round
                shares, first = trainings[i].way.shares, step // args.local * args.local
                local = min(args.local, args.steps - first)
                at = first * BATCH + local * sum(shares[:worker]) + (step - first) * shares[worker]
                picked.append(orders[trainings[i].seed][at : at + shares[worker]])
            windows = train[torch.cat(picked)].to(device).view(len(picked), group.batch, BLOCK + 1)
            group.step(windows, lr_at(step, args.steps))
        exchange_fragments(trainings, groups, step + 1, args)
        if (step + 1) % args.local == 0 or step + 1 == args.steps:
            exchange(trainings, groups, (step + 1) // args.local)
            if (step + 1) // args.local % args.every == 0 or step + 1 == args.steps:
                for training, found in zip(trainings, evaluate(model, trainings, test), strict=True):
                    training.curve.append((step + 1, round(found, 5)))
                measure.say(f"step {step + 1}: " + ", ".join(f"{t.way.name} {t.curve[-1][1]:.4f}" for t in trainings[: len(ways)]))
    return trainings


@torch.no_grad()
def exchange_fragments(trainings, groups, steps, args):
    """After so many steps. At the end all are exchanged at once."""
    last = steps == args.steps
    for i, training in enumerate(trainings):
        rows = [(group, row, worker) for group in groups for row, (of, worker) in enumerate(group.members) if of == i]
        for fragment in range(training.way.fragments):
            names = [name for name in training.weights if training.fragment_of(name) == fragment]
            there, mean = training.under_way.get(fragment, (0, None))
            if steps == there or (last and steps < there):
                training.end_round(mean)
                for group, row, _ in rows:
                    group.mix(row, training.weights, names)
            if last or (steps - fragment * args.local // training.way.fragments) % args.local == 0:
                mean = training.mean_of([training.take(worker, {name: group.weights[name][row] for name in names})
                                         for group, row, worker in rows])
                training.under_way[fragment] = steps + training.way.delay, mean
                if last:
                    training.end_round(mean)


@torch.no_grad()
def exchange(trainings, groups, rounds):
    changes = [[] for _ in trainings]
    for group in groups:
        for row, (i, worker) in enumerate(group.members):
            if not trainings[i].way.fragments:
                changes[i].append(trainings[i].take(worker, {name: tensor[row] for name, tensor in group.weights.items()}))
    for training, found in zip(trainings, changes, strict=True):
        if found:
            training.end_round(training.mean_of(found))
    for group in groups:
        for row, (i, worker) in enumerate(group.members):
            way = trainings[i].way
            if way.fragments:
                continue
            if way.ahead > 0:
                group.start[row] = {name: tensor[row].clone() for name, tensor in group.weights.items()}
                continue
            for name, tensor in group.weights.items():
                tensor[row].copy_(trainings[i].weights[name])
            if way.anew and rounds % len(way.shares) == worker:
                group.begin_anew(row, group.members.index((i, (worker + 1) % len(way.shares))) if way.anew == "another" else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=1140, help="of 64 windows of 128 bytes")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--local", type=int, default=30, help="steps of a round")
    parser.add_argument("--ways", default=".*", help="a regular expression: those beside the exact one")
    parser.add_argument("--small", action="store_true", help="a model and windows for processors")
    parser.add_argument("--every", type=int, default=5, help="rounds between two evaluations")
    args = parser.parse_args()
    if args.small:
        globals().update(SMALL)
    torch.set_float32_matmul_precision("high")
    trainings = run(args, torch.device(args.device))
    rows = []
    exact = [training.curve[-1][1] for training in trainings if training.way.exact]
    for way in dict.fromkeys(training.way for training in trainings):
        of_way = [training for training in trainings if training.way is way]
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
