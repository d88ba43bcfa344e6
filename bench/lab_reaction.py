#!/usr/bin/env python3
"""How a run reacts while its machines change: two equal hosts of the lab (Linux, root), one of which is slowed down and let go again.

How far the finish times within a step lie apart (the latest over the mean, less one): at rest, and in the steps after the second host
was throttled to half. Then it is throttled 21-fold, until it is left out, and let go, until it is back. Then its link is slowed
down. Prints one JSON object on standard output, a table on standard error.

  bench/lab_reaction.py [--batch 1024] [--cores 0.7]
"""

import argparse
import json
import pathlib
import signal
import sys
import time

import lab
import measure

HOSTS = ("one", "two")
SETTLE_STEPS = 25
WATCHED_STEPS = 25
STEPS = 20_000  # more than are made
PATIENCE_S = 90
LEAST_CORES = 0.1
OTHER_PROGRAMS = 2


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: build/motley)")
    parser.add_argument("--batch", type=int, default=1024, help="global batch")
    parser.add_argument("--cores", type=float, default=0.7, help="of each host")
    return parser.parse_args()


class Run:
    def __init__(self, args, scratch):
        self.args = args
        self.directory = scratch.fresh("reaction")
        token = self.directory.with_suffix(".token")
        command = measure.train_command(args.motley, "fashion-cnn", self.directory, batch=args.batch, steps=STEPS, threads=1,
                                        listen="0.0.0.0:7117", extra={"train.min_workers": "2"})
        self.head = measure.start(lab.on(HOSTS[0], command + ["--token-file", str(token), "--name", HOSTS[0]]), self.directory)
        join = [args.motley, "join", "--json", "--token-file", token, "--device", "cpu", "--threads", 1, "--name", HOSTS[1]]
        self.joiner = measure.start(lab.on(HOSTS[1], join), scratch.fresh("join"))
        self.lines = open(f"{self.directory}.out")
        self.partial = ""

    def next(self, kind, deadline):
        """The next event of a kind."""
        while time.monotonic() < deadline:
            self.partial += self.lines.readline()
            if not self.partial.endswith("\n"):
                time.sleep(0.005)
                continue
            line, self.partial = json.loads(self.partial), ""
            if line["event"] in kind:
                return line
        raise measure.Failed(f"expected an event {kind} within {PATIENCE_S} s, found none; the end of {self.directory}.err:\n" +
                             pathlib.Path(f"{self.directory}.err").read_text()[-1000:])

    def spreads(self, steps):
        """Of so many steps in which both have a share."""
        deadline, found = time.monotonic() + PATIENCE_S, []
        while len(found) < steps:
            finish = [part["finish_s"] for part in self.next({"step"}, deadline)["workers"]]
            if len(finish) == len(HOSTS):
                found.append(max(finish) / (sum(finish) / len(finish)) - 1)
        return found

    def until(self, change):
        """Seconds and steps until the second host is excluded or readmitted."""
        began, steps = time.monotonic(), 0
        while True:
            line = self.next({"worker", "step"}, began + PATIENCE_S)
            steps += line["event"] == "step"
            if line.get("change") == change:
                return {"seconds": round(time.monotonic() - began, 2), "steps": steps, "reason": line["reason"]}

    def end(self):
        self.head[0].send_signal(signal.SIGINT)
        self.head[0].wait(PATIENCE_S)
        self.joiner[0].terminate()
        self.joiner[0].wait(PATIENCE_S)
        audit = measure.start([self.args.motley, "audit", str(self.directory), "--json"], self.directory.with_suffix(".audit"))
        verdict = measure.event(measure.finish(audit, PATIENCE_S), "audit")
        return {key: verdict[key] for key in ("missing", "duplicate")}


def settled_after(spreads, bound):
    """Steps until five in a row have a median within the bound; None if they never have."""
    return next((i for i in range(len(spreads) - 4) if measure.median(spreads[i:i + 5]) <= bound), None)


def main():
    args = arguments()
    args.motley = measure.motley(args.motley)
    if not lab.ready("lab_reaction"):
        return
    full = str(args.cores)
    with lab.laboratory(dict.fromkeys(HOSTS, full), "1gbit"):
        with measure.Scratch() as scratch:
            run = Run(args, scratch)
            run.spreads(SETTLE_STEPS)
            rest = run.spreads(WATCHED_STEPS)
            lab.lab("cpu", "two", str(args.cores / 2))
            half = run.spreads(WATCHED_STEPS)
            # A kernel takes no quota below a tenth of a core here: other programs take most of that one.
            lab.lab("cpu", "two", str(LEAST_CORES))
            busy = lab.on("two", ["sh", "-c", "while :; do :; done"])
            others = [measure.start(busy, scratch.fresh("other")) for _ in range(OTHER_PROGRAMS)]
            result = {"spread_at_rest": round(measure.median(rest), 4), "spread_after_half": [round(each, 4) for each in half],
                      "steps_until_10_percent_after_half": settled_after(half, 0.1), "throttled_21x": run.until("excluded")}
            for other, *_ in others:
                other.kill()
            lab.lab("cpu", "two", full)
            result["restored"] = run.until("readmitted")
            run.spreads(SETTLE_STEPS)
            lab.lab("rate", "two", "10mbit")
            result["link_10mbit"] = run.until("excluded")
            lab.lab("rate", "two", "1gbit")
            result["audit"] = run.end()
    measure.emit(bench="lab_reaction", result=result, batch=args.batch, cores=args.cores, machine=measure.machine())
    measure.table(["what", "figure"], [[key, str(value)] for key, value in result.items()])


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"lab_reaction: {failure}")
