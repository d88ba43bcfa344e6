#!/usr/bin/env python3
"""One local CPU worker beside a plain libtorch loop of the same model: same images, batch, optimizer and threads.

The loop runs twice: with freed memory kept for the next step, as Motley does, and with torch's usual allocator. The
first comparison is like for like; the second is what somebody gains who comes from such a loop. The three take turns
(A B C A B C …), so that a machine that grows warm or busy slows all; the figure is the median of the ratios of
neighbouring turns. One JSON object a line on standard output, a table on standard error.

  bench/one_worker.py [--threads 1,all] [--batch 256] [--steps 150] [--rounds 5]
"""

import argparse
import sys

import measure


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: the release build)")
    parser.add_argument("--loop", help="the plain loop (default: the release build's bench/cnn_loop)")
    parser.add_argument("--threads", default="1,all", help="comma-separated; 'all' is every core (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=150, help="of one turn")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each, after one that warms up")
    parser.add_argument("--target", type=float, default=0.97, help="the ratio to reach, over the loop that keeps memory")
    return parser.parse_args()


def plain_turn(args, scratch, threads, memory):
    # Two rounds in one process would warm up the second; as many steps again do the same for the first.
    command = [args.loop, "--mode", "plain", "--memory", memory, "--data", args.images, "--batch", args.batch, "--threads", threads,
               "--steps", args.steps, "--rounds", 1]
    started = measure.start([str(word) for word in command], scratch.fresh("plain"))
    return measure.finish(started, 600)[0]["samples_per_s"]


def motley_turn(args, scratch, threads):
    directory = scratch.fresh("motley")
    command = measure.train_command(args.motley, "fashion-cnn", directory, batch=args.batch, steps=2 * args.steps, threads=threads)
    return measure.event(measure.finish(measure.start(command, directory), 600), "done")["samples_per_s"]


def compare(args, scratch, threads):
    turns = []
    for turn in range(-1, args.rounds):
        kept, usual = (plain_turn(args, scratch, threads, memory) for memory in ("kept", "usual"))
        motley = motley_turn(args, scratch, threads)
        if turn < 0:
            continue
        turns.append({"plain_samples_per_s": kept, "plain_usual_memory_samples_per_s": usual, "motley_samples_per_s": motley,
                      "ratio": round(motley / kept, 4), "ratio_usual_memory": round(motley / usual, 4)})
        measure.emit(bench="one_worker", turn=turn, threads=threads, **turns[-1])
    result = {key: round(measure.median([turn[key] for turn in turns]), 4) for key in turns[0]}
    result |= {"ratio_min": min(turn["ratio"] for turn in turns), "ratio_max": max(turn["ratio"] for turn in turns)}
    return {"threads": threads, "batch": args.batch, **result, "target": args.target, "reached": result["ratio"] >= args.target}


def main():
    args = arguments()
    args.motley = measure.motley(args.motley)
    args.loop = measure.program(args.loop, "build/release/bench/cnn_loop")
    args.images = measure.images(args.motley)
    wanted = []
    for word in args.threads.split(","):
        count = measure.cores() if word == "all" else int(word)
        if count not in wanted:
            wanted.append(count)
    machine = measure.machine()
    results = []
    with measure.Scratch() as scratch:
        for threads in wanted:
            results.append(compare(args, scratch, threads))
            measure.emit(bench="one_worker", result=results[-1], machine=machine)
    measure.say(f"\none local CPU worker, fashion-cnn, batch {args.batch}, on {machine['processor']}, {machine['cores']} cores")
    measure.table(["threads", "plain loop, samples/s", "motley, samples/s", "ratio", f"target {args.target}", "usual allocator", "over it"],
                  [[r["threads"], r["plain_samples_per_s"], r["motley_samples_per_s"], r["ratio"], "reached" if r["reached"] else "missed",
                    r["plain_usual_memory_samples_per_s"], r["ratio_usual_memory"]] for r in results])


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"one_worker: {failure}")
