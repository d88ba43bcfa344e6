"""Training under a memory limit: the control group that sets it, and random (budget, model, batch) cases with their verdicts."""

import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import time

MIB = 1 << 20
VERSION_1 = pathlib.Path("/sys/fs/cgroup/memory")
VERSION_2 = pathlib.Path("/sys/fs/cgroup")
LONGEST_CASE_S = 120
EXTRA_MIB = (10, 800)  # of a case, above what the program takes without a model
SMALLEST = {"model": "mlp", "keys": {"data.uri": "synthetic:64:8:2", "data.test_uri": "", "model.hidden": "[8]", "train.global_batch": 8,
                                     "train.micro_batch": 1, "train.steps": 2}}


class Group:
    """A control group with a memory limit; processes are killed when they go over it."""

    def __init__(self):
        self.version = 1 if (VERSION_1 / "memory.limit_in_bytes").exists() else 2
        if self.version == 2:
            (VERSION_2 / "cgroup.subtree_control").write_text("+memory")
        self.path = (VERSION_1 if self.version == 1 else VERSION_2) / f"motley-memory-{os.getpid()}"

    def __enter__(self):
        self.path.mkdir()
        return self

    def __exit__(self, *_):
        self.path.rmdir()

    def limit(self, bytes_):
        """In whole pages; swap does not count as memory."""
        limit = str(int(bytes_) // 4096 * 4096)
        if self.version == 2:
            (self.path / "memory.max").write_text(limit)
            swap = self.path / "memory.swap.max"
            if swap.exists():
                swap.write_text("0")
            return
        (self.path / "memory.limit_in_bytes").write_text(limit)
        both = self.path / "memory.memsw.limit_in_bytes"
        if both.exists():
            both.write_text(limit)

    def enter(self):
        """Puts the calling process into the group: what Popen runs before the program."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def peak(self):
        """The most that was in use, or None where the kernel does not keep it."""
        file = self.path / ("memory.max_usage_in_bytes" if self.version == 1 else "memory.peak")
        return int(file.read_text()) if file.exists() else None


def why_not():
    """Why no limit can be set here; None if one can."""
    if os.geteuid() != 0:
        return "needs root"
    try:
        with Group() as group:
            group.limit(64 * MIB)
    except OSError as error:
        return f"needs control groups with a memory controller ({error})"
    return None


def write_data(directory):
    """Small images and a text, so that the models and not the data take the memory."""
    dice = random.Random(1)
    images = directory / "images"
    images.mkdir(parents=True)
    for part, count in (("train", 512), ("t10k", 64)):
        pixels = dice.randbytes(count * 28 * 28)
        (images / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, count, 28, 28) + pixels)
        (images / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + bytes(i % 10 for i in range(count)))
    (directory / "text.txt").write_bytes(dice.randbytes(1 << 18))


def random_case(dice):
    """A model with its settings, a batch and how much memory there is beyond what the program takes without a model."""
    keys = {"train.steps": dice.randint(2, 4), "data.test_uri": ""}
    model = dice.choice(["mlp", "fashion-cnn", "gpt-mini"])
    if model == "mlp":
        hidden = [dice.choice([64, 512, 2048, 4096]) for _ in range(dice.randint(1, 3))]
        keys |= {"data.uri": f"synthetic:512:{dice.choice([16, 784, 3072])}:10", "model.hidden": json.dumps(hidden)}
        keys["train.global_batch"] = dice.choice([32, 128, 512])
    elif model == "fashion-cnn":
        keys |= {"data.uri": "../images", "train.global_batch": dice.choice([32, 128, 256, 512])}
        if dice.random() < 0.5:
            keys["data.test_uri"] = "../images"
    else:
        heads = dice.choice([1, 2, 4])
        keys |= {"data.uri": "text:../text.txt", "model.block": dice.choice([32, 128, 256, 512]), "model.heads": heads,
                 "model.layers": dice.randint(1, 4), "model.width": heads * dice.choice([32, 64])}
        keys["train.global_batch"] = dice.choice([4, 16, 32])
    if dice.random() < 0.15:
        keys["train.micro_batch"] = dice.choice([1, 16, 256])
    return {"model": model, "keys": keys, "extra_mib": extra_mib(dice)}


def extra_mib(dice):
    low, high = EXTRA_MIB
    return round(low * (high / low) ** dice.random())


def bare_bytes(program, directory, smallest):
    """What the program takes to train next to nothing. The first time its own file may be read in, too."""
    peaks = [run_case(program, directory / f"bare-{turn}", smallest, 1 << 40)["peak_mib"] for turn in range(2)]
    return (min(peaks) or 100) * MIB


def verdict_on(status, output):
    """trained, refused (not enough memory, and said so) or died; and what it said."""
    errors = [event for event in map(json.loads, output.decode().splitlines()) if event["event"] == "error"]
    if status == 0:
        return {"verdict": "trained"}
    if status == 1 and len(errors) == 1 and errors[0]["code"] == "memory" and errors[0]["try"]:
        return {"verdict": "refused", "why": errors[0]["message"]}
    name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
    return {"verdict": "died", "why": errors[0]["message"] if errors else name}


def run_case(program, directory, case, bytes_):
    """Trains with so much memory in all: a recipe, or a script with its `words`. `directory` is made; it has the data beside it."""
    directory.mkdir()
    words = [word for key, value in case["keys"].items() for word in ("--set", f"{key}={value}")]
    command = [program, "train", case["model"], "--run", "run", "--device", "cpu", *words, "--json", *case.get("words", [])]
    began = time.monotonic()
    with Group() as group:
        group.limit(bytes_)
        process = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=group.enter)
        try:
            output, _ = process.communicate(timeout=LONGEST_CASE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return {"verdict": "died", "why": f"not done in {LONGEST_CASE_S} s"}
        took = {"peak_mib": (group.peak() or 0) // MIB, "seconds": round(time.monotonic() - began, 1)}
        return verdict_on(process.returncode, output) | took


def run_cases(program, directory, count, seed, draw=random_case, smallest=SMALLEST):
    """Yields the result of each of `count` random cases, which draw(dice) gives."""
    directory = pathlib.Path(directory)
    write_data(directory)
    dice = random.Random(seed)
    bare = bare_bytes(program, directory, smallest)
    for number in range(count):
        case = draw(dice)
        budget = bare + case["extra_mib"] * MIB
        yield {"case": number, **case, "budget_mib": budget // MIB} | run_case(program, directory / f"case-{number}", case, budget)
