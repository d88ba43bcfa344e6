"""What the benchmarks share: the machine, the paths, running `motley` and printing results. Needs nothing but Python."""

import contextlib
import json
import os
import pathlib
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))

import tied  # noqa: E402

# The work of a plain loop: no evaluation and no checkpoint in between.
SAME_WORK = {"model.tested": "false", "train.checkpoint_seconds": "3600"}
IMAGES = 60_000  # of an epoch of the recipes with images


def python_package():
    """The Python of `make build`; ends the program where there is none."""
    python = ROOT / "build/python-env/bin/python"  # not what it is a link to
    if not python.exists():
        sys.exit(f"expected the Python package in {python.parents[1]}, found nothing; try: make")
    return python


def machine():
    """The processor's name and how many cores this process may use."""
    name = platform.processor() or platform.machine()
    try:
        listing = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout
        fields = dict(line.split(":", 1) for line in listing.splitlines() if ":" in line)
        name = fields.get("Model name", name).strip()
        if "Model" in fields:
            name += f" (family {fields['CPU family'].strip()} model {fields['Model'].strip()})"
    except (OSError, subprocess.CalledProcessError, KeyError):
        pass  # macOS has no lscpu
    return {"processor": name, "cores": cores(), "system": f"{platform.system()} {platform.release()}"}


def cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def emit(**fields):
    """One JSON object on standard output."""
    print(json.dumps(fields), flush=True)


def say(text):
    print(text, file=sys.stderr, flush=True)


def table(header, rows):
    """A table for people, on standard error."""
    cells = [header, *[[text(value) for value in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for row in cells:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def text(value):
    return f"{value:.4g}" if isinstance(value, float) and value < 100 else str(round(value) if isinstance(value, float) else value)


def median(values):
    return statistics.median(values)


def program(given, *places):
    """The first of the places that exists; ends the program with what to try if there is none."""
    for place in [pathlib.Path(given)] if given else [ROOT / p for p in places]:
        if place.is_file():
            return str(place.resolve())
    sys.exit(f"expected a program at {given or ' or '.join(places)}, found none; try: make bench")


def motley(given):
    return program(given, "build/motley")


def images():
    """The directory with the images that the recipe fashion-cnn trains on."""
    places = [pathlib.Path("/usr/share/datasets/fashion-mnist"), pathlib.Path.home() / ".cache/motley/fashion-mnist"]
    for place in places:
        if list(place.glob("train-images*")):
            return place
    raise Failed("expected Fashion-MNIST in " + " or ".join(map(str, places)) + ", found it in neither; try: apt install "
                 "dataset-fashion-mnist")


@contextlib.contextmanager
def orderly():
    """SIGTERM ends what is inside as an exception does, once."""
    def end(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is end:
            signal.signal(signal.SIGTERM, before)


class Looking:
    """Calls look() every `every_s` seconds on a thread of its own, as long as this is open."""

    def __init__(self, every_s):
        self._every_s, self._over = every_s, threading.Event()
        self._thread = threading.Thread(target=self._loop)

    def look(self):
        raise NotImplementedError

    def _loop(self):
        while not self._over.wait(self._every_s):
            self.look()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


class Scratch:
    """A directory for the runs of a benchmark, gone at its end: nothing is written into the tree. So is what was started and still runs."""

    def __enter__(self):
        self._orderly = contextlib.ExitStack()
        self._orderly.enter_context(orderly())
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="motley-bench-"))
        self.count = 0
        return self

    def __exit__(self, *_):
        for process in _started:
            if process.poll() is None:
                process.kill()
                process.wait()
        _started.clear()
        shutil.rmtree(self.path, ignore_errors=True)
        self._orderly.close()

    def fresh(self, name):
        self.count += 1
        return self.path / f"{name}-{self.count}"


def own_words(target, batch, steps):
    """Of a recipe: so large a batch, and at least so many steps, unless it is 0. softmax has keys of the run for both."""
    if target == "softmax":
        return []
    if steps == 0:
        return ["--batch-size", batch]
    length = ["--steps", steps] if target == "gpt-mini" else ["--epochs", -(-steps // -(-IMAGES // batch))]
    return ["--batch-size", batch, *length]


def train_command(binary, target, directory, *, batch, steps, threads, words=(), listen="127.0.0.1:0", devices=("cpu",), extra=None):
    """`words`: other arguments of a recipe or of softmax. `extra`: keys of the run."""
    command = [binary, "train", target, "--json", "--run", str(directory), "--listen", listen]
    for device in devices:
        command += ["--device", device]
    if threads:
        command += ["--threads", str(threads)]
    keys = {**SAME_WORK, **({"train.steps": steps} if steps else {})}
    keys |= {"train.global_batch": batch} if target == "softmax" else {}
    keys |= extra or {}
    for key, value in keys.items():
        command += ["--set", f"{key}={value}"]
    return [*command, *map(str, own_words(target, batch, steps)), *map(str, words)]


class Failed(Exception):
    pass


_started = []


def start(command, directory):
    """Starts a program whose output is kept in files: no pipe that fills up, no thread that wakes beside the measured one."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    out, err = open(f"{directory}.out", "w+"), open(f"{directory}.err", "w+")
    process = subprocess.Popen(command, stdout=out, stderr=err, cwd=directory.parent, preexec_fn=tied.begin)
    _started.append(process)
    return process, out, err, command


def finish(started, timeout_s, usage=None):
    """Its JSON lines; the processor seconds it took are added to the list `usage`. Raises Failed with the end of its standard error."""
    process, out, err, command = started
    deadline = time.monotonic() + timeout_s
    killed = False
    while True:
        pid, status, resources = os.wait4(process.pid, os.WNOHANG)
        if pid != 0:
            break
        if time.monotonic() > deadline and not killed:
            process.kill()
            killed = True
        time.sleep(0.1)
    process.returncode = status = os.waitstatus_to_exitcode(status)
    if usage is not None:
        usage.append(round(resources.ru_utime + resources.ru_stime, 2))
    with out, err:
        out.seek(0)
        err.seek(0)
        lines, errors = out.read().splitlines(), err.read()
    if status != 0:
        raise Failed(f"{' '.join(map(str, command))}\n  ended with {status}{f' after {timeout_s} s' if killed else ''}: {errors[-2000:]}")
    return [json.loads(line) for line in lines if line.startswith("{")]


def event(lines, kind):
    """The last event of a kind."""
    found = [line for line in lines if line.get("event") == kind]
    if not found:
        raise Failed(f"expected an event '{kind}', found {sorted({str(line.get('event')) for line in lines})}")
    return found[-1]
