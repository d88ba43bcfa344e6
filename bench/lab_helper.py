#!/usr/bin/env python3
"""A fast host and a slow one behind a slow link: how fast steps are with the slow one as a helper (train.mode=helper), beside the fast host
alone and both of them in exact steps; and what `motley plan` says of it (Linux, root).

The model is softmax regression of a million parameters, which needs no torch, with SGD. The batch follows from measuring: so many samples
that a step of the fast host alone takes --step seconds. Steady speed: without the first steps. Each arm has as many turns as --repetitions
says, one after the other. `over_alone` is over the fast host alone in the same turn. One JSON object a line on standard output, a table on
standard error.

  bench/lab_helper.py [--motley PROGRAM] [--cores 0.9:0.3] [--rate 100mbit …] [--step 0.5] [--steps 40] [--repetitions 2]
"""

import argparse
import sys

import lab
import lab_rounds
import measure

FEATURES, CLASSES = 999, 1000
RATES = ["100mbit", "20mbit"]
ARMS = ("alone", "exact", "helper")
WARM_UP = 10  # steps; a helper's slice has grown by then
TRIED = (64, 512)
TRIED_STEPS = 24


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: the release build)")
    parser.add_argument("--cores", default="0.9:0.3", help="of the fast host and the slow one")
    parser.add_argument("--rate", action="append", help="of each link, in both directions; repeatable (default: %s)" % ", ".join(RATES))
    parser.add_argument("--step", type=float, default=0.5, help="seconds of a step alone (default: 0.5)")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--repetitions", type=int, default=2)
    return parser.parse_args()


def training(args, directory, batch, steps, mode, **more):
    data = f"synthetic:{batch * steps}:{FEATURES}:{CLASSES}"
    extra = {"data.uri": data, "train.mode": mode, "wire.gradients": "int8", "wire.weights": "int8", "optimizer.lr": 1e-4,
             "train.epochs": 1, **more}
    return measure.train_command(args.motley, "softmax", directory, batch=batch, steps=0, threads=1, listen="0.0.0.0:7117",
                                 extra={key: str(value) for key, value in extra.items()})


def steady(lines):
    return [line for line in lines if line.get("event") == "step"][WARM_UP:]


def batch_of(args, scratch):
    seconds = []
    for batch in TRIED:
        directory = scratch.fresh("tried")
        steps = steady(measure.finish(measure.start(lab.on("one", training(args, directory, batch, TRIED_STEPS, "exact")), directory), 300))
        seconds.append(sum(step["seconds"] for step in steps) / len(steps))
    each = (seconds[1] - seconds[0]) / (TRIED[1] - TRIED[0])
    return max(8, round((args.step - (seconds[0] - TRIED[0] * each)) / each))


def joining(args, token):
    return lab.on("two", [args.motley, "join", "--json", "--token-file", token, "--device", "cpu", "--threads", 1, "--name", "two"])


def predicted(args, rate, batch, scratch):
    """Helped over alone, by the plan."""
    directory = scratch.fresh("plan")
    token = directory.with_suffix(".token")
    command = training(args, directory, batch, args.steps, "helper", **{"train.min_workers": 2})
    run = command.index("--run")
    command[1:run + 2] = ["plan", "softmax", "--json", "--name", "one", "--token-file", str(token), "--seconds", "15"]
    head = measure.start(lab.on("one", command), directory)
    joiner = measure.start(joining(args, token), scratch.fresh("join"))
    made = measure.event(measure.finish(head, lab_rounds.TIMEOUT_S), "plan")
    measure.finish(joiner, lab_rounds.TIMEOUT_S)
    measure.emit(bench="lab_helper", rate=rate, modes=made["modes"])
    (helped,) = [mode["samples_per_s"] for mode in made["modes"] if mode["mode"] == "helper"]
    (alone,) = [each["alone_samples_per_s"] for each in made["outlook"] if each["worker"].startswith("one/")]
    return helped / alone


def arm(args, kind, rate, batch, scratch):
    directory = scratch.fresh(kind)
    token = directory.with_suffix(".token")
    more = {} if kind == "alone" else {"train.min_workers": 2}
    command = training(args, directory, batch, args.steps + WARM_UP, "helper" if kind == "helper" else "exact", **more)
    command[2:2] = ["--token-file", str(token), "--name", "one"]
    head = measure.start(lab.on("one", command), directory)
    joiner = None if kind == "alone" else measure.start(joining(args, token), scratch.fresh("join"))
    lines = measure.finish(head, lab_rounds.TIMEOUT_S)
    if joiner:
        measure.finish(joiner, lab_rounds.TIMEOUT_S)
    steps = steady(lines)
    samples = sum(step["samples"] for step in steps)
    parts = [part for step in steps for part in step["workers"] if part["worker"].startswith("two")]
    result = {"arm": kind, "rate": rate, "cores": args.cores, "global_batch": batch, "steps": len(steps),
              "samples_per_s": round(samples / sum(step["seconds"] for step in steps), 2),
              "of_the_other": round(sum(part["samples"] for part in parts) / samples, 4), "steps_with_it": len(parts),
              "parked": sum(1 for line in lines if line.get("event") == "worker" and line.get("parked"))}
    measure.emit(bench="lab_helper", **result)
    return result


def turn(args, rate, batch, scratch):
    """Every arm once."""
    results = [arm(args, kind, rate, batch, scratch) for kind in ARMS]
    for result in results:
        result["over_alone"] = round(result["samples_per_s"] / results[0]["samples_per_s"], 3)
    return results


def main():
    args = arguments()
    args.motley = measure.motley(args.motley)
    if not lab.ready("lab_helper"):
        return
    rates = args.rate or RATES
    results = []
    with lab.laboratory(dict(zip(lab.NAMES, args.cores.split(":"))), rates[0]), measure.Scratch() as scratch:
        batch = batch_of(args, scratch)
        for rate in rates:
            for host in lab.NAMES[:2]:
                lab.lab("rate", host, rate)
            plan = predicted(args, rate, batch, scratch)
            for _ in range(args.repetitions):
                results += turn(args, rate, batch, scratch)
            helped = measure.median([result["over_alone"] for result in results
                                     if result["rate"] == rate and result["arm"] == "helper"])
            measure.emit(bench="lab_helper", result={"rate": rate, "helper_over_alone": helped, "by_the_plan": round(plan, 3)},
                         machine=measure.machine())
    columns = ("rate", "arm", "samples_per_s", "over_alone", "of_the_other", "steps_with_it", "parked")
    measure.table(list(columns), [[result[key] for key in columns] for result in results])


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"lab_helper: {failure}")
