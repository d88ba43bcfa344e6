#!/usr/bin/env python3
"""How much of the time hosts compute in rounds over slow links, where a model is scaled so that its bytes per computing are those of 124
million parameters at one second a step (Linux, root).

The model is softmax regression of a million parameters, which needs no torch. How many samples a local step has follows from measuring: so
many that a step takes 1 s * its parameters / 124 million on a host alone. `step_124m_s` says what that came to in the run: below 1, the
wire is asked for more than meant. `computing` is computing time over wall time, the mean of the hosts by their speed; `predicted_round_s`
is what the plan said of a round. One JSON object a line on standard output, a table on standard error.

`next` behind a row's codec: `train.rounds.overlap=next`.

  bench/lab_rounds.py [--motley PROGRAM] [--cores 0.8:0.8] [--row 100mbit:100:int4[:next] …] [--rounds 12]
"""

import argparse

import lab
import measure

ROWS = ["1gbit:32:int4", "200mbit:128:int4", "100mbit:100:int4"]
FEATURES, CLASSES = 10_000, 100
PARAMETERS = (FEATURES + 1) * CLASSES
MEANT, MEANT_S = 124e6, 1.0
WARM_UP = 3  # rounds before those that count
TRIED = (2, 8)  # samples of a step, to tell what comes once from what comes with each
TRIED_STEPS = 50
TIMEOUT_S = 300


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: build/motley)")
    parser.add_argument("--cores", default="0.8:0.8", help="of the hosts; the first is the head")
    parser.add_argument("--row", action="append", help="link:local steps:codec[:next], repeatable (default: %s)" % ", ".join(ROWS))
    parser.add_argument("--rounds", type=int, default=12)
    return parser.parse_args()


def training(args, directory, batch, local, codec, rounds, overlap="none", **more):
    """An epoch has the samples of a round, but where rounds overlap, which they do within one alone."""
    epochs = rounds if overlap == "none" else 1
    words = (f"samples={batch * local * rounds // epochs}", f"features={FEATURES}", f"classes={CLASSES}", "lr=1e-4", "momentum=0.9")
    extra = {"train.mode": "rounds", "train.rounds.steps": local, "train.rounds.overlap": overlap, "wire.gradients": codec,
             "wire.weights": codec, "train.epochs": epochs, **more}
    return measure.train_command(args.motley, "softmax", directory, batch=batch, steps=0, threads=1, words=words, listen="0.0.0.0:7117",
                                 extra={key: str(value) for key, value in extra.items()})


def parts_of(lines):
    """Of the rounds behind the first ones: their events, and by worker samples and seconds of computing."""
    steps = [line for line in lines if line.get("event") == "step"][WARM_UP:]
    found = {}
    for step in steps:
        for part in step["workers"]:
            mine = found.setdefault(part["worker"], [0, 0.0])
            mine[0] += part["samples"]
            mine[1] += part["compute_s"]
    return steps, found


def step_alone(args, host, scratch, batch):
    """Seconds that a local step of so many samples takes there."""
    directory = scratch.fresh("alone")
    command = training(args, directory, batch, TRIED_STEPS, "fp32", 8)
    lines = measure.finish(measure.start(lab.on(host, command), directory), TIMEOUT_S)
    steps, found = parts_of(lines)
    return sum(seconds for _, seconds in found.values()) / len(steps) / TRIED_STEPS


def batch_of(args, hosts, scratch):
    """Samples of a step, over all hosts."""
    wanted, total = MEANT_S * PARAMETERS / MEANT, 0.0
    for host in hosts:
        few, many = (step_alone(args, host, scratch, size) for size in TRIED)
        each = (many - few) / (TRIED[1] - TRIED[0])
        total += max(1.0, (wanted - (few - TRIED[0] * each)) / each)
    return max(len(hosts), round(total))


def row(args, hosts, batch, words, scratch):
    rate, local, codec, overlap = [*words.split(":"), "none"][:4]
    for host in hosts:
        lab.lab("rate", host, rate)
    directory, local = scratch.fresh("joint"), int(local)
    token = directory.with_suffix(".token")
    command = training(args, directory, batch, local, codec, args.rounds + WARM_UP, overlap, **{"train.min_workers": len(hosts)})
    command[2:2] = ["--token-file", str(token), "--name", hosts[0]]
    head = measure.start(lab.on(hosts[0], command), directory)
    joiners = [measure.start(lab.on(host, [args.motley, "join", "--json", "--token-file", token, "--device", "cpu", "--threads", 1,
                                           "--name", host]), scratch.fresh(f"join-{host}")) for host in hosts[1:]]
    lines = measure.finish(head, TIMEOUT_S)
    for joiner in joiners:
        measure.finish(joiner, TIMEOUT_S)
    steps, found = parts_of(lines)
    wall = sum(step["seconds"] for step in steps)
    speeds = {worker: samples / seconds for worker, (samples, seconds) in found.items()}
    computing = sum(speeds[worker] * seconds for worker, (_, seconds) in found.items()) / (sum(speeds.values()) * wall)
    mean_step = sum(seconds for _, seconds in found.values()) / len(found) / len(steps) / local
    bytes_round = sum(part["sent_bytes"] + part["received_bytes"] for step in steps for part in step["workers"]) / len(steps)
    plans = [line for line in lines if line["event"] == "plan"]
    result = {"rate": rate, "local_steps": local, "codec": codec, "overlap": overlap, "cores": args.cores, "global_batch": batch,
              "rounds": len(steps), "computing": round(computing, 4), "round_s": round(wall / len(steps), 4),
              "predicted_round_s": round(plans[-1]["predicted"]["step_s"], 4) if plans else None,
              "step_124m_s": round(mean_step * MEANT / PARAMETERS, 3), "bytes_a_round": round(bytes_round)}
    measure.emit(bench="lab_rounds", result=result, machine=measure.machine())
    return result


def main():
    args = arguments()
    args.motley = measure.motley(args.motley)
    if not lab.ready("lab_rounds"):
        return
    hosts = lab.NAMES[: len(args.cores.split(":"))]
    with lab.laboratory(dict(zip(hosts, args.cores.split(":"))), "1gbit"):
        with measure.Scratch() as scratch:
            batch = batch_of(args, hosts, scratch)
            results = [row(args, hosts, batch, words, scratch) for words in args.row or ROWS]
    columns = ("rate", "local_steps", "codec", "overlap", "computing", "round_s", "predicted_round_s", "step_124m_s", "bytes_a_round")
    measure.table(list(columns), [[result[key] for key in columns] for result in results])


if __name__ == "__main__":
    main()
