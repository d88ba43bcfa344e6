#!/usr/bin/env python3
"""Weights from worker to worker (wire.chain), with `--chain both` gradients the other way, on equal hosts of the lab, in pairs without and
with it, in turns: eta = samples/s together over the sum of what the hosts do alone, and what goes over the head's interface a step, in
models of fp32.

With `--chain auto` it makes more steps, and `settled` says which way it came to, and samples/s from then on.

`hosts` is what comes to each host on the head's connections. Needs root; prints JSON lines, and a table on standard error.

`merged`: in how many steps gradients of how many workers came as one sum, and why they did not in others. Where the measuring is to be
done in short turns, `--alone` is what the hosts do alone, as an earlier one said (`alone` of each row).

  bench/lab_chain.py [--hosts 4] [--cores 0.4] [--rate 100mbit …] [--codec auto …] [--chain weights …] [--pairs 2] [--steps N]
    [--alone SAMPLES_PER_S] [--plaintext]
"""

import argparse
import dataclasses
import subprocess
import time

import lab
import measure

STEPS_MEASURED, SECONDS_MEASURED = 12, 3  # the last ones, on the interface: so many, and so long, at the least
LOOK_S = 0.25
TRIAL_STEPS = 60  # that wire.chain=auto makes besides, to try each way


class Interface(measure.Looking):
    """How many bytes went in and out of a host, and when, as long as this is open."""

    def __init__(self, host):
        loop = "while read -r _ <&0; do grep eth0 /proc/net/dev; done"
        self.process = subprocess.Popen(lab.on(host, ["sh", "-c", loop]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        super().__init__(LOOK_S)
        self.seen = []

    def look(self):
        print(file=self.process.stdin, flush=True)
        words = self.process.stdout.readline().split(":")[1].split()
        self.seen.append((time.monotonic(), int(words[0]), int(words[8])))

    def __exit__(self, *_):
        super().__exit__()
        self.process.stdin.close()
        self.process.wait()

    def a_step(self, step_s, busy):
        """(bytes in, bytes out) of a step, in the last ones; `busy`: bytes by which what is between two looks counts as training."""
        looks = zip(self.seen, self.seen[1:])
        end = max(late[0] for early, late in looks if late[2] - early[2] > busy)
        before = [look for look in self.seen if look[0] <= end - max(STEPS_MEASURED * step_s, SECONDS_MEASURED)][-1]
        last = [look for look in self.seen if look[0] <= end][-1]
        steps = (last[0] - before[0]) / step_s
        return [(last[way] - before[way]) / steps for way in (1, 2)]


def one(args, codec, chain, hosts, scratch):
    args.set = [f"wire.gradients={codec}", f"wire.weights={codec}", f"wire.chain={chain}"]
    args.together = dataclasses.replace(args.work, steps=args.work.steps + (TRIAL_STEPS if chain == "auto" else 0))
    with Interface(hosts[0]) as interface:
        result = lab.joint(args, hosts, scratch)
    model = 4 * result["parameters"]
    went_in, went_out = interface.a_step(args.work.batch / result["joint"], model / 100)
    parts = result["workers"].items()
    return {"joint": result["joint"], "merged": result["merged"], "settled": result["settled"], "exposed": result["exposed"],
            "in": round(went_in / model, 3), "out": round(went_out / model, 3),
            "hosts": {name: round(part["received_bytes"] / model, 3) for name, part in parts if part["received_bytes"]},
            "wait_s": {name: round(part["wait_s"], 3) for name, part in parts}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: the release build)")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--cores", default="0.4", help="of each host")
    parser.add_argument("--rate", action="append", help="of each link, in both directions; repeatable (default: 1gbit, 100mbit)")
    parser.add_argument("--codec", action="append", help="both ways; repeatable (default: auto)")
    parser.add_argument("--chain", action="append", help="what is held against none; repeatable (default: weights)")
    parser.add_argument("--recipe", choices=lab.WORKS, default="gpt-mini")
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--steps", type=int, help="of each run, beside those that warm up")
    parser.add_argument("--alone", type=float, help="samples/s of all hosts, each alone: not measured then")
    parser.add_argument("--plaintext", action="store_true", help="without TLS")
    args = parser.parse_args()
    args.motley, args.script, args.local_steps, args.set = measure.motley(args.motley), False, 0, []
    if not lab.ready("lab-chain"):
        return
    hosts, rows = lab.NAMES[:args.hosts], []
    for rate in args.rate or ["1gbit", "100mbit"]:
        with lab.laboratory(dict.fromkeys(hosts, args.cores), rate), measure.Scratch() as scratch:
            lab.choose(args, args.recipe, scratch)
            args.work.steps = args.steps or args.work.steps
            alone = args.alone or sum(lab.alone(args, hosts, scratch))
            for codec in args.codec or ["auto"]:
                for chain in ["none", *(args.chain or ["weights"])] * args.pairs:
                    result = one(args, codec, chain, hosts, scratch)
                    row = {"rate": rate, "codec": codec, "chain": chain, "alone": round(alone, 2), "eta": round(result["joint"] / alone, 4)}
                    row |= result
                    measure.emit(bench="lab-chain", **row)
                    rows.append(row)
    columns = ["rate", "codec", "chain", "joint", "eta", "exposed", "in", "out", "merged"]
    measure.say(f"\n{args.recipe}, {args.hosts} hosts of {args.cores} cores, on {measure.machine()['processor']}")
    measure.table(columns, [[row[column] for column in columns] for row in rows])


if __name__ == "__main__":
    main()
