#!/usr/bin/env python3
"""What helpers cost in quality: the small GPT of rounds_quality.py, on the same text, with a part of each step's gradient of the version
before, beside exact steps at equal samples and with the same seeds.

This is a plain PyTorch program of such steps, which tests/python/test_helper.py holds the product to (1e-5): the last samples of a step are
computed with the weights before, and travel in int8 with what that left out added the next time; not while rates rise. Every step has a
helper's part. One JSON object a line on standard output, a table on standard error.

  bench/helper_quality.py [--steps 1140] [--seeds 3]
"""

import argparse
import dataclasses
import math
import statistics

import measure
import rounds_quality as base
import torch

BATCH = 40  # windows of a step, so that a tenth of them are whole
SGD_LR = 0.3


@dataclasses.dataclass(frozen=True)
class Way:
    name: str
    adam: bool
    early: int = 0  # windows of a step


WAYS = [Way("adamw, exact", True), Way("adamw, a tenth early", True, 4), Way("adamw, a quarter early", True, 10),
        Way("adamw, half early", True, 20), Way("sgd, exact", False), Way("sgd, a tenth early", False, 4),
        Way("sgd, a quarter early", False, 10), Way("sgd, half early", False, 20)]


def sums_of(model, parameters, windows):
    there = {name: tensor.detach().requires_grad_() for name, tensor in parameters.items()}
    loss = base.loss_of(model, there, windows) * len(windows)
    return dict(zip(there, torch.autograd.grad(loss, list(there.values())), strict=True))


def optimizer_of(way, weights):
    groups = [{"params": [tensor for tensor in weights.values() if tensor.dim() > 1], "weight_decay": base.DECAY if way.adam else 0},
              {"params": [tensor for tensor in weights.values() if tensor.dim() <= 1], "weight_decay": 0}]
    if way.adam:
        return torch.optim.AdamW(groups, lr=base.LR, betas=(0.9, 0.999)), base.LR
    return torch.optim.SGD(groups, lr=SGD_LR, momentum=0.9), SGD_LR


def training(way, seed, model, train, test, args):
    torch.manual_seed(seed)
    weights = {name: tensor.detach().clone().requires_grad_() for name, tensor in base.Gpt().named_parameters()}
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(seed))
    optimizer, rate = optimizer_of(way, weights)
    before, residual = None, {name: 0.0 for name in weights}
    for step in range(args.steps):
        windows = train[order[step * BATCH : (step + 1) * BATCH]]
        early = way.early if step >= base.WARM_UP else 0
        sums = sums_of(model, weights, windows[: BATCH - early])
        if early:
            late = {name: tensor + residual[name] for name, tensor in sums_of(model, before, windows[BATCH - early :]).items()}
            sent = {name: base.in_blocks(tensor, most=127) for name, tensor in late.items()}
            residual = {name: late[name] - sent[name] for name in late}
            sums = {name: tensor + sent[name] for name, tensor in sums.items()}
        before = {name: tensor.detach().clone() for name, tensor in weights.items()}
        for name, tensor in weights.items():
            tensor.grad = sums[name] / BATCH
        torch.nn.utils.clip_grad_norm_(list(weights.values()), base.CLIP)
        for group in optimizer.param_groups:
            group["lr"] = rate * base.lr_at(step, args.steps) / base.LR
        optimizer.step()
    with torch.no_grad():
        return statistics.fmean(base.loss_of(model, weights, part).item() for part in test.split(64))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1140)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    vars(base).update(base.SMALL)
    torch.set_num_threads(1)
    train, test = base.texts()
    model = base.Gpt()
    test = test[torch.randperm(len(test), generator=torch.Generator().manual_seed(99))[: base.EVALUATED]]
    losses, rows = {way: [] for way in WAYS}, []
    for seed in range(args.seeds):
        for way in WAYS:
            losses[way].append(training(way, seed, model, train, test, args))
        measure.say(f"seed {seed}: " + ", ".join(f"{way.name} {found[-1]:.4f}" for way, found in losses.items()))
    for way, found in losses.items():
        exact = losses[next(other for other in WAYS if other.adam == way.adam)]
        above = [100 * (loss / beside - 1) for loss, beside in zip(found, exact, strict=True)]
        margin = base.STUDENT[len(above) - 1] * statistics.stdev(above) / math.sqrt(len(above)) if len(above) > 2 else math.nan
        measure.emit(bench="helper_quality", way=way.name, early=way.early, batch=BATCH, steps=args.steps,
                     losses=[round(loss, 5) for loss in found], above_exact_percent=round(statistics.fmean(above), 3),
                     margin=round(margin, 3))
        rows.append([way.name, " ".join(f"{loss:.4f}" for loss in found), f"{statistics.fmean(above):+.2f} ± {margin:.2f} %"])
    measure.emit(bench="helper_quality", machine=measure.machine())
    measure.table(["way", "loss on texts it did not see, by seed", "above exact steps"], rows)


if __name__ == "__main__":
    main()
