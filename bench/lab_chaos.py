#!/usr/bin/env python3
"""A run in which something fails every few seconds: five hosts of the lab (Linux, root), the last of which lies from a given time on.

Each of the four honest hosts first trains alone, all at the same time: that is its capacity. Then they train together, the first is the
head. Every `--every` seconds it is another host's turn: its worker is killed (kill -9) and started again, frozen for a while (SIGSTOP), or
its cable is pulled for a while. From `--lies-from` seconds on a worker joins that has the token and sends gradients of another size
(tests/e2e/liar.py). The ratio is the samples that were trained over those that the hosts would have trained alone in the time that they
were there. No peer survives the first of these events. Prints one JSON object on standard output, a table on standard error.

  bench/lab_chaos.py [--seconds 600] [--every 15] [--lies-from 180] [--gone 5]
"""

import argparse
import json
import pathlib
import signal
import sys
import time

import lab
import measure

CORES = {"one": 0.7, "two": 0.4, "three": 0.3, "four": 0.2}
LIAR, LIAR_CORES = "liar", 0.1
FEATURES, CLASSES, SAMPLES, BATCH = 1024, 64, 20000, 2048
ALONE_STEPS, WARM_UP = 30, 10
PATIENCE_S = 120
PYTHON = measure.ROOT / "build/venv/bin/python"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: the release build)")
    parser.add_argument("--seconds", type=float, default=600, help="of the run together")
    parser.add_argument("--every", type=float, default=15, help="seconds between two events")
    parser.add_argument("--lies-from", type=float, default=180, help="seconds until the liar joins")
    parser.add_argument("--gone", type=float, default=5, help="seconds that a host is away")
    parser.add_argument("--factor", type=float, default=1e6, help="every element of the liar's gradients")
    parser.add_argument("--lie", metavar="TOKEN_FILE", help=argparse.SUPPRESS)  # on the liar's host
    return parser.parse_args()


def train_command(args, directory, **others):
    extra = {"data.uri": f"synthetic:{SAMPLES}:{FEATURES}:{CLASSES}", "train.checkpoint_seconds": "30", **others.pop("extra", {})}
    return measure.train_command(args.motley, "softmax", directory, batch=BATCH, threads=1, extra=extra, **others)


def alone(args, scratch):
    """Samples a second of each host, all at the same time."""
    started = {}
    for host in CORES:
        directory = scratch.fresh(f"alone-{host}")
        started[host] = measure.start(lab.on(host, train_command(args, directory, steps=ALONE_STEPS + WARM_UP)), directory)
    return {host: lab.steady(measure.finish(each, PATIENCE_S), WARM_UP)[0] for host, each in started.items()}


class Hosts:
    """The workers of all hosts but the head's, and how long each was there."""

    def __init__(self, args, token, scratch):
        self._args, self._token, self._scratch = args, token, scratch
        self._workers, self._here, self._since = {}, dict.fromkeys(CORES, 0.0), dict.fromkeys(CORES)

    def start(self, host):
        join = [self._args.motley, "join", "--json", "--token-file", self._token, "--device", "cpu", "--threads", 1, "--name", host]
        self._workers[host] = measure.start(lab.on(host, join), self._scratch.fresh(f"join-{host}"))[0]

    def count(self, host, here):
        now = time.monotonic()
        if self._since[host] is not None:
            self._here[host] += now - self._since[host]
        self._since[host] = now if here else None

    def seconds(self):
        for host in CORES:
            self.count(host, self._since[host] is not None)
        return dict(self._here)

    def begin(self, what, host):
        self.count(host, False)
        if what == "cable":
            lab.lab("cut", host)
        else:
            self._workers[host].send_signal(signal.SIGKILL if what == "kill" else signal.SIGSTOP)

    def end(self, what, host):
        if what == "cable":
            lab.lab("mend", host)
        elif what == "freeze":
            self._workers[host].send_signal(signal.SIGCONT)
        else:
            self._workers[host].wait()
            self.start(host)
        self.count(host, True)


class Events:
    """What the head says, as it says it."""

    def __init__(self, path):
        self._lines, self._partial = open(path), ""
        self.all = []

    def read(self):
        while True:
            self._partial += self._lines.readline()
            if not self._partial.endswith("\n"):
                return
            self.all.append(json.loads(self._partial))
            self._partial = ""

    def steps(self):
        return [event for event in self.all if event["event"] == "step"]

    def until(self, holds):
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > deadline:
                raise measure.Failed(f"waited {PATIENCE_S} s in vain")
            time.sleep(0.05)
            self.read()


def disturb(args, hosts, events, lie):
    """Until the time is over. What happened, and how often."""
    began = time.monotonic()
    turns = [(what, host) for what in ("kill", "freeze", "cable") for host in list(CORES)[1:]]
    happened, running, next_event, lying = [], None, args.every, False
    while (now := time.monotonic() - began) < args.seconds:
        events.read()
        if not lying and now >= args.lies_from:
            lie()
            lying = True
        if running and now >= running[0]:
            hosts.end(*running[1])
            running = None
        if running is None and now >= next_event and now + args.gone < args.seconds:
            turn = turns[len(happened) % len(turns)]
            hosts.begin(*turn)
            running, next_event = (now + args.gone, turn), next_event + args.every
            happened.append(turn[0])
        time.sleep(0.02)
    if running:
        hosts.end(*running[1])
    return {what: happened.count(what) for what in ("kill", "freeze", "cable")}


def together(args, scratch, speeds):
    directory = scratch.fresh("together")
    token = directory.with_suffix(".token")
    command = train_command(args, directory, steps=10_000_000, listen="0.0.0.0:7117", extra={"train.min_workers": str(len(CORES))})
    command += ["--plaintext", "--token-file", str(token), "--name", "one"]
    head = measure.start(lab.on("one", command), directory)
    hosts, events = Hosts(args, token, scratch), Events(f"{directory}.out")
    for host in list(CORES)[1:]:
        hosts.start(host)
    events.until(lambda: len(events.steps()) > WARM_UP)
    for host in CORES:
        hosts.count(host, True)
    first = len(events.steps())

    def lie():
        command = [PYTHON, __file__, "--lie", token, "--factor", args.factor, "--seconds", args.seconds]
        measure.start(lab.on(LIAR, command), scratch.fresh("liar"))

    happened = disturb(args, hosts, events, lie)
    here = hosts.seconds()
    events.read()
    steps = events.steps()[first:]
    trained, possible = sum(step["samples"] for step in steps), sum(speeds[host] * here[host] for host in CORES)
    head[0].send_signal(signal.SIGINT)
    head[0].wait(PATIENCE_S)
    audit = measure.event(measure.finish(measure.start([args.motley, "audit", str(directory), "--json"], scratch.fresh("audit")),
                                         PATIENCE_S), "audit")
    return {"ratio": round(trained / possible, 4), "samples": trained, "possible": round(possible), "events": happened,
            "seconds_there": {host: round(there, 1) for host, there in here.items()}, "longest_step_s": max(s["seconds"] for s in steps),
            "liar": about_liar(events.all), "audit": {key: audit[key] for key in ("missing", "duplicate")}}


def about_liar(events):
    """Steps between its first share and its exclusion; None where it never left."""
    named = [event for event in events if event["event"] == "worker" and event["worker"].startswith(LIAR)]
    out = next((event for event in named if event["change"] == "excluded"), None)
    if out is None:
        return {"joined": bool(named), "excluded": False}
    before = [event for event in events[:events.index(out)] if event["event"] == "step"]
    shares = [i for i, step in enumerate(before) if any(part["worker"].startswith(LIAR) and part["samples"] for part in step["workers"])]
    joined = sum(event["event"] == "step" for event in events[:events.index(named[0])])
    return {"joined": True, "excluded": True, "reason": out["reason"], "steps_until_out": len(before) - joined,
            "steps_with_a_share": len(shares)}


def lie(args):
    """On its own host: a worker whose gradients are of another size than all others'."""
    sys.path.insert(0, str(measure.ROOT / "tests/e2e"))
    import liar
    import wire

    def answer(worker, grant):
        worker.begin(grant)
        worker.gradient(grant, args.factor)
        worker.finish(grant, count=grant[7], seconds=0.01)

    token = wire.parse_token(pathlib.Path(args.lie).read_text())
    with liar.Liar(token, LIAR, answer, features=FEATURES, classes=CLASSES) as worker:
        deadline = time.monotonic() + args.seconds
        while worker.bye is None and time.monotonic() < deadline:
            time.sleep(0.1)


def main():
    args = arguments()
    if args.lie:
        return lie(args)
    args.motley = measure.motley(args.motley)
    if not lab.ready("lab_chaos"):
        return
    lab.lab("up", *[f"{host}:cpu={cores}" for host, cores in {**CORES, LIAR: LIAR_CORES}.items()], "--rate", "1gbit")
    try:
        with measure.Scratch() as scratch:
            speeds = alone(args, scratch)
            result = together(args, scratch, speeds)
    finally:
        lab.lab("down")
    result["alone"] = {host: round(speed) for host, speed in speeds.items()}
    measure.emit(bench="lab_chaos", result=result, seconds=args.seconds, every=args.every, machine=measure.machine())
    measure.table(["what", "figure"], [[key, str(value)] for key, value in result.items()])


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"lab_chaos: {failure}")
