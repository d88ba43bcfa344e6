#!/usr/bin/env python3
"""A host of the lab that slows down while it computes: how long the steps around it take.

Two equal hosts train together (tools/lab; needs root); in the middle of a step the second gets a fraction of its processor. Once with
micro-batches that leave room to move work between the two while they compute, once with one micro-batch a lease, where nothing can move.
One JSON object a line on standard output, a table on standard error: seconds of a steady step before, of the longest step after, and of a
steady step at the end.

  bench/lab_throttle.py [--cpu 0.8] [--to 0.1] [--batch 4096] [--micro-batch 64] [--repetitions 3]
"""

import argparse
import json
import pathlib
import time

import measure
from lab import lab, laboratory, on, ready

HOSTS = ("one", "two")
WARM_UP = 6  # steps until the shares stand
AFTER = 8
TIMEOUT_S = 600


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: build/motley)")
    parser.add_argument("--cpu", default="0.8", help="cores of each host")
    parser.add_argument("--to", default="0.1", help="cores of the second host later on")
    parser.add_argument("--batch", type=int, default=4096, help="global batch")
    parser.add_argument("--micro-batch", type=int, default=64)
    parser.add_argument("--repetitions", type=int, default=3)
    return parser.parse_args()


def steps_in(path):
    lines = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines() if line.endswith("}")]
    return [line for line in lines if line.get("event") == "step"]


def throttled_run(args, micro_batch, scratch):
    directory = scratch.fresh("joint")
    token = directory.with_suffix(".token")
    keys = {"train.min_workers": "2", "train.micro_batch": str(micro_batch)}
    command = measure.train_command(args.motley, "fashion-cnn", directory, batch=args.batch, steps=WARM_UP + AFTER, threads=1,
                                    listen="0.0.0.0:7117", extra=keys)
    head = measure.start(on(HOSTS[0], [*command, "--token-file", token, "--name", HOSTS[0]]), directory)
    join = [args.motley, "join", "--json", "--token-file", token, "--device", "cpu", "--threads", 1, "--name", HOSTS[1]]
    joiner = measure.start(on(HOSTS[1], join), scratch.fresh("join"))
    deadline = time.monotonic() + TIMEOUT_S
    while len(steps_in(f"{directory}.out")) < WARM_UP and time.monotonic() < deadline and head[0].poll() is None:
        time.sleep(0.02)
    before = [step["seconds"] for step in steps_in(f"{directory}.out")[WARM_UP // 2:]]
    time.sleep(0.25 * measure.median(before))
    lab("cpu", HOSTS[1], args.to)
    lines = measure.finish(head, TIMEOUT_S)
    measure.finish(joiner, TIMEOUT_S)
    steps = [line for line in lines if line.get("event") == "step"]
    seconds = [step["seconds"] for step in steps]
    return {"micro_batch": micro_batch, "before_s": round(measure.median(seconds[WARM_UP // 2:WARM_UP]), 3),
            "longest_s": round(max(seconds[WARM_UP:]), 3), "after_s": round(measure.median(seconds[-3:]), 3),
            "seconds": [round(step, 3) for step in seconds],
            "samples": [[part["samples"] for part in step["workers"]] for step in steps],
            "events": [line for line in lines if line.get("event") in ("worker", "plan")]}


def main():
    args = arguments()
    args.motley = measure.motley(args.motley)
    if not ready("lab_throttle"):
        return
    rows = []
    for micro_batch in (args.micro_batch, args.batch):
        results = []
        for _ in range(args.repetitions):
            with laboratory(dict.fromkeys(HOSTS, args.cpu), "1gbit"):
                with measure.Scratch() as scratch:
                    results.append(throttled_run(args, micro_batch, scratch))
            measure.emit(bench="lab_throttle", **results[-1])
        summary = {key: measure.median([result[key] for result in results]) for key in ("micro_batch", "before_s", "longest_s", "after_s")}
        measure.emit(bench="lab_throttle", result=summary, cpu=args.cpu, to=args.to, global_batch=args.batch, machine=measure.machine())
        rows.append(list(summary.values()))
    measure.table(["micro-batch", "before s", "longest s", "after s"], rows)


if __name__ == "__main__":
    main()
