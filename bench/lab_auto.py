#!/usr/bin/env python3
"""Whether train.mode=auto takes what is fastest, over models, mixes of hosts and links of the lab (Linux, root).

For each row a run with train.mode=auto is let go on in the mode that it took; then one makes the other mode, on the same hosts. Both end
when their speed is known. The right mode is the one that came furthest in a second, less what the price of rounds takes, as the plan says
that price; where no price is known it is exact steps. A row also says what `auto` predicted of both before it began, what the run itself
predicts of a step or round of its mode once it is on its way, and what these took.

One JSON object a line on standard output, a table on standard error.

  bench/lab_auto.py [--motley PROGRAM] [--row gpt-mini,0.8:0.2,20mbit …] [--local-steps 30]
"""

import argparse
import json
import signal
import sys
import time

import lab
import measure

ROWS = ["fashion-cnn,0.8:0.8,1gbit", "fashion-cnn,0.8:0.2,100mbit", "gpt-mini,0.8:0.8,1gbit", "gpt-mini,0.8:0.8,100mbit",
        "gpt-mini,0.8:0.2,20mbit", "gpt-mini,0.8:0.45:0.3:0.2,100mbit"]
BATCH = {"fashion-cnn": 256, "gpt-mini": 32}
EPOCHS = 300  # planned, of which little is made: 20 tokens a parameter of gpt-mini and more, so that rounds have a price
SECONDS, ROUNDS = 30, 3  # at the least; of many steps or rounds the second half counts, of few all but the first
MANY = 8
CODEC = "int4"
SAMPLES_PER_PERCENT = 0.13  # more that make up for a percent of loss, as in src/plan/round_price.cpp
PATIENCE_S = 420


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: build/motley)")
    parser.add_argument("--row", action="append",
                        help="recipe,cores of the hosts,rate of each link; repeatable (default: %s)" % " ".join(ROWS))
    parser.add_argument("--local-steps", type=int, default=30, help="of a round")
    return parser.parse_args()


class Running:
    """A head and those that join it, until enough is known."""

    def __init__(self, args, row, mode, scratch):
        recipe, mix, _ = row
        self.hosts = lab.NAMES[:len(mix)]
        directory = scratch.fresh(mode)
        token = directory.with_suffix(".token")
        extra = {"train.mode": mode, "train.rounds.steps": str(args.local_steps), "train.min_workers": str(len(mix)),
                 "wire.gradients": CODEC, "wire.weights": CODEC}
        command = measure.train_command(args.motley, recipe, directory, batch=BATCH[recipe], steps=0, threads=1,
                                        words=("--epochs", EPOCHS, *args.words[recipe]), listen="0.0.0.0:7117", extra=extra)
        command[2:2] = ["--token-file", str(token), "--name", self.hosts[0]]
        self.head = measure.start(lab.on(self.hosts[0], command), directory)[0]
        self.others = []
        for host in self.hosts[1:]:
            join = [args.motley, "join", "--json", "--token-file", token, "--device", "cpu", "--threads", 1, "--name", host]
            self.others.append(measure.start(lab.on(host, join), scratch.fresh(f"join-{host}"))[0])
        self.output, self.events = f"{directory}.out", []
        self.errors = f"{directory}.err"

    def until_known(self, mode):
        """What happened, and in which mode."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and self.head.poll() is None:
            time.sleep(0.2)
            with open(self.output) as out:
                self.events = [json.loads(line) for line in out.read().splitlines(keepends=True) if line.endswith("}\n")]
            mode = next((event["mode"] for event in self.events if event["event"] == "mode"), mode)
            steps = [event for event in self.events if event["event"] == "step"]
            enough = sum(step["seconds"] for step in steps) >= SECONDS and (mode != "rounds" or len(steps) >= ROUNDS)
            if mode != "auto" and enough:
                return mode
        with open(self.errors) as errors:
            raise measure.Failed(f"not enough steps after {PATIENCE_S} s; {self.events[-1:]} {errors.read()[-1000:]}")

    def stop(self):
        for process in (self.head, *self.others):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(60)


def found(running, mode, local_steps):
    steps = [event for event in running.events if event["event"] == "step"]
    plans = [event for event in running.events if event["event"] == "plan"]
    counted = steps[len(steps) // 2:] if len(steps) >= MANY else steps[1:]
    seconds = sum(step["seconds"] for step in counted)
    parts = {}
    for part in (part for step in counted for part in step["workers"] if part["samples"]):
        mine = parts.setdefault(part["worker"], dict.fromkeys(("samples", "compute_s", "wait_s"), 0))
        for key in mine:
            mine[key] += part[key] / len(counted)
    return {"samples_per_s": sum(step["samples"] for step in counted) / seconds, "step_s": seconds / len(counted), "steps": len(counted),
            "predicted_step_s": plans[-1]["predicted"]["step_s"] if plans else None, "workers": parts,
            "local_steps": local_steps if mode == "rounds" else 0}


def made(args, row, mode, scratch):
    running = Running(args, row, mode, scratch)
    try:
        mode = running.until_known(mode)
    finally:
        running.stop()
    chosen = next((event for event in running.events if event["event"] == "mode"), None)
    return mode, chosen, found(running, mode, args.local_steps)


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return round(value, 4) if isinstance(value, float) else value


def one_row(args, words, scratch):
    recipe, mix, rate = words.split(",")
    row = recipe, mix.split(":"), rate
    with lab.laboratory(dict(zip(lab.NAMES, row[1])), rate):
        mode, chosen, first = made(args, row, "auto", scratch)
        other = "exact" if mode == "rounds" else "rounds"
        measured = {mode: first, other: made(args, row, other, scratch)[2]}
    exact, rounds = (measured[each]["samples_per_s"] for each in ("exact", "rounds"))
    price = chosen["rounds_loss_percent"]
    right = "rounds" if price is not None and rounds / (1 + SAMPLES_PER_PERCENT * price) > exact else "exact"
    predicted = {"exact": chosen["exact_samples_per_s"], "rounds": chosen["rounds_samples_per_s"]}
    result = {"row": words, "taken": mode, "right": right, "faster": "rounds" if rounds > exact else "exact", "rounds_loss_percent": price,
              "before": {each: {"samples_per_s": predicted[each], "off": predicted[each] / measured[each]["samples_per_s"] - 1}
                         for each in predicted if predicted[each]},
              "in_the_run": {each: value["predicted_step_s"] / value["step_s"] - 1 for each, value in measured.items()
                             if value["predicted_step_s"]},
              "measured": measured, "sentence": chosen["sentence"]}
    measure.emit(bench="lab_auto", **rounded(result))
    return result


def main():
    args = arguments()
    args.motley = measure.motley(args.motley)
    if not lab.ready("lab_auto"):
        return
    with measure.Scratch() as scratch:
        args.words = {"fashion-cnn": (), "gpt-mini": ("--block", 64, "--text", lab.words(scratch.path / "words.txt"))}
        results = [one_row(args, words, scratch) for words in args.row or ROWS]
    off = {when: [abs(value if when == "in_the_run" else value["off"]) for each in results for value in each[when].values()]
           for when in ("before", "in_the_run")}
    summary = {"rows": len(results), "right": sum(each["taken"] == each["right"] for each in results), "codec": CODEC,
               "local_steps": args.local_steps, "median_off": {when: measure.median(values) for when, values in off.items() if values}}
    measure.emit(bench="lab_auto", result=rounded(summary), machine=measure.machine())
    columns = ["row", "taken", "right", "exact/s", "predicted", "rounds/s", "predicted"]
    measure.table(columns, [[each["row"], each["taken"], each["right"]] +
                            [value for mode in ("exact", "rounds")
                             for value in (each["measured"][mode]["samples_per_s"], each["before"].get(mode, {}).get("samples_per_s", "-"))]
                            for each in results])


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"lab_auto: {failure}")
