#!/usr/bin/env python3
"""What looking at the data costs a Python script at its start: all of what machines compare at join, of sets that are in memory; and the
order of a sampler with a million samples, from its list to a worker's.

Needs the Python package: `make build`. One JSON object a line on standard output.

  bench/compared_data.py [--rounds 5] [--threads 1]
"""

import argparse
import os
import sys
import time

import measure


def digits():
    """As torchvision keeps MNIST."""
    import torch

    class Digits(torch.utils.data.Dataset):
        def __init__(self):
            self.data = torch.randint(0, 256, (60_000, 28, 28), dtype=torch.uint8)
            self.targets = torch.randint(0, 10, (60_000,)).tolist()

        def __len__(self):
            return len(self.data)

        def __getitem__(self, number):
            return self.data[number].float() / 255, self.targets[number]

    return Digits()


def tensors(*shape):
    import torch

    return torch.utils.data.TensorDataset(torch.randn(*shape), torch.randint(0, 10, shape[:1]))


SETS = {"60,000 digits, bytes": digits, "60,000 digits, float32": lambda: tensors(60_000, 784),
        "50,000 images of 3 x 32 x 32, float32": lambda: tensors(50_000, 3, 32, 32),
        "1,000,000 rows of 16, float32": lambda: tensors(1_000_000, 16)}


def timed(rounds, work):
    """Of the clock, and of the processor."""
    found = []
    for _ in range(rounds):
        begun = time.perf_counter(), time.process_time()
        work()
        found.append((time.perf_counter() - begun[0], time.process_time() - begun[1]))
    clock, processor = zip(*found)
    return {"seconds": round(measure.median(clock), 3), "least": round(min(clock), 3),
            "processor_seconds": round(measure.median(processor), 3)}


def tell(**fields):
    measure.emit(bench="compared_data", **fields, machine=measure.machine())


def run(options):
    import torch

    from motley._samples import _data

    torch.set_num_threads(options.threads)
    for name, make in SETS.items():
        data_set = make()
        tell(what="fingerprint", set=name, **timed(options.rounds, lambda: _data.BatchSource(
            torch.utils.data.DataLoader(data_set, 256, shuffle=True), "train_loader").fingerprint()))
    weights = torch.rand(1_000_000)
    sampler = torch.utils.data.WeightedRandomSampler(weights, len(weights), generator=torch.Generator().manual_seed(1))
    made = _data.BatchSource(torch.utils.data.DataLoader(data_set, 256, sampler=sampler), "train_loader")
    epoch = iter(range(1, 1 + options.rounds))
    state = {}

    def list_one():
        number = next(epoch)
        state.update(made.orders.state(number, number + 1))

    taken = timed(options.rounds, list_one)
    tell(what="order listed and packed", **taken, bytes=sum(map(len, next(iter(state.values())).values())))
    tell(what="order taken", **timed(options.rounds, lambda: made.orders.take(state)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    python = measure.python_package()
    if sys.prefix != str(python.parents[1]):
        os.execv(python, [str(python), *sys.argv])
    run(args)


if __name__ == "__main__":
    main()
