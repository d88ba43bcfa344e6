#!/usr/bin/env python3
"""Two equal hosts of the lab together: eta = joint samples/s / sum of what each does alone, and the same for PyTorch DDP over Gloo.

Each host is a network namespace with a CPU quota and a shaped link (tools/lab; needs root). In every repetition, in this order:
both hosts train alone, at the same time; both train together; the same two with DDP. Joint steps have as many samples a host as
the steps alone. One JSON object a line on standard output, a table on standard error.

  bench/lab_pair.py [--cpu 0.7] [--rate 1gbit] [--batch 256] [--steps 150] [--repetitions 5] [--plaintext]
"""

import argparse
import os
import pathlib
import subprocess
import sys

import measure

LAB = str(measure.ROOT / "tools/lab")
HOSTS = ("one", "two")
TIMEOUT_S = 600


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: the release build)")
    parser.add_argument("--python", default=str(measure.ROOT / "build/venv/bin/python"), help="a Python with torch, for DDP")
    parser.add_argument("--cpu", default="0.7", help="cores of each host")
    parser.add_argument("--rate", default="1gbit", help="of each link, in both directions")
    parser.add_argument("--batch", type=int, default=256, help="samples of one host a step")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--plaintext", action="store_true", help="without TLS")
    parser.add_argument("--no-ddp", action="store_true", help="without the peer")
    parser.add_argument("--keep-up", action="store_true", help="leave the lab standing at the end")
    parser.add_argument("--target", type=float, default=0.95, help="the eta to reach")
    return parser.parse_args()


def lab(*words):
    return subprocess.run([LAB, *words], check=True, capture_output=True, text=True).stdout.strip()


def on(host, command):
    return [LAB, "exec", host, "--", *[str(word) for word in command]]


def address(host):
    return lab("ip", host)


def alone(args, scratch):
    started = []
    for host in HOSTS:
        directory = scratch.fresh(f"alone-{host}")
        command = measure.train_command(args.motley, "fashion-cnn", directory, batch=args.batch, steps=args.steps, threads=1)
        started.append(measure.start(on(host, command), directory))
    return [measure.event(measure.finish(each, TIMEOUT_S), "done")["samples_per_s"] for each in started]


def joint(args, scratch):
    directory = scratch.fresh("joint")
    token = directory.with_suffix(".token")
    command = measure.train_command(args.motley, "fashion-cnn", directory, batch=len(HOSTS) * args.batch, steps=args.steps, threads=1,
                                    listen="0.0.0.0:7117", extra={"train.min_workers": str(len(HOSTS))})
    command += ["--token-file", str(token), "--name", HOSTS[0]] + (["--plaintext"] if args.plaintext else [])
    join = [args.motley, "join", "--json", "--token-file", token, "--device", "cpu", "--threads", 1, "--name", HOSTS[1]]
    head = measure.start(on(HOSTS[0], command), directory)
    joiner = measure.start(on(HOSTS[1], join), scratch.fresh("joiner"))
    usage = []
    lines = measure.finish(head, TIMEOUT_S, usage)
    measure.finish(joiner, TIMEOUT_S, usage)
    steps = [line for line in lines if line.get("event") == "step"][10:]
    parts = {}
    for step in steps:
        for part in step["workers"]:
            mine = parts.setdefault(part["worker"], {"samples": 0, "compute_s": 0.0, "wait_s": 0.0})
            for key in mine:
                mine[key] += part[key] / len(steps)
    return measure.event(lines, "done")["samples_per_s"], parts, usage


def ddp(args, scratch, world):
    started = []
    for rank, host in enumerate(HOSTS):
        command = ["env", "GLOO_SOCKET_IFNAME=eth0", args.python, measure.ROOT / "bench/ddp_gloo.py", "--batch", args.batch,
                   "--steps", args.steps, "--world", world, "--rank", rank if world > 1 else 0, "--address", address(HOSTS[0])]
        started.append(measure.start(on(host, command), scratch.fresh(f"ddp-{host}")))
    return [measure.event(measure.finish(each, TIMEOUT_S), "done")["samples_per_s"] for each in started]


def repetition(args, scratch, number):
    each = alone(args, scratch)
    together, parts, usage = joint(args, scratch)
    result = {"repetition": number, "alone": each, "joint": together, "eta": round(together / sum(each), 4), "workers": parts,
              "cpu_s": usage}
    if not args.no_ddp:
        ddp_each = ddp(args, scratch, 1)
        ddp_together = sum(ddp(args, scratch, len(HOSTS)))
        result |= {"ddp_alone": ddp_each, "ddp_joint": ddp_together, "ddp_eta": round(ddp_together / sum(ddp_each), 4)}
    measure.emit(bench="lab_pair", **result)
    return result


def report(args, results, machine):
    def middle(key):
        return measure.median([sum(r[key]) if isinstance(r[key], list) else r[key] for r in results])

    summary = {"hosts": len(HOSTS), "cpu": args.cpu, "rate": args.rate, "batch_per_host": args.batch, "tls": not args.plaintext,
               "alone_sum": middle("alone"), "joint": middle("joint"), "eta": middle("eta"), "target": args.target,
               "reached": middle("eta") >= args.target}
    rows = [["motley", summary["alone_sum"], summary["joint"], summary["eta"]]]
    if not args.no_ddp:
        summary |= {"ddp_alone_sum": middle("ddp_alone"), "ddp_joint": middle("ddp_joint"), "ddp_eta": middle("ddp_eta"),
                    "joint_over_ddp": round(middle("joint") / middle("ddp_joint"), 4)}
        rows.append(["PyTorch DDP over Gloo", summary["ddp_alone_sum"], summary["ddp_joint"], summary["ddp_eta"]])
    measure.emit(bench="lab_pair", result=summary, machine=machine)
    measure.say(f"\ntwo hosts of {args.cpu} cores, {args.rate}, fashion-cnn, {args.batch} samples a host and step, "
                f"{'plain TCP' if args.plaintext else 'TLS 1.3'}, on {machine['processor']}, {machine['cores']} cores")
    measure.table(["", "alone, sum of samples/s", "together, samples/s", "eta"], rows)
    measure.say(f"target {args.target}: {'reached' if summary['reached'] else 'missed'}")


def main():
    args = arguments()
    args.motley = measure.motley(args.motley)
    if sys.platform != "linux" or os.geteuid() != 0 or not os.access(LAB, os.X_OK):
        measure.emit(bench="lab_pair", skipped="needs Linux, root and tools/lab")
        return measure.say("lab_pair: left out: it needs Linux and root (network namespaces)")
    if not args.no_ddp and not os.access(args.python, os.X_OK):
        sys.exit(f"lab_pair: expected a Python with torch at {args.python}, found none; try: make bench, or --no-ddp")
    if pathlib.Path("/run/lab.json").exists():
        sys.exit("lab_pair: a lab is up already; try: tools/lab down")
    lab("up", *[f"{host}:cpu={args.cpu}" for host in HOSTS], "--rate", args.rate)
    try:
        with measure.Scratch() as scratch:
            results = [repetition(args, scratch, number) for number in range(args.repetitions)]
    finally:
        if not args.keep_up:
            lab("down")
    report(args, results, measure.machine())


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"lab_pair: {failure}")
