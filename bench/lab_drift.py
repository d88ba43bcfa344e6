#!/usr/bin/env python3
"""What a run makes of a machine whose speed drifts: two hosts of the lab (Linux, root), of which the second gets 0.35 to 0.7 cores along a
wave.

With several programs each is measured in turns, forwards and then backwards, so that the machine's own drift counts for none of them.
`wave` and `rest` (then both have 0.7 cores): samples a second and the median of how far the finish times within a step lie apart (the
latest over the mean, less one). `used`: of what the quotas of the wave allow, going by the speed at rest. Prints JSON lines on standard
output, a table on standard error.

  bench/lab_drift.py [--motley PROGRAM --motley ANOTHER] [--batch 1024] [--seconds 72] [--period 24]
"""

import argparse
import json
import math
import sys
import time

import lab
import lab_reaction
import measure
from lab_reaction import HOSTS

CORES, LEAST_CORES = 0.7, 0.35
SETTLE_STEPS = 30
SETTLE_S, REST_PART = 6, 0.3  # after the wave; how long the rest is watched, of the wave
PATIENCE_S = 180


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", action="append", help="the program; repeatable (default: build/motley)")
    parser.add_argument("--batch", type=int, default=1024, help="global batch")
    parser.add_argument("--seconds", type=float, default=72, help="of the wave")
    parser.add_argument("--period", type=float, default=24, help="seconds of one wave")
    return parser.parse_args()


class Run(lab_reaction.Run):
    def steps(self):
        """Those that were made since this was asked before."""
        found = []
        while True:
            self.partial += self.lines.readline()
            if not self.partial.endswith("\n"):
                return found
            line, self.partial = json.loads(self.partial), ""
            if line["event"] == "step":
                found.append(line)

    def settle(self):
        deadline, together = time.monotonic() + PATIENCE_S, 0
        while together < SETTLE_STEPS:
            if time.monotonic() > deadline:
                raise measure.Failed(f"expected {SETTLE_STEPS} steps of both hosts within {PATIENCE_S} s, found {together}")
            time.sleep(0.05)
            together += sum(shared(step) for step in self.steps())

    def watch(self, seconds, cores):
        """cores(t): of the second host."""
        self.steps()
        began, made = time.monotonic(), []
        while (now := time.monotonic() - began) < seconds:
            lab.lab("cpu", HOSTS[1], f"{cores(now):.3f}")
            time.sleep(0.4)
            made += self.steps()
        took = time.monotonic() - began
        apart = []
        for step in made:
            finish = [part["finish_s"] for part in step["workers"]]
            if shared(step):
                apart.append(max(finish) / (sum(finish) / len(finish)) - 1)
        if not apart:
            raise measure.Failed("no step was shared")
        return {"samples_per_s": round(sum(step["samples"] for step in made) / took, 2), "apart": round(measure.median(apart), 4),
                "steps": len(made), "shared": len(apart)}


def shared(step):
    return sum(part["samples"] > 0 for part in step["workers"]) == len(HOSTS)


def one(program, args):
    mean = (CORES + LEAST_CORES) / 2
    with lab.laboratory(dict.fromkeys(HOSTS, str(CORES)), "1gbit"), measure.Scratch() as scratch:
        run = Run(argparse.Namespace(motley=program, batch=args.batch), scratch)
        run.settle()
        wave = run.watch(args.seconds, lambda t: mean + (CORES - mean) * math.cos(2 * math.pi * t / args.period))
        lab.lab("cpu", HOSTS[1], str(CORES))
        time.sleep(SETTLE_S)
        rest = run.watch(REST_PART * args.seconds, lambda t: CORES)
        audit = run.end()
    used = wave["samples_per_s"] / (rest["samples_per_s"] * (CORES + mean) / (2 * CORES))
    row = {"program": str(program), "wave": wave, "rest": rest, "used": round(used, 4), "audit": audit}
    measure.emit(bench="lab_drift", **row)
    return row


def main():
    args = arguments()
    programs = [measure.motley(each) for each in args.motley or [None]]
    if not lab.ready("lab_drift"):
        return
    rows = [one(program, args) for program in programs]
    if len(programs) > 1:
        rows += [one(program, args) for program in reversed(programs)]
    measure.emit(bench="lab_drift", rows=len(rows), machine=measure.machine())
    measure.table(["program", "wave", "apart", "rest", "apart", "used"],
                  [[row["program"], row["wave"]["samples_per_s"], row["wave"]["apart"], row["rest"]["samples_per_s"],
                    row["rest"]["apart"], row["used"]] for row in rows])


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"lab_drift: {failure}")
