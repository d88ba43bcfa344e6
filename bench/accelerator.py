#!/usr/bin/env python3
"""What only a machine with an accelerator can show: the demo uses its card, cards and processors train together with the
losses of one worker, and a script keeps up with the plain loop of its model: the network of fashion-cnn, ResNet-50 and a GPT of
124 million parameters, alone, with two slow processors that join, and with a second worker on the card that has an eleventh of each
batch.

  bench/accelerator.py [--device cuda:0] [--parts demo,parity,scripts,joint] [--rounds 3]

Where the device is not there, it says so and tries nothing. `--device cpu` rehearses everything on any machine. One JSON
object a line on standard output, tables on standard error; ends with 1 if a target was missed.
"""

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys

import measure

ACCURACY_MIN = 0.88
LOSS_DIFFERENCE_MAX = 1e-4  # relative, at every step: devices sum in other orders
JOINT_TARGET = 0.97
SCRIPT = str(measure.ROOT / "bench/accelerator_script.py")
PARTS = ["demo", "parity", "scripts", "joint"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: build/motley)")
    parser.add_argument("--python", help="one that has the package (default: that of `make build`)")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--parts", default=",".join(PARTS), help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each, after one that warms up")
    parser.add_argument("--parity-steps", type=int, default=60)
    parser.add_argument("--scripts", default="cnn:2048:300,resnet50:256:40,resnet50:64:120,gpt:32:40", metavar="MODEL:BATCH:STEPS,…",
                        help="(default: %(default)s)")
    parser.add_argument("--target", type=float, default=0.97, help="the ratio to reach")
    return parser.parse_args()


def device_of(args):
    """What `motley devices` says of the device; None where it is not there."""
    listing = subprocess.run([args.motley, "devices", "--json"], capture_output=True, text=True, check=True).stdout
    found = [json.loads(line) for line in listing.splitlines()]
    measure.emit(bench="accelerator", part="devices", devices=found)
    return next((device for device in found if device["device"] == args.device), None)


def run(command, directory, timeout_s=900):
    return measure.finish(measure.start([str(word) for word in command], directory), timeout_s)


def demo(args, scratch):
    """The demo as a newcomer types it: no device named."""
    directory = scratch.fresh("demo")
    lines = run([args.motley, "train", "fashion-cnn", "--json", "--run", directory, "--listen", "127.0.0.1:0"], directory)
    done = measure.event(lines, "done")
    devices = sorted({line["device"] for line in lines if line["event"] == "worker" and line["change"] == "joined"})
    reached = done["accuracy"] >= ACCURACY_MIN and args.device in devices
    measure.emit(bench="accelerator", part="demo", devices=devices, accuracy=done["accuracy"], seconds=done["seconds"],
                 samples_per_s=done["samples_per_s"], reached=reached)
    return [["demo on " + ", ".join(devices), f"accuracy {done['accuracy']:.4f}", f">= {ACCURACY_MIN}", reached]]


def losses(args, scratch, devices):
    directory = scratch.fresh("parity")
    extra = {"train.min_workers": len(devices)}
    if len(devices) > 1:
        extra["train.shares"] = str([3] + [1] * (len(devices) - 1))
    command = measure.train_command(args.motley, "fashion-cnn", directory, batch=512, steps=args.parity_steps, threads=None,
                                    devices=devices, extra=extra)
    lines = run(command, directory)
    by_step = {line["step"]: line["loss"] for line in lines if line["event"] == "step"}
    if len(by_step) != args.parity_steps:
        raise measure.Failed(f"expected the losses of {args.parity_steps} steps, found {len(by_step)}")
    return [loss for _, loss in sorted(by_step.items())]


def parity(args, scratch):
    groups = [[args.device], ["cpu"], [args.device, "cpu"], [args.device, args.device]]
    curves = [(" + ".join(devices), losses(args, scratch, devices)) for devices in groups]
    rows = []
    for (one, left), (other, right) in itertools.combinations(curves, 2):
        worst = max(abs(a - b) / max(abs(a), abs(b)) for a, b in zip(left, right))
        reached = worst <= LOSS_DIFFERENCE_MAX
        measure.emit(bench="accelerator", part="parity", one=one, other=other, steps=len(left), loss_difference=worst,
                     last_loss=left[-1], reached=reached)
        rows.append([f"losses of {one} and {other}", f"{worst:.1e}", f"<= {LOSS_DIFFERENCE_MAX:.0e}", reached])
    return rows


def script_speed(command, args, scratch, script, *rest):
    """Samples a second of the script's second epoch."""
    return measure.event(run([*command, SCRIPT, *script, *rest], scratch.fresh("script"), 300), "speed")["samples_per_s"]


def of_motley(args, devices, *words):
    named = [word for device in devices for word in ("--device", device)]
    return [args.motley, "train", "--json", "--listen", "127.0.0.1:0", *named, *words]


def scripts(args, scratch):
    rows = []
    for script in (text.split(":") for text in args.scripts.split(",")):
        turns = []
        for _ in range(args.rounds):
            plain = script_speed([args.python], args, scratch, script, "--plain", args.device)
            turns.append((plain, script_speed(of_motley(args, [args.device]), args, scratch, script)))
        ratio = measure.median([motley / plain for plain, motley in turns])
        name, batch, _ = script
        reached = ratio >= args.target
        measure.emit(bench="accelerator", part="scripts", model=name, batch=int(batch), turns=turns, ratio=round(ratio, 4), reached=reached)
        rows.append([f"{name}, batch {batch}: script over the plain loop", f"{ratio:.4f}", f">= {args.target}", reached])
    return rows


def joined_speed(args, scratch, script):
    """Of the card's script while two processors of one thread each are there, too."""
    token = ["--token-file", str(scratch.fresh("token"))]
    head = measure.start([*of_motley(args, [args.device]), *token, SCRIPT, *script], scratch.fresh("joint"))
    join = [args.motley, "join", *token, "--device", "cpu", "--threads", "1", SCRIPT, *script]
    joiners = [measure.start(join, scratch.fresh("joiner")) for _ in range(2)]
    lines = measure.finish(head, 300)
    for joiner in joiners:
        measure.finish(joiner, 60)
    return measure.event(lines, "speed")["samples_per_s"]


def joint(args, scratch):
    rows = []
    for script in (text.split(":") for text in args.scripts.split(",")):
        name, batch, _ = script
        alone = script_speed(of_motley(args, [args.device]), args, scratch, script)
        second = ["--set", "train.min_workers=2", "--set", "train.shares=[10, 1]"]
        found = {"two processors join": joined_speed(args, scratch, script),
                 "an eleventh by a second worker": script_speed(of_motley(args, [args.device] * 2, *second), args, scratch, script)}
        for what, speed in found.items():
            ratio = speed / alone
            reached = ratio >= JOINT_TARGET
            measure.emit(bench="accelerator", part="joint", model=name, batch=int(batch), what=what, alone_samples_per_s=alone,
                         samples_per_s=speed, ratio=round(ratio, 4), reached=reached)
            rows.append([f"{name}, batch {batch}: {what}, over alone", f"{ratio:.4f}", f">= {JOINT_TARGET}", reached])
    return rows


def main():
    args = arguments()
    args.motley = measure.motley(args.motley)
    device = device_of(args)
    if device is None:
        measure.emit(bench="accelerator", tried=False, device=args.device)
        measure.say(f"accelerator: no {args.device} on this machine: nothing was tried on one")
        return 0
    parts = args.parts.split(",")
    if "scripts" in parts:  # each turn begins in a directory of its own
        args.python = os.path.abspath(shutil.which(args.python) or args.python) if args.python else str(measure.python_package())
    rows = []
    with measure.Scratch() as scratch:
        for part in parts:
            rows += {"demo": demo, "parity": parity, "scripts": scripts, "joint": joint}[part](args, scratch)
    machine = measure.machine()
    measure.emit(bench="accelerator", tried=True, device=device, machine=machine, reached=all(row[3] for row in rows))
    measure.say(f"\n{device['device']}: {device['description']}, on {machine['processor']}, {machine['cores']} cores")
    measure.table(["what", "found", "target", "reached"], [[*row[:3], "yes" if row[3] else "no"] for row in rows])
    return 0 if all(row[3] for row in rows) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except measure.Failed as failure:
        sys.exit(f"accelerator: {failure}")
