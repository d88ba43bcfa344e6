#!/usr/bin/env python3
"""Unequal hosts of the lab together: eta = joint samples/s / sum of what each does alone, and the same work with PyTorch DDP over Gloo.

Each host is a network namespace with a CPU quota and a shaped link (tools/lab; needs root). In every repetition, in this order: all hosts
train alone, at the same time; all train together; DDP with equal batches; DDP with batches in proportion to what each host did alone, the
gradients weighted. The global batch is the same everywhere. Steady speed: without the first steps. `nothing sent` is a step that ends when
every host has computed its part, in proportion to its speed, as if no number had to travel: each trains alone with that part as its batch,
all at the same time. `exposed` is the part of a step in which a host does not compute: it waits for weights, for the update, or for the
others (mean of the hosts). `processor`: seconds of the processor that each host's threads take a step, by name, and the part that is not
computing. With --local-steps the hosts together make four rounds of so many local steps, of which the first does not count; alone they make
few steps, as always. One JSON object a line on standard output, a table on standard error.

  bench/lab.py [--recipe fashion-cnn] [--mix 0.7:0.7 --mix 0.8:0.2 …] [--rate 1gbit] [--set KEY=VALUE …] [--repetitions 3]
    [--plaintext]
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import random
import subprocess
import sys

import measure
import processor

LAB = str(measure.ROOT / "tools/lab")
MIXES = ["0.7:0.7", "0.8:0.2", "0.9:0.45:0.18:0.1"]
NAMES = ("one", "two", "three", "four", "five", "six")
TIMEOUT_S = 900
TEXT_BYTES = 1 << 20
ROUNDS, ROUNDS_BEFORE = 3, 1  # that count, and before them


@dataclasses.dataclass
class Work:
    batch: int  # global
    steps: int
    warm_up: int  # steps before those that count
    words: tuple = ()  # of the recipe


# With rounds, what hosts do alone: a fifth of a core takes long for a step.
ALONE = {"steps": 6, "warm_up": 2}

# gpt-mini has windows of 64 bytes here instead of 256, or a step of a fifth of a core would take most of a minute.
WORKS = {"fashion-cnn": Work(256, 150, 20), "gpt-mini": Work(32, 24, 6, ("--block", 64))}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: build/motley)")
    parser.add_argument("--python", default=str(measure.ROOT / "build/venv/bin/python"), help="a Python with torch, for DDP")
    parser.add_argument("--mix", action="append",
                        help="cores of the hosts; the first is the head. Repeatable (default: %s)" % ", ".join(MIXES))
    parser.add_argument("--rate", default="1gbit", help="of each link, in both directions")
    parser.add_argument("--recipe", choices=WORKS, default="fashion-cnn")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the run together; repeatable")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--local-steps", type=int, default=0, metavar="H", help="the run together is in rounds of so many")
    parser.add_argument("--plaintext", action="store_true", help="without TLS")
    parser.add_argument("--no-ddp", action="store_true", help="without the peer")
    return parser.parse_args()


def ready(bench):
    """Whether a lab can be set up; says so where it cannot, and ends the program where one is up already."""
    if sys.platform != "linux" or os.geteuid() != 0 or not os.access(LAB, os.X_OK):
        measure.emit(bench=bench, skipped="needs Linux, root and tools/lab")
        measure.say(f"{bench}: left out: it needs Linux and root (network namespaces)")
        return False
    if pathlib.Path("/run/lab.json").exists():
        sys.exit(f"{bench}: a lab is up already; try: tools/lab down")
    return True


def lab(*words):
    return subprocess.run([LAB, *words], check=True, capture_output=True, text=True).stdout.strip()


@contextlib.contextmanager
def laboratory(cores, rate):
    """A lab of these hosts, by name, with so many cores each (None: all), as long as what is inside runs; SIGTERM ends both."""
    with measure.orderly():
        try:
            lab("up", *[f"{host}:cpu={share}" if share is not None else host for host, share in cores.items()], "--rate", rate)
            yield
        finally:
            lab("down")


def on(host, command):
    return [LAB, "exec", host, "--", *[str(word) for word in command]]


def words(path):
    """A text that needs no download: words of random letters, the same on each call."""
    chance = random.Random(7)
    vocabulary = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(500)]
    text = ""
    while len(text) < TEXT_BYTES:
        text += " ".join(chance.choices(vocabulary, k=200)) + ".\n"
    path.write_text(text)
    return path


def choose(args, recipe, scratch):
    args.recipe, args.work = recipe, WORKS[recipe]
    args.together = args.work
    if args.local_steps:
        args.work = dataclasses.replace(args.work, **ALONE)
        args.together = dataclasses.replace(args.work, steps=ROUNDS * args.local_steps, warm_up=ROUNDS_BEFORE * args.local_steps)
    args.words = args.work.words
    if recipe == "fashion-cnn":
        args.data = measure.images()
    else:
        args.data = words(scratch.path / "words.txt")
        args.words = (*args.words, "--text", args.data)


def steady(lines, warm_up):
    """Samples a second of the steps after the first ones, and these steps."""
    steps = [line for line in lines if line.get("event") == "step"][warm_up:]
    return sum(step["samples"] for step in steps) / sum(step["seconds"] for step in steps), steps


def training(args, directory, batch, work, **others):
    return measure.train_command(args.motley, args.recipe, directory, batch=batch, steps=work.steps + work.warm_up, threads=1,
                                 words=args.words, **others)


def alone(args, hosts, scratch, batches=None):
    started = []
    for host, batch in zip(hosts, batches or [args.work.batch] * len(hosts)):
        directory = scratch.fresh(f"alone-{host}")
        command = training(args, directory, batch, args.work)
        started.append(measure.start(on(host, command), directory))
    # Slow hosts go on when fast ones are done: nothing else runs on their cores meanwhile.
    return [steady(measure.finish(each, TIMEOUT_S), args.work.warm_up)[0] for each in started]


def joint(args, hosts, scratch):
    directory = scratch.fresh("joint")
    token = directory.with_suffix(".token")
    settings = {"train.min_workers": str(len(hosts)), **dict(each.split("=", 1) for each in args.set)}
    if args.local_steps:
        settings |= {"train.mode": "rounds", "train.rounds.steps": str(args.local_steps)}
    command = training(args, directory, args.together.batch, args.together, listen="0.0.0.0:7117", extra=settings)
    command[2:2] = ["--token-file", str(token), "--name", hosts[0]] + (["--plaintext"] if args.plaintext else [])
    head = measure.start(on(hosts[0], command), directory)
    joiners = []
    for host in hosts[1:]:
        join = [args.motley, "join", "--json", "--token-file", token, "--device", "cpu", "--threads", 1, "--name", host]
        joiners.append(measure.start(on(host, join), scratch.fresh(f"join-{host}")))
    processes = {host: each[0].pid for host, each in zip(hosts, [head, *joiners])}
    warm_up = ROUNDS_BEFORE if args.local_steps else args.together.warm_up
    with processor.Watch(processes, f"{directory}.out", warm_up) as watch:
        lines = measure.finish(head, TIMEOUT_S)
    for joiner in joiners:
        measure.finish(joiner, TIMEOUT_S)
    speed, steps = steady(lines, warm_up)
    waits = [sum(part["wait_s"] for part in step["workers"]) / len(step["workers"]) for step in steps]
    exposed = sum(waits) / sum(step["seconds"] for step in steps)
    parts = {}
    for step in steps:
        for part in step["workers"]:
            mine = parts.setdefault(part["worker"], dict.fromkeys(
                ("samples", "compute_s", "wait_s", "finish_s", "received_bytes", "sent_bytes"), 0))
            for key in mine:
                mine[key] += part[key] / len(steps)
    return {"parameters": measure.event(lines, "run")["parameters"],
            "joint": round(speed, 1), "exposed": round(exposed, 4), "predicted": measure.event(lines, "done")["predicted_samples_per_s"],
            "processor": watch.a_step(),
            "workers": {name: {key: round(value, 4) for key, value in part.items()} for name, part in parts.items()},
            "changes": [line for line in lines if line["event"] in ("plan", "worker")]}


def ddp(args, hosts, batches, scratch):
    started = []
    for rank, host in enumerate(hosts):
        command = ["env", "GLOO_SOCKET_IFNAME=eth0", args.python, measure.ROOT / "bench/ddp_gloo.py", "--recipe", args.recipe,
                   "--data", args.data, "--batch", batches[rank], "--weight", batches[rank] * len(hosts) / sum(batches),
                   "--steps", args.work.steps, "--warm-up", args.work.warm_up, "--world", len(hosts), "--rank", rank,
                   "--address", lab("ip", hosts[0])]
        started.append(measure.start(on(host, command), scratch.fresh(f"ddp-{host}")))
    return sum(measure.event(measure.finish(each, TIMEOUT_S), "done")["samples_per_s"] for each in started)


def in_proportion(batch, speeds):
    shares = [max(1, round(batch * speed / sum(speeds))) for speed in speeds]
    shares[shares.index(max(shares))] += batch - sum(shares)
    return shares


def without_wire(args, hosts, batches, scratch):
    speeds = alone(args, hosts, scratch, batches)
    return sum(batches) / max(batch / speed for batch, speed in zip(batches, speeds))


def repetition(args, mix, hosts, scratch, number):
    each = alone(args, hosts, scratch)
    by_hand = in_proportion(args.work.batch, each)
    together = joint(args, hosts, scratch)
    unsent = without_wire(args, hosts, by_hand, scratch)
    result = {"mix": mix, "repetition": number, "alone": [round(speed, 1) for speed in each],
              "eta": round(together["joint"] / sum(each), 4), "nothing_sent_eta": round(unsent / sum(each), 4),
              "over_fastest": round(together["joint"] / max(each), 4), **together}
    if not args.no_ddp:
        equal = [args.work.batch // len(hosts)] * len(hosts)
        result |= {"ddp_equal": round(ddp(args, hosts, equal, scratch), 1), "ddp_by_hand": round(ddp(args, hosts, by_hand, scratch), 1),
                   "ddp_batches": by_hand}
        result |= {f"{way}_eta": round(result[way] / sum(each), 4) for way in ("ddp_equal", "ddp_by_hand")}
    measure.emit(bench="lab", **result)
    return result


def measure_mix(args, mix):
    cores = mix.split(":")
    hosts = NAMES[:len(cores)]
    with laboratory(dict(zip(hosts, cores)), args.rate):
        with measure.Scratch() as scratch:
            choose(args, args.recipe, scratch)
            results = [repetition(args, mix, hosts, scratch, number) for number in range(args.repetitions)]
    keys = ["joint", "eta", "nothing_sent_eta", "over_fastest", "exposed"]
    keys += [] if args.no_ddp else ["ddp_equal", "ddp_equal_eta", "ddp_by_hand", "ddp_by_hand_eta"]
    summary = {"recipe": args.recipe, "set": args.set, "mix": mix, "rate": args.rate,
               "global_batch": args.work.batch, "tls": not args.plaintext,
               "alone_sum": measure.median([sum(r["alone"]) for r in results])}
    summary |= {key: measure.median([r[key] for r in results]) for key in keys}
    if not args.no_ddp:
        summary["joint_over_ddp"] = round(summary["joint"] / summary["ddp_by_hand"], 4)
    measure.emit(bench="lab", result=summary, machine=measure.machine())
    return summary


def main():
    args = arguments()
    args.motley = measure.motley(args.motley)
    if not ready("lab"):
        return
    if not args.no_ddp and not os.access(args.python, os.X_OK):
        sys.exit(f"lab: expected a Python with torch at {args.python}, found none; try: make bench, or --no-ddp")
    summaries = [measure_mix(args, mix) for mix in args.mix or MIXES]
    machine = measure.machine()
    measure.say(f"\n{args.recipe}, global batch {args.work.batch}, {args.rate}, {'plain TCP' if args.plaintext else 'TLS 1.3'}, "
                f"hosts by their cores, on {machine['processor']}, {machine['cores']} cores")
    columns = {"hosts": "mix", "alone, sum": "alone_sum", "together": "joint", "eta": "eta", "nothing sent: eta": "nothing_sent_eta",
               "over fastest": "over_fastest", "exposed": "exposed"}
    if not args.no_ddp:
        columns |= {"DDP equal: eta": "ddp_equal_eta", "DDP by hand: eta": "ddp_by_hand_eta", "ours over it": "joint_over_ddp"}
    measure.table(list(columns), [[summary[key] for key in columns.values()] for summary in summaries])


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"lab: {failure}")
