#!/usr/bin/env python3
"""The recipe fashion-cnn on one local CPU worker beside the plain PyTorch loop of the same model: same images, batch, optimizer, schedule
and threads.

Both take turns (A B A B …) in processes of their own, so that a machine that grows warm or busy slows both; the figure is the median of
the ratios of neighbouring turns. Each turn is the last of three epochs. One JSON object a line on standard output, a table on standard
error; ends with 1 where the target was missed.

  bench/one_worker.py [--threads 1,all] [--batch 256] [--samples 20480] [--rounds 15]
"""

import argparse
import json
import sys
import time

import measure

EPOCHS, TARGET = 3, 0.99


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: build/motley)")
    parser.add_argument("--threads", default="1,all", help="comma-separated; 'all' is every core (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--samples", type=int, default=20480, help="of an epoch")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each, after one that warms up")
    parser.add_argument("--target", type=float, default=TARGET, help="the ratio to reach (default: %(default)s)")
    parser.add_argument("--plain", type=int, metavar="THREADS", help=argparse.SUPPRESS)
    return parser.parse_args()


def plain(threads, batch, samples):
    """Prints the speed of the last epoch; runs in a process of its own."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    from ddp_gloo import idx
    from motley.recipes.fashion_cnn import NORMAL, Cnn, loss

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    images = measure.images()
    data = TensorDataset(idx(images, "images").view(-1, 1, 28, 28)[:samples], idx(images, "labels").long()[:samples])
    loader = DataLoader(data, batch, shuffle=True)
    model = Cnn(*NORMAL["fashion-mnist"])
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS * len(loader))
    for _ in range(EPOCHS):
        began = time.perf_counter()
        for each in loader:
            optimizer.zero_grad()
            value = loss(model, each)
            value.backward()
            optimizer.step()
            schedule.step()
            value.item()
        seconds = time.perf_counter() - began
    print(json.dumps({"event": "turn", "samples_per_s": len(data) / seconds}), flush=True)


def plain_turn(args, python, scratch, threads):
    command = [python, __file__, "--plain", threads, "--batch", args.batch, "--samples", args.samples]
    return measure.event(measure.finish(measure.start(list(map(str, command)), scratch.fresh("plain")), 600), "turn")["samples_per_s"]


def motley_turn(args, scratch, threads):
    directory = scratch.fresh("motley")
    command = measure.train_command(args.motley, "fashion-cnn", directory, batch=args.batch, steps=0, threads=threads,
                                    words=("--epochs", EPOCHS, "--samples", args.samples))
    lines = measure.finish(measure.start(command, directory), 600)
    steps = [line for line in lines if line["event"] == "step" and line["epoch"] == EPOCHS - 1]
    return sum(step["samples"] for step in steps) / sum(step["seconds"] for step in steps)


def compare(args, python, scratch, threads):
    turns = []
    for turn in range(-1, args.rounds):
        beside, motley = plain_turn(args, python, scratch, threads), motley_turn(args, scratch, threads)
        if turn < 0:
            continue
        turns.append({"plain_samples_per_s": beside, "motley_samples_per_s": motley, "ratio": round(motley / beside, 4)})
        measure.emit(bench="one_worker", turn=turn, threads=threads, **turns[-1])
    result = {key: round(measure.median([turn[key] for turn in turns]), 4) for key in turns[0]}
    result |= {"ratio_min": min(turn["ratio"] for turn in turns), "ratio_max": max(turn["ratio"] for turn in turns)}
    return {"threads": threads, "batch": args.batch, "turns": args.rounds, **result, "target": args.target,
            "reached": result["ratio"] >= args.target}


def main():
    args = arguments()
    if args.plain:
        plain(args.plain, args.batch, args.samples)
        return 0
    args.motley = measure.motley(args.motley)
    python, machine, results = measure.python_package(), measure.machine(), []
    with measure.Scratch() as scratch:
        for word in dict.fromkeys(args.threads.split(",")):
            results.append(compare(args, python, scratch, measure.cores() if word == "all" else int(word)))
            measure.emit(bench="one_worker", result=results[-1], machine=machine)
    measure.say(f"\none local CPU worker, fashion-cnn, batch {args.batch}, on {machine['processor']}, {machine['cores']} cores")
    measure.table(["threads", "plain loop, samples/s", "motley, samples/s", "ratio", f"target {args.target}"],
                  [[r["threads"], r["plain_samples_per_s"], r["motley_samples_per_s"], r["ratio"], "reached" if r["reached"] else "missed"]
                   for r in results])
    return 0 if all(r["reached"] for r in results) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except measure.Failed as failure:
        sys.exit(f"one_worker: {failure}")
