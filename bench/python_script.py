#!/usr/bin/env python3
"""One local CPU worker of a Python script beside the plain PyTorch loop: same model, images, batch, optimizer and threads.

Both take turns (A B A B …) in processes of their own, so that a machine that grows warm or busy slows both; the figure is the median
of the ratios of neighbouring turns, by the clock and by the time of the processor. Each turn is the last of three epochs. One JSON
object a line on standard output, a table on standard error. Needs the Python package: `make build`.

Of the residual networks the plain loop normalises over the whole batch, and Motley over each 32 samples; images are 3 x 32 x 32, random.

  bench/python_script.py [--model resnet18] [--threads 1,all] [--samples 10240] [--rounds 5] [--read-ms 0.5 --processes 2]
"""

import argparse
import json
import pathlib
import sys
import time

import measure

EPOCHS, BATCH = 3, 256


def loss(model, batch):
    from torch.nn import functional

    x, y = batch
    return functional.cross_entropy(model(x), y)


class Waits:
    """A data set of which each sample takes a while to read, and no processor."""

    def __init__(self, *tensors, seconds):
        self.tensors, self.seconds = tensors, seconds

    def __len__(self):
        return len(self.tensors[0])

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return tuple(tensor[index] for tensor in self.tensors)


def make(name, samples):
    """The model, its images and their classes."""
    import torch

    torch.manual_seed(1)
    if name != "cnn":
        import resnet

        return resnet.make(name), torch.randn(samples, 3, 32, 32), torch.randint(10, (samples,))
    sys.path.insert(0, str(measure.ROOT / "tests" / "python"))
    import plain

    x, y = plain.load_idx(plain.find_fashion())["train"]
    return plain.Cnn(), x[:samples], y[:samples]


class Clock:
    """Per second and per second of the processor, since it was asked before."""

    def __init__(self):
        self.lap(0)

    def lap(self, samples):
        now = time.perf_counter(), time.process_time()
        found = [samples / (a - b) for a, b in zip(now, self.now)] if samples else []
        self.now = now
        return found


def turn(kind, name, samples, threads, read_ms, processes):
    """Trains and prints samples/s of the last epoch; runs in a process of its own."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    model, *part = make(name, samples)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = Waits(*part, seconds=read_ms / 1e3) if read_ms else TensorDataset(*part)
    loader = DataLoader(data, BATCH, shuffle=True, num_workers=processes, persistent_workers=processes > 0)
    if kind == "plain":
        torch.set_num_threads(threads)
        for _ in range(EPOCHS):
            clock = Clock()
            for batch in loader:
                optimizer.zero_grad()
                value = loss(model, batch)
                value.backward()
                optimizer.step()
                value.item()
            speed = clock.lap(samples)
    else:
        import motley

        clock = Clock()
        for epoch in motley.Run(model, loss, loader, optimizer).epochs(EPOCHS):
            speed = [epoch.samples / epoch.seconds, clock.lap(samples)[1]]
    print(json.dumps({"event": "turn", "samples_per_s": speed[0], "samples_per_cpu_s": speed[1]}), file=sys.__stdout__, flush=True)


def compare(python, scratch, threads, args):
    turns = []
    rest = ["--model", args.model, "--samples", args.samples, "--turn-threads", threads, "--read-ms", args.read_ms,
            "--processes", args.processes]
    for number in range(-1, args.rounds):
        commands = {"plain": [python, __file__, "--turn", "plain"],
                    "motley": [str(pathlib.Path(python).parent / "motley"), "train", "--threads", str(threads), "--listen", "127.0.0.1:0",
                               __file__, "--turn", "motley"]}
        speeds = {}
        for kind, command in commands.items():
            started = measure.start([*command, *map(str, rest)], scratch.fresh(kind))
            speeds[kind] = measure.event([line for line in measure.finish(started, 600)], "turn")
        if number >= 0:
            ratios = {unit: round(speeds["motley"][unit] / speeds["plain"][unit], 4) for unit in ("samples_per_s", "samples_per_cpu_s")}
            turns.append({**{f"{kind}_samples_per_s": speeds[kind]["samples_per_s"] for kind in commands},
                          "ratio": ratios["samples_per_s"], "cpu_ratio": ratios["samples_per_cpu_s"]})
            measure.emit(bench="python_script", turn=number, threads=threads, **turns[-1])
    return {"threads": threads, **{key: round(measure.median([each[key] for each in turns]), 4) for key in turns[0]}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["cnn", "resnet18", "resnet50"], default="cnn", help="default: %(default)s")
    parser.add_argument("--threads", default="1,all", help="comma-separated; 'all' is every core (default: %(default)s)")
    parser.add_argument("--samples", type=int, default=10240, help="of an epoch")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each, after one that warms up")
    parser.add_argument("--read-ms", type=float, default=0, help="that reading a sample takes")
    parser.add_argument("--processes", type=int, default=0, help="that read samples (num_workers)")
    parser.add_argument("--turn", choices=["plain", "motley"], help=argparse.SUPPRESS)
    parser.add_argument("--turn-threads", type=int, default=1, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.turn:
        return turn(args.turn, args.model, args.samples, args.turn_threads, args.read_ms, args.processes)
    python = measure.python_package()
    results = []
    with measure.Scratch() as scratch:
        for word in dict.fromkeys(args.threads.split(",")):
            results.append(compare(str(python), scratch, measure.cores() if word == "all" else int(word), args))
            measure.emit(bench="python_script", model=args.model, result=results[-1], machine=measure.machine())
    measure.table(["threads", "plain PyTorch loop, samples/s", "motley, samples/s", "ratio", "ratio of processor time"],
                  [[r["threads"], r["plain_samples_per_s"], r["motley_samples_per_s"], r["ratio"], r["cpu_ratio"]] for r in results])


if __name__ == "__main__":
    main()
