#!/usr/bin/env python3
"""What many workers cost: seconds a step, memory of the head and of a worker, and what did not go as it should, by the real coordinator and
workers on simulated links (sim_scale), beside the arithmetic of a ring.

`exchange_s` is a step without computing, `ring_s` an allreduce of as many machines: 2 (N - 1) / N times the model's bytes over a link.
Prints JSON lines, and a table on standard error.

  bench/sim_scale.py [--workers 8 …] [--parameters 25.6e6 …] [--rate 1000] [--steps 5]
"""

import argparse
import json
import subprocess

import measure


def one(program, workers, parameters, args):
    command = [program, "--workers", workers, "--parameters", int(parameters), "--rate", args.rate, "--steps", args.steps]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    if not done.stdout.startswith("{"):
        raise measure.Failed(f"{' '.join(map(str, command))} ended with {done.returncode}")
    row = json.loads(done.stdout)
    if row["steps"]:
        row["step_s"] = row["steps"][-1]
        row["exchange_s"] = round(row["step_s"] - row["compute_s"], 3)
        row["over_ring"] = round(row["exchange_s"] / row["ring_s"], 3)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="sim_scale (default: of the release build)")
    parser.add_argument("--workers", type=int, action="append", help="repeatable (default: 8, 32, 128)")
    parser.add_argument("--parameters", type=float, action="append", help="repeatable (default: 25.6e6, 1e9)")
    parser.add_argument("--rate", type=float, default=1000, help="Mbit/s of each link, in both directions")
    parser.add_argument("--steps", type=int, default=5, help="of which the last one counts")
    args = parser.parse_args()
    program = measure.program(args.program, "build/release/sim/sim_scale")
    columns = ["workers", "parameters", "step_s", "exchange_s", "ring_s", "over_ring", "in", "out", "head_models", "worker_models"]
    rows = []
    for parameters in args.parameters or [25.6e6, 1e9]:
        for workers in args.workers or [8, 32, 128]:
            row = one(program, workers, parameters, args)
            measure.emit(**row)
            rows.append([(row.get(key, "-")[-1:] or ["-"])[0] if key in ("in", "out") else row.get(key, "-") for key in columns])
    measure.table(columns, rows)


if __name__ == "__main__":
    main()
