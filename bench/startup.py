#!/usr/bin/env python3
"""Seconds from the start of a program until it has something to show, in turns.

`recipe`: `motley train fashion-cnn` to its first step. `script`: `python train.py` with motley.Run, and `plain`: the same script with the
loop that everybody writes, both to the end of their first step. `softmax`: `motley train softmax` to its first step, which needs no torch.
`import`: `python -c "import motley"`, which must not import torch. `help`: `motley --help`. `torch`: `python -c "import torch"`.
One JSON object a line on standard output, a table on standard error.

  bench/startup.py [--rounds 10] [--threads 1]
"""

import argparse
import os
import subprocess
import sys
import time

import measure

BATCH, PATIENCE_S = 256, 120
FIRST_STEP = '{"event":"step"'
LEAVES_TORCH_OUT = "import sys, motley; sys.exit('torch' in sys.modules)"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: build/motley)")
    parser.add_argument("--rounds", type=int, default=10, help="turns, after one that warms up")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--script", choices=["script", "plain"], help=argparse.SUPPRESS)
    return parser.parse_args()


def train(kind, threads):
    """One step, as a user's own program makes it."""
    import torch
    from torch.nn import functional
    from torch.utils.data import DataLoader, TensorDataset

    from ddp_gloo import Cnn, Images

    def loss(model, batch):
        x, y = batch
        return functional.cross_entropy(model(x), y)

    torch.manual_seed(1)
    data, model = Images(measure.images()), Cnn()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loader = DataLoader(TensorDataset(data.x[:BATCH], data.y[:BATCH]), BATCH, shuffle=True)
    if kind == "plain":
        torch.set_num_threads(threads)
        for batch in loader:
            optimizer.zero_grad()
            loss(model, batch).backward()
            optimizer.step()
    else:
        import motley

        for _ in motley.Run(model, loss, loader, optimizer).epochs(1):
            pass
    print("made", flush=True)


def seconds(command, shows, directory):
    """From its start until it writes a line that begins so to standard output; None: until it ends."""
    directory.mkdir()
    began = time.monotonic()
    with open(directory / "errors", "w+") as errors:
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=errors, text=True, cwd=directory,
                                   env={**os.environ, "PYTHONUNBUFFERED": "1"})
        with process.stdout:
            found = shows is not None and any(line.startswith(shows) for line in process.stdout)
            took = time.monotonic() - began
            if not found:
                process.wait(PATIENCE_S)
                took = time.monotonic() - began
        if found and process.poll() is None:
            process.kill()
            process.wait()
        elif not found and (shows is not None or process.returncode != 0):
            errors.seek(0)
            raise measure.Failed(f"{' '.join(map(str, command))} ended with {process.returncode}: {errors.read()[-1000:]}")
    return took


def kinds(args, python):
    """What is started, and what it shows then."""
    here = ["--json", "--listen", "127.0.0.1:0", "--device", "cpu", "--threads", args.threads]
    own = [__file__, "--threads", args.threads, "--script"]
    return {"recipe": ([args.motley, "train", "fashion-cnn", *here], FIRST_STEP), "script": ([python, *own, "script"], "made"),
            "plain": ([python, *own, "plain"], "made"), "softmax": ([args.motley, "train", "softmax", *here], FIRST_STEP),
            "import": ([python, "-c", LEAVES_TORCH_OUT], None), "help": ([args.motley, "--help"], None),
            "torch": ([python, "-c", "import torch"], None)}


def main():
    args = arguments()
    if args.script:
        return train(args.script, args.threads)
    args.motley = measure.motley(args.motley)
    started = kinds(args, measure.python_package())
    found = {name: [] for name in started}
    with measure.Scratch() as scratch:
        for turn in range(-1, args.rounds):
            taken = {name: round(seconds(command, shows, scratch.fresh(name)), 3) for name, (command, shows) in started.items()}
            if turn >= 0:
                measure.emit(bench="startup", turn=turn, **taken)
                for name, each in taken.items():
                    found[name].append(each)
    medians = {name: round(measure.median(each), 3) for name, each in found.items()}
    measure.emit(bench="startup", result=medians, least={name: min(each) for name, each in found.items()}, machine=measure.machine())
    measure.table(["what", "seconds", "least"], [[name, medians[name], min(found[name])] for name in started])


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"startup: {failure}")
