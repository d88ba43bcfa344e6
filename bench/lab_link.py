#!/usr/bin/env python3
"""`motley bench link` between two hosts of the lab (tools/lab; needs root), beside iperf3 both ways at once on the same link, in turns.

Each turn measures with iperf3 (`--bidir`, one connection each way) and with Motley, encrypted and plain; the figure is the median of the
ratios of a turn. Where iperf3 is not installed, Motley's figures come alone. One JSON object a line on standard output, a table on standard
error.

  bench/lab_link.py [--rate 1gbit] [--seconds 4] [--rounds 3]
"""

import argparse
import json
import shutil
import subprocess
import sys
import time

import measure
from lab import lab, laboratory, on, ready

PORT = 5201


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: build/motley)")
    parser.add_argument("--rate", default="1gbit", help="of each link, in both directions")
    parser.add_argument("--seconds", type=float, default=4, help="of each phase")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def link(args, scratch, plaintext):
    directory = scratch.fresh("link")
    token = directory.with_suffix(".token")
    listen = [args.motley, "bench", "link", "--json", "--once", "--write-token", token] + (["--plaintext"] if plaintext else [])
    listener = measure.start(on("one", listen), directory)
    client = measure.start(on("two", [args.motley, "bench", "link", "--json", "--token-file", token, "--seconds", args.seconds]),
                           scratch.fresh("measure"))
    result = measure.event(measure.finish(client, 120 + 20 * args.seconds), "link")
    measure.finish(listener, 60)
    return result


def iperf3(args):
    """Megabits a second of payload, up and down at once, as the receivers counted them."""
    server = subprocess.Popen(on("one", ["iperf3", "--server", "--one-off", "--port", PORT]), stdout=subprocess.DEVNULL)
    command = on("two", ["iperf3", "--client", lab("ip", "one"), "--port", PORT, "--bidir", "--json", "--omit", 1, "--time",
                         round(args.seconds)])
    try:
        for _ in range(50):  # until the server listens
            answer = subprocess.run(command, capture_output=True, text=True)
            if answer.returncode == 0:
                end = json.loads(answer.stdout)["end"]
                return tuple(end[name]["bits_per_second"] * 1e-6 for name in ("sum_received", "sum_received_bidir_reverse"))
            time.sleep(0.1)
        raise measure.Failed(f"iperf3 failed: {answer.stdout[-500:]}{answer.stderr[-500:]}")
    finally:
        if server.poll() is None:
            server.kill()
        server.wait()


def main():
    args = arguments()
    args.motley = measure.motley(args.motley)
    if not ready("lab_link"):
        return
    peer = shutil.which("iperf3") is not None
    rows, ratios = [], {"tls": [], "plain": []}
    with laboratory(dict.fromkeys(("one", "two")), args.rate):
        with measure.Scratch() as scratch:
            for turn in range(args.rounds):
                theirs = iperf3(args) if peer else None
                if theirs:
                    rows.append([f"iperf3, turn {turn + 1}", *theirs, "", "", ""])
                for kind in ratios:
                    found = link(args, scratch, plaintext=kind == "plain")
                    both = (found["both"]["up_mbit_s"], found["both"]["down_mbit_s"])
                    ratio = sum(both) / sum(theirs) if theirs else None
                    ratios[kind].append(ratio)
                    rows.append([f"{kind}, turn {turn + 1}", *both, found["up"]["up_mbit_s"], found["down"]["down_mbit_s"], ratio or ""])
                    measure.emit(bench="lab_link", kind=kind, rate=args.rate, turn=turn, both_up_mbit_s=both[0], both_down_mbit_s=both[1],
                                 up_mbit_s=found["up"]["up_mbit_s"], down_mbit_s=found["down"]["down_mbit_s"],
                                 idle_ms=found["idle"]["median_ms"], loaded_ms=found["both"]["round_trip"]["median_ms"],
                                 iperf3_both_mbit_s=theirs, over_iperf3=ratio and round(ratio, 4), verdict=found["verdict"],
                                 diagnosis=found["diagnosis"])
    if peer:
        measure.emit(bench="lab_link", rate=args.rate, machine=measure.machine(),
                     **{f"{kind}_over_iperf3": round(measure.median(each), 4) for kind, each in ratios.items()})
    measure.say(f"\n{args.rate}, Mbit/s of payload")
    measure.table(["", "both: up", "down", "alone: up", "down", "both over iperf3"], rows)


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"lab_link: {failure}")
