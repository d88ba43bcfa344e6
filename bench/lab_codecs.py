#!/usr/bin/env python3
"""Gradients and weights in fewer bits, on the wire: bytes a step at a worker's network interface, and samples a second, for each codec.

The head of the lab (tools/lab; needs root) has no device of its own, so that everything travels. What a step takes is the difference of
a long and a short run, everything included: TLS, TCP, heartbeats. One JSON object a line on standard output, a table on standard error.

  bench/lab_codecs.py [--codec int8 …] [--recipe fashion-cnn] [--set KEY=VALUE …] [--rate 1gbit] [--batch 256] [--steps 60]
"""

import argparse
import sys

import measure
from lab import TIMEOUT_S, WORKS, choose, lab, laboratory, on, ready, steady

CODECS = ("fp32", "bf16", "int8", "int4")
SHORT, WARM_UP = 25, 20  # steps


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: build/motley)")
    parser.add_argument("--codec", action="append", choices=CODECS[1:], help="beside fp32; repeatable (default: all)")
    parser.add_argument("--recipe", choices=WORKS, default="fashion-cnn")
    parser.add_argument("--set", action="append", default=[], help="a key of the run")
    parser.add_argument("--rate", default="1gbit", help="of each link, in both directions")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=60, help="by which the long run is longer")
    return parser.parse_args()


def interface():
    """(sent, received) by the worker's host so far."""
    words = next(line for line in lab("bytes").splitlines() if line.startswith("worker ")).split()
    return int(words[2]), int(words[4])


def run(args, codec, steps, scratch):
    directory = scratch.fresh(codec)
    token = directory.with_suffix(".token")
    extra = dict(word.split("=", 1) for word in args.set) | {"wire.gradients": f'"{codec}"', "wire.weights": f'"{codec}"'}
    command = measure.train_command(args.motley, args.recipe, directory, batch=args.batch, steps=steps, threads=0,
                                    listen="0.0.0.0:7117", devices=("none",), words=args.words, extra=extra)
    before = interface()
    head = measure.start(on("head", [*command, "--token-file", token]), directory)
    join = [args.motley, "join", "--json", "--token-file", token, "--device", "cpu", "--threads", 1]
    worker = measure.start(on("worker", join), scratch.fresh("join"))
    lines = measure.finish(head, TIMEOUT_S)
    measure.finish(worker, TIMEOUT_S)
    return [after - at for after, at in zip(interface(), before)], steady(lines, WARM_UP)[0]


def measure_codec(args, codec, scratch):
    short, _ = run(args, codec, SHORT, scratch)
    long, speed = run(args, codec, SHORT + args.steps, scratch)
    up, down = ((b - a) / args.steps for a, b in zip(short, long))
    result = {"codec": codec, "up_bytes": round(up), "down_bytes": round(down), "samples_per_s": round(speed, 1)}
    measure.emit(bench="lab_codecs", recipe=args.recipe, set=args.set, rate=args.rate, global_batch=args.batch, **result)
    return result


def main():
    args = arguments()
    args.motley = measure.motley(args.motley)
    if not ready("lab_codecs"):
        return
    with laboratory({"head": 0.6, "worker": 0.9}, args.rate):
        with measure.Scratch() as scratch:
            choose(args, args.recipe, scratch)
            results = [measure_codec(args, codec, scratch) for codec in ("fp32", *(args.codec or CODECS[1:]))]
    measure.say(f"\n{args.recipe}, batch {args.batch}, {args.rate}, one worker at a head without a device; bytes a step at its interface")
    exact = results[0]
    measure.table(["both ways", "up", "of fp32", "down", "of fp32", "samples/s", "over fp32"],
                  [[r["codec"], r["up_bytes"], r["up_bytes"] / exact["up_bytes"], r["down_bytes"], r["down_bytes"] / exact["down_bytes"],
                    r["samples_per_s"], r["samples_per_s"] / exact["samples_per_s"]] for r in results])


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"lab_codecs: {failure}")
