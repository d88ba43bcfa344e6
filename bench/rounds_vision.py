#!/usr/bin/env python3
"""What rounds of local steps cost a model that is none of text: the CNN of the recipe fashion-cnn, made in exact steps and in rounds, at
equal samples and with the same seeds and order.

A plain PyTorch program of the rounds, as rounds_quality.py has for text: AdamW with warm-up and cosine to 5 % on every worker, whose state
stays there; the head makes the mean of what they came to, or a step of it with Nesterov's momentum. Loss and accuracy are those on the
10,000 test images. Nothing here measures time. One JSON object a line on standard output, a table on standard error.

  bench/rounds_vision.py [--steps 1140] [--seeds 3] [--local 30] [--way NAME …]
"""

import argparse
import dataclasses
import gzip
import math
import statistics

import measure
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from rounds_quality import RATES, STUDENT

BATCH, LR, LAST_LR, WARM_UP, DECAY = 64, 1e-3, 0.05, 60, 0.01


@dataclasses.dataclass(frozen=True)
class Way:
    name: str
    workers: int
    momentum: float = 0.0
    faster: float = 1.0  # times the learning rate

    @property
    def rate(self):
        return RATES[self.workers] if self.momentum else 1.0


WAYS = [Way("exact", 1), Way("two workers", 2), Way("four workers", 4), Way("two workers, momentum 0.9", 2, 0.9),
        Way("four workers, momentum 0.9", 4, 0.9), Way("exact, twice the rate", 1, faster=2),
        Way("exact, four times the rate", 1, faster=4), Way("two workers, twice the rate", 2, faster=2)]


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.fc1, self.fc2 = nn.Linear(1600, 128), nn.Linear(128, 10)

    def forward(self, x):
        h = functional.relu(functional.max_pool2d(self.conv1(x), 2))
        h = functional.relu(functional.max_pool2d(self.conv2(h), 2))
        return self.fc2(functional.relu(self.fc1(h.flatten(1))))


def images(directory, part):
    """(images, labels) of the files that Fashion-MNIST comes in."""
    def read(pattern, header):
        (path, *_) = sorted(directory.glob(pattern))
        content = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
        return torch.from_numpy(np.frombuffer(content, dtype=np.uint8, offset=header).copy())

    x = read(f"{part}-images*", 16).view(-1, 1, 28, 28).float().div_(255)
    return x.contiguous(memory_format=torch.channels_last), read(f"{part}-labels*", 8).long()


def lr_at(step, steps):
    if step < WARM_UP:
        return LR * (step + 1) / WARM_UP
    return LR * (LAST_LR + (1 - LAST_LR) * 0.5 * (1 + math.cos(math.pi * (step - WARM_UP) / max(1, steps - WARM_UP))))


class Worker:
    def __init__(self):
        self.model = Cnn()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=LR, weight_decay=DECAY)

    @torch.no_grad()
    def begin(self, weights):
        for p, value in zip(self.model.parameters(), weights, strict=True):
            p.copy_(value)

    def step(self, x, y, lr):
        self.optimizer.param_groups[0]["lr"] = lr
        self.optimizer.zero_grad()
        functional.cross_entropy(self.model(x), y).backward()
        self.optimizer.step()


@torch.no_grad()
def end_round(way, weights, momentum, workers):
    for i, value in enumerate(weights):
        mean = value - sum(list(worker.model.parameters())[i] for worker in workers) / len(workers)
        momentum[i] = way.momentum * momentum[i] + mean
        value -= way.rate * (mean + way.momentum * momentum[i])


@torch.no_grad()
def evaluate(worker, weights, test):
    worker.begin(weights)
    found = torch.cat([worker.model(part) for part in test[0].split(500)])
    return float(functional.cross_entropy(found, test[1])), float((found.argmax(1) == test[1]).float().mean())


def train(args, way, seed, data, test):
    """(loss, accuracy) at the end."""
    torch.manual_seed(seed)
    weights = [p.detach().clone() for p in Cnn().parameters()]
    momentum = [torch.zeros_like(value) for value in weights]
    chance = torch.Generator().manual_seed(seed)
    order = torch.cat([torch.randperm(len(data[0]), generator=chance) for _ in range(args.steps * BATCH // len(data[0]) + 1)])
    workers = [Worker() for _ in range(way.workers)]
    share = BATCH // way.workers
    for first in range(0, args.steps, args.local):
        local = min(args.local, args.steps - first)
        for number, worker in enumerate(workers):
            worker.begin(weights)
            for k in range(local):
                at = first * BATCH + (number * local + k) * share
                pick = order[at : at + share]
                worker.step(data[0][pick], data[1][pick], way.faster * lr_at(first + k, args.steps))
        end_round(way, weights, momentum, workers)
    return evaluate(workers[0], weights, test)


def above(found, beside):
    """Mean and 95 % of it, of differences by seed."""
    off = [a - b for a, b in zip(found, beside, strict=True)]
    margin = STUDENT[len(off) - 1] * statistics.stdev(off) / math.sqrt(len(off)) if len(off) - 1 in STUDENT else math.nan
    return round(statistics.fmean(off), 3), round(margin, 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1140, help="of 64 images; 940 are an epoch")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--local", type=int, default=30, help="steps of a round")
    parser.add_argument("--way", action="append", choices=[way.name for way in WAYS[1:]], help="beside exact steps; repeatable (all)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    directory = measure.images()
    data, test = images(directory, "train"), images(directory, "t10k")
    rows, exact = [], None
    for way in WAYS[:1] + [way for way in WAYS[1:] if not args.way or way.name in args.way]:
        found = [train(args, way, seed, data, test) for seed in range(args.seeds)]
        losses, right = [100 * math.log(loss) for loss, _ in found], [100 * accuracy for _, accuracy in found]
        exact = exact or (losses, right)
        loss, accuracy = above(losses, exact[0]), above(right, exact[1])
        measure.emit(bench="rounds_vision", way=way.name, local=args.local, steps=args.steps, losses=[round(each, 5) for each, _ in found],
                     accuracies=[round(each, 3) for each in right], loss_above_percent=loss, accuracy_above_points=accuracy)
        rows.append([way.name, " ".join(f"{each:.4f}" for each, _ in found), f"{loss[0]:+.2f} ± {loss[1]:.2f} %",
                     " ".join(f"{each:.2f}" for each in right), f"{accuracy[0]:+.2f} ± {accuracy[1]:.2f}"])
    measure.emit(bench="rounds_vision", machine=measure.machine())
    measure.table(["way", "loss on the test set, by seed", "above exact steps", "accuracy", "above"], rows)


if __name__ == "__main__":
    main()
