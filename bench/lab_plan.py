#!/usr/bin/env python3
"""What the plan promises against what the run gives, over mixes of hosts, links and models of the lab (Linux, root).

For each model and mix every host first trains alone; then all train together on each link. A row says what the plan predicted when it
had settled, what the run then reached, who was left out, and how that compares with the fastest host alone. One JSON object a line on
standard output, a table on standard error.

  bench/lab_plan.py [--recipe fashion-cnn …] [--mix 0.8:0.2 …] [--rate 1gbit …]
"""

import argparse
import sys

import lab
import measure

MIXES = ["0.8:0.2", "0.7:0.7", "0.9:0.45:0.18"]
RATES = ["1gbit", "200mbit", "50mbit", "10mbit"]
FASTEST_KEPT = 0.99


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: build/motley)")
    parser.add_argument("--recipe", action="append", choices=lab.WORKS, help="repeatable (default: both)")
    parser.add_argument("--mix", action="append",
                        help="cores of the hosts; the first is the head. Repeatable (default: %s)" % ", ".join(MIXES))
    parser.add_argument("--rate", action="append", help="of every link. Repeatable (default: %s)" % ", ".join(RATES))
    return parser.parse_args()


def row(args, mix, rate, hosts, each, scratch):
    for host in hosts:
        lab.lab("rate", host, rate)
    together = lab.joint(args, hosts, scratch)
    joint, predicted = together["joint"], together["predicted"]
    shares = [change for change in together["changes"] if change["event"] == "plan"][-1]["shares"]
    result = {"recipe": args.recipe, "mix": mix, "rate": rate, "global_batch": args.work.batch, "fastest_alone": max(each),
              "alone_sum": sum(each), "predicted": predicted, "joint": joint, "error": abs(predicted / joint - 1),
              "eta": joint / sum(each), "over_fastest": joint / max(each),
              "left_out": sorted(name for name, samples in shares.items() if samples == 0), "exposed": together["exposed"],
              "workers": together["workers"]}
    result = {key: round(value, 4) if isinstance(value, float) else value for key, value in result.items()}
    measure.emit(bench="lab_plan", **result)
    return result


def rows(args, recipe, mix, rates, scratch):
    lab.choose(args, recipe, scratch)
    cores = mix.split(":")
    hosts = lab.NAMES[:len(cores)]
    with lab.laboratory(dict(zip(hosts, cores)), "1gbit"):
        # Each beside its row: the speed of a machine drifts by more than what is looked for.
        return [row(args, mix, rate, hosts, lab.alone(args, hosts, scratch), scratch) for rate in rates]


def main():
    args = arguments()
    args.motley, args.plaintext, args.set, args.local_steps = measure.motley(args.motley), False, [], 0
    if not lab.ready("lab_plan"):
        return
    recipes = args.recipe or list(lab.WORKS)
    mixes, rates = args.mix or MIXES, args.rate or RATES
    with measure.Scratch() as scratch:
        results = [each for recipe in recipes for mix in mixes for each in rows(args, recipe, mix, rates, scratch)]
    summary = {"rows": len(results), "median_error": round(measure.median([each["error"] for each in results]), 4),
               "worst_error": max(each["error"] for each in results),
               "least_over_fastest": min(each["over_fastest"] for each in results),
               "slower_than_fastest": sum(each["over_fastest"] < FASTEST_KEPT for each in results)}
    measure.emit(bench="lab_plan", result=summary, machine=measure.machine())
    columns = ["recipe", "mix", "rate", "predicted", "joint", "error", "eta", "over_fastest", "left_out"]
    measure.table(columns, [[str(each[key]) if key == "left_out" else each[key] for key in columns] for each in results])
    measure.say(f"median error {summary['median_error']}, worst {summary['worst_error']}, "
                f"least over the fastest alone {summary['least_over_fastest']}")


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"lab_plan: {failure}")
