#!/usr/bin/env python3
"""What gradients and weights in fewer bits cost in quality: the same training with each codec, in both directions, and the loss at its end.

A head without a device and two workers, all on this machine, so that every number crosses the codec. gpt-mini reads this project's own
texts and is judged by its mean loss over the last quarter of the steps and on the last tenth, which it does not see; fashion-cnn by its
accuracy on the test images. The seed changes initial weights and sample order. `rounding` is fp32 in other micro-batches: whatever it
differs by is the chance of a training, not a codec. Time means nothing here. One JSON object a line on standard output, a table on
standard error.

  bench/quality.py [--recipe gpt-mini --recipe fashion-cnn] [--codec int8 …] [--seeds N] [--set KEY=VALUE …]
"""

import argparse
import dataclasses
import subprocess
import sys

import measure

CODECS = ("fp32", "bf16", "int8", "int4")
TIMEOUT_S = 7200
WORKERS = 2


@dataclasses.dataclass
class Work:
    seeds: int
    words: tuple  # of the recipe
    settings: dict
    micro_batch: int  # of `rounding`


# gpt-mini has its ten million parameters, and windows and batches small enough for a processor.
WORKS = {"gpt-mini": Work(1, ("--block", 16, "--batch-size", 4, "--steps", 2000), {"train.micro_batch": "2"}, 1),
         "fashion-cnn": Work(3, ("--epochs", 5), {}, 48)}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: build/motley)")
    parser.add_argument("--recipe", action="append", choices=WORKS, help="repeatable (default: all)")
    parser.add_argument("--codec", action="append", choices=CODECS[1:], help="beside fp32; repeatable (default: int8 and int4)")
    parser.add_argument("--seeds", type=int, help="trainings with each codec")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of the run; repeatable")
    return parser.parse_args()


def texts(scratch):
    """This project's texts in one file, in an order of which the last tenth is like the others."""
    command = ["git", "ls-files", "*.md", "*.h", "*.cpp", "*.py"]
    names = subprocess.run(command, cwd=measure.ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    parts = [(measure.ROOT / name).read_text() for name in sorted(names)]
    file = scratch.path / "texts.txt"
    file.write_text("".join([*(part for i, part in enumerate(parts) if i % 10), *parts[::10]]))
    return file


def train(args, recipe, codec, seed, words, settings, scratch):
    directory = scratch.fresh(f"{recipe}-{codec}-{seed}")
    token = directory.with_suffix(".token")
    wire = "fp32" if codec == "rounding" else codec
    keys = settings | {"train.min_workers": str(WORKERS), "train.checkpoint_seconds": "3600",
                       "wire.gradients": f'"{wire}"', "wire.weights": f'"{wire}"'}
    if codec == "rounding":
        keys["train.micro_batch"] = str(WORKS[recipe].micro_batch)
    command = [args.motley, "train", recipe, "--json", "--run", directory, "--listen", "127.0.0.1:0", "--device", "none",
               "--token-file", token]
    for key, value in keys.items():
        command += ["--set", f"{key}={value}"]
    command += [*words, "--seed", seed]
    head = measure.start([str(word) for word in command], directory)
    join = [args.motley, "join", "--json", "--token-file", token, "--device", "cpu", "--threads", 1]
    workers = [measure.start([str(word) for word in [*join, "--name", f"worker{i}"]], scratch.fresh("join")) for i in range(WORKERS)]
    lines = measure.finish(head, TIMEOUT_S)
    for worker in workers:
        measure.finish(worker, TIMEOUT_S)
    losses = [line["loss"] for line in lines if line["event"] == "step"]
    last = losses[-max(1, len(losses) // 4):]
    tested = measure.event(lines, "eval")
    result = {"recipe": recipe, "codec": codec, "seed": seed, "steps": len(losses), "train_loss": round(sum(last) / len(last), 5),
              "test_loss": tested["loss"], "accuracy": tested["accuracy"]}
    measure.emit(bench="quality", **result)
    return result


def measure_recipe(args, recipe):
    work = WORKS[recipe]
    with measure.Scratch() as scratch:
        words = (*work.words, "--text", texts(scratch)) if recipe == "gpt-mini" else work.words
        settings = work.settings | dict(each.split("=", 1) for each in args.set)
        results = [train(args, recipe, codec, seed, words, settings, scratch) for seed in range(1, (args.seeds or work.seeds) + 1)
                   for codec in ("fp32", "rounding", *(args.codec or ("int8", "int4")))]
    rows = []
    for codec in dict.fromkeys(result["codec"] for result in results):
        def mean(key, of=codec):
            found = [result[key] for result in results if result["codec"] == of]
            return sum(found) / len(found)
        row = {"codec": codec, **{key: round(mean(key), 5) for key in ("train_loss", "test_loss", "accuracy")}}
        row |= {f"{key}_over_fp32": round(mean(key) / mean(key, "fp32") - 1, 6) for key in ("train_loss", "test_loss")}
        row["accuracy_points"] = round(100 * (mean("accuracy") - mean("accuracy", "fp32")), 3)
        measure.emit(bench="quality", recipe=recipe, result=row)
        rows.append(row)
    return rows


def main():
    args = arguments()
    args.motley = measure.motley(args.motley)
    for recipe in args.recipe or WORKS:
        rows = measure_recipe(args, recipe)
        measure.say(f"\n{recipe}, {WORKERS} workers; of fp32: relative loss, accuracy in points")
        measure.table(list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"quality: {failure}")
