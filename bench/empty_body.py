#!/usr/bin/env python3
"""What an empty body of an epoch of a Python script costs: time of the processor in the script's thread, an epoch of one step each.

The plain loop's costs nothing; here what no worker would see is looked for around it. Needs the Python package: `make build`.
One JSON object a line on standard output.

  bench/empty_body.py [--epochs 200] [--rounds 5]
"""

import argparse
import json
import sys
import time

import measure

MODELS = ("mlp", "blocks")  # 6 tensors; 204


def make(name):
    import torch
    from torch import nn

    torch.manual_seed(1)
    if name == "mlp":
        return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(16, 32), nn.Linear(32, 16)

        def forward(self, x):
            return x + self.two(torch.relu(self.one(x)))

    return nn.Sequential(nn.Linear(16, 16), *(Block() for _ in range(50)), nn.Linear(16, 4))


def loss(model, batch):
    from torch.nn import functional

    x, y = batch
    return functional.cross_entropy(model(x), y)


def script(name, epochs):
    """Prints the milliseconds of the script's thread, by epoch: the median."""
    import motley
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    model = make(name)
    data = TensorDataset(torch.randn(64, 16), torch.randint(4, (64,)))
    run = motley.Run(model, loss, DataLoader(data, 64, shuffle=True), torch.optim.SGD(model.parameters(), lr=0.01))
    taken, before = [], None
    for _ in run.epochs(epochs):
        now = time.thread_time()
        if before is not None:
            taken.append(1e3 * (now - before))
        before = time.thread_time()
    print(json.dumps({"event": "body", "ms": measure.median(taken[len(taken) // 4:])}), file=sys.__stdout__, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--script", choices=MODELS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.script:
        return script(args.script, args.epochs)
    python = measure.python_package()
    with measure.Scratch() as scratch:
        for name in MODELS:
            found = []
            for _ in range(args.rounds):
                command = [str(python.parent / "motley"), "train", "--threads", "1", "--listen", "127.0.0.1:0", __file__, "--script", name,
                           "--epochs", str(args.epochs)]
                found.append(measure.event(measure.finish(measure.start(command, scratch.fresh(name)), 300), "body")["ms"])
            measure.emit(bench="empty_body", model=name, ms=round(measure.median(found), 3), rounds=[round(each, 3) for each in found],
                         machine=measure.machine())


if __name__ == "__main__":
    main()
