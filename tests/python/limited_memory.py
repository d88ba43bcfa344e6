"""Scripts under a memory limit: the control group that sets it, and random (budget, model, batch) cases with their verdicts."""

import json
import os
import pathlib
import random
import signal
import subprocess
import time

MIB = 1 << 20
VERSION_1 = pathlib.Path("/sys/fs/cgroup/memory")
VERSION_2 = pathlib.Path("/sys/fs/cgroup")
LONGEST_CASE_S = 120
EXTRA_MIB = (10, 800)  # of a case, above what the program takes without a model
SCRIPT = str(pathlib.Path(__file__).resolve().parent / "scripts" / "sized.py")
STEPS = 3


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


def case(model, width, layers, batch, extra_mib=0):
    return {"words": [model, width, layers, batch], "extra_mib": extra_mib}


def random_case(dice):
    """A model and a batch, and how much memory there is beyond what the program takes to train next to nothing: with room for what the
    script itself has, its weights."""
    model = dice.choice(["perceptron", "convolutions", "attention"])
    width = dice.choice({"perceptron": [64, 512, 2048, 4096], "convolutions": [8, 32, 64], "attention": [32, 64]}[model])
    layers = dice.randint(1, 3)
    of_layer = {"perceptron": width, "convolutions": 9 * width, "attention": 12 * width}[model] * width
    ends = {"perceptron": 794 * width, "convolutions": 19 * width, "attention": 1964 * width}[model]
    weights_mib = 4 * (layers * of_layer + ends) >> 20
    return case(model, width, layers, dice.choice([32, 128]), weights_mib + extra_mib(dice))


def extra_mib(dice):
    low, high = EXTRA_MIB
    return round(low * (high / low) ** dice.random())


def bare_bytes(program, directory):
    """What the program takes to train next to nothing. The first time its own files may be read in, too."""
    smallest = case("perceptron", 8, 1, 8)
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
    """Trains with so much memory in all, in `directory`, which is made."""
    directory.mkdir()
    words = [str(word) for word in case["words"]]
    command = [program, "train", "--run", "run", "--device", "cpu", "--set", f"train.steps={STEPS}", "--json", SCRIPT, *words]
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


def run_cases(program, directory, count, seed):
    """Yields the result of each of `count` random cases."""
    directory = pathlib.Path(directory)
    dice = random.Random(seed)
    bare = bare_bytes(program, directory)
    for number in range(count):
        drawn = random_case(dice)
        budget = bare + drawn["extra_mib"] * MIB
        yield {"case": number, **drawn, "budget_mib": budget // MIB} | run_case(program, directory / f"case-{number}", drawn, budget)
