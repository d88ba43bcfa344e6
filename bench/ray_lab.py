#!/usr/bin/env python3
"""A run on a Ray cluster beside the same run without Ray, and beside the parameter server of Ray's documentation.

The hosts are network namespaces with a CPU quota and a shaped link (tools/lab; needs root), each with a raylet of its own. In every
repetition, in this order: without Ray and without raylets (`motley train` and `motley join`); on raylets `motley train --on ray`; on the
same ones `ray_parameter_server.py`. Same script, model, data, global batch and threads. Steady speed: without the first 20 steps.
One JSON object a line on standard output, a table on standard error. Needs the Python package (`make build`) and Ray beside it.

  bench/ray_lab.py [--mix 0.8:0.2 --mix 0.7:0.7 …] [--rate 1gbit] [--batch 256] [--steps 100] [--repetitions 3]
"""

import argparse
import os
import pathlib
import subprocess
import sys

import measure
from lab import laboratory

sys.path.insert(0, str(measure.ROOT / "tests" / "python"))
from ray_hosts import LAB, RayHosts, lab  # noqa: E402

os.environ["RAY_AUTH_MODE"] = "disabled"  # else a token that somebody's ray.init() left here keeps the other hosts out

MIXES = ["0.8:0.2", "0.7:0.7", "0.6:0.6:0.3:0.3"]
NAMES = ("one", "two", "three", "four")
WARM_UP = 20
TIMEOUT_S = 900
SCRIPT = str(measure.ROOT / "bench" / "ray_script.py")
PEER = str(measure.ROOT / "bench" / "ray_parameter_server.py")


def steady(lines):
    """Samples a second of the steps after the first ones."""
    steps = [line for line in lines if line.get("event") == "step"][WARM_UP:]
    return sum(step["samples"] for step in steps) / sum(step["seconds"] for step in steps)


def training(args, hosts):
    return ["--json", "--threads", "1", "--set", f"train.min_workers={len(hosts)}", "--set", "train.checkpoint_seconds=3600", SCRIPT,
            str((args.steps + WARM_UP) * args.batch), str(args.batch)]


def without_ray(args, hosts, scratch):
    directory = scratch.fresh("plain")
    token = directory.with_suffix(".token")

    def on(host, *words):
        return [*LAB, "exec", host, "--", str(args.motley), *map(str, words)]

    here = ["--run", directory, "--listen", f"{lab('ip', hosts[0])}:7117", "--token-file", token, "--name", hosts[0], "--device", "cpu"]
    head = measure.start(on(hosts[0], "train", *here, *training(args, hosts)), directory)
    there = ["--json", "--token-file", token, "--device", "cpu", "--threads", 1, "--nice", 0]
    joiners = [measure.start(on(host, "join", *there, "--name", host, SCRIPT, *training(args, hosts)[-2:]), scratch.fresh(host))
               for host in hosts[1:]]
    lines = measure.finish(head, TIMEOUT_S)
    for joiner in joiners:
        measure.finish(joiner, TIMEOUT_S)
    return steady(lines)


def on_ray(args, hosts, raylets, scratch):
    directory = scratch.fresh("ray")
    words = [str(args.motley), "train", "--on", "ray", "--address", raylets.address, "--run", str(directory), *training(args, hosts)]
    return steady(measure.finish(measure.start([*raylets.on(hosts[0]), *words], directory), TIMEOUT_S))


def parameter_server(args, hosts, raylets, scratch):
    words = [str(args.python), PEER, "--address", raylets.address, "--batch", str(args.batch), "--steps", str(args.steps)]
    started = measure.start([*raylets.on(hosts[0]), "env", f"PYTHONPATH={measure.ROOT / 'bench'}", *words], scratch.fresh("peer"))
    return measure.event(measure.finish(started, TIMEOUT_S), "done")["samples_per_s"]


def repetition(args, mix, cores, scratch, number):
    hosts = list(cores)
    plain = without_ray(args, hosts, scratch)
    with RayHosts(args.python, cores) as raylets:
        ours = on_ray(args, hosts, raylets, scratch)
        theirs = parameter_server(args, hosts, raylets, scratch)
    result = {"without_ray": round(plain, 1), "on_ray": round(ours, 1), "parameter_server": round(theirs, 1),
              "ratio": round(ours / plain, 4), "over_parameter_server": round(ours / theirs, 4)}
    measure.emit(bench="ray_lab", mix=mix, repetition=number, **result)
    return result


def measure_mix(args, mix):
    shares = mix.split(":")
    cores = dict(zip(NAMES, shares))
    with laboratory(cores, args.rate):
        with measure.Scratch() as scratch:
            results = [repetition(args, mix, cores, scratch, number) for number in range(args.repetitions)]
    summary = {"mix": mix, "rate": args.rate, "global_batch": args.batch}
    summary |= {key: measure.median([result[key] for result in results]) for key in results[0]}
    measure.emit(bench="ray_lab", result=summary, machine=measure.machine())
    return summary


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=pathlib.Path, default=measure.ROOT / "build/python-env/bin/python",
                        help="a Python with motley, torch and ray")
    parser.add_argument("--mix", action="append",
                        help="cores of the hosts; the first is the head. Repeatable (default: %s)" % ", ".join(MIXES))
    parser.add_argument("--rate", default="1gbit", help="of each link, in both directions")
    parser.add_argument("--batch", type=int, default=256, help="global batch")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=3)
    args = parser.parse_args()
    args.motley = args.python.parent / "motley"
    if sys.platform != "linux" or os.geteuid() != 0:
        measure.emit(bench="ray_lab", skipped="needs Linux and root")
        return measure.say("ray_lab: left out: it needs Linux and root (network namespaces)")
    if not args.motley.is_file() or subprocess.run([args.python, "-c", "import ray"], capture_output=True).returncode != 0:
        measure.emit(bench="ray_lab", skipped="needs the Python package and Ray")
        return measure.say(f"ray_lab: left out: it needs the Python package and Ray in {args.python}; try: make build; pip install ray")
    if pathlib.Path("/run/lab.json").exists():
        sys.exit("ray_lab: a lab is up already; try: tools/lab down")
    summaries = [measure_mix(args, mix) for mix in args.mix or MIXES]
    columns = {"hosts": "mix", "without Ray": "without_ray", "on Ray": "on_ray", "parameter server": "parameter_server",
               "on Ray over without": "ratio", "over parameter server": "over_parameter_server"}
    measure.table(list(columns), [[summary[key] for key in columns.values()] for summary in summaries])


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"ray_lab: {failure}")
