"""The C++ library as other programs use it: examples/cpp, built against what `cmake --install` leaves, alone and beside a Python script."""

import gzip
import os
import pathlib
import re
import subprocess
import threading

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = pathlib.Path(__file__).with_name("fashion_script.py")
COMPILED = os.environ.get("CCACHE_DIR", str(pathlib.Path.home() / ".cache" / "ccache"))  # in the user's home, which tests do not have
PATIENCE_S = 180
SAMPLES = {"train": 384, "t10k": 64}


@pytest.fixture(scope="module")
def programs():
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("CCACHE_DIR", COMPILED)
        subprocess.run([ROOT / "tools" / "example_cpp"], check=True, timeout=600)
    return ROOT / "build" / "cpp"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The four files, of images in whose rows a class can be seen; those for the test are not packed."""
    place, random = tmp_path_factory.mktemp("data"), np.random.default_rng(1)
    for part, count in SAMPLES.items():
        labels = random.integers(0, 10, count).astype(np.uint8)
        images = random.integers(0, 100, (count, 28, 28)).astype(np.uint8)
        images[np.arange(count), 2 * labels + 4] += 150
        for name, array in (("images-idx3", images), ("labels-idx1", labels)):
            content = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape) + array.tobytes()
            packed = part == "train"
            (place / f"{part}-{name}-ubyte{'.gz' if packed else ''}").write_bytes(gzip.compress(content) if packed else content)
    return place


class Running:
    """A program whose lines are read as they come."""

    def __init__(self, *words, cwd):
        self.process = subprocess.Popen([str(word) for word in words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines, self.watchdog = [], threading.Timer(PATIENCE_S, self.process.kill)
        self.watchdog.start()

    def wait_for(self, pattern):
        for line in self.process.stdout:
            self.lines.append(line)
            if found := re.search(pattern, line):
                return found[1]
        raise AssertionError(f"ended before {pattern}:\n{''.join(self.lines)}")

    def end(self):
        self.lines += self.process.stdout
        status = self.process.wait()
        self.watchdog.cancel()
        return status, "".join(self.lines)


@pytest.fixture
def start(tmp_path):
    running = []
    yield lambda *words: running.append(Running(*words, cwd=tmp_path)) or running[-1]
    for each in running:
        each.process.kill()
        each.end()


def head(start, programs, arguments, *more):
    """A head that waits for two workers, and its token."""
    begun = start(programs / "fashion_cnn", "--listen", "127.0.0.1:0", "--set", "train.min_workers=2", *more, *arguments)
    return begun, begun.wait_for(r"or with: (\S+)")


def test_its_weights_are_those_of_a_plain_loop(programs, data, tmp_path):
    subprocess.run([programs / "compare", data, tmp_path / "run"], check=True, timeout=PATIENCE_S)


def test_a_machine_joins_with_the_code(start, programs, data):
    arguments = ["--data", data, "--epochs", 4, "--batch-size", 64]
    begun = start(programs / "fashion_cnn", "--listen", "127.0.0.1:0", "--set", "train.min_workers=2", *arguments)
    invitation = begun.wait_for(r"join with: (\S+ \d{6})")
    status, text = start(programs / "fashion_cnn", "join", invitation, *arguments).end()
    assert status == 0, text
    status, text = begun.end()
    assert status == 0 and "24 steps" in text, text
    accuracies = [float(each) for each in re.findall(r"accuracy (\S+)", text)]
    assert len(accuracies) == 4 and accuracies[-1] > 0.3, text


def test_a_machine_with_other_arguments_is_told_the_heads(start, programs, data):
    _, token = head(start, programs, ["--data", data, "--samples", 64, "--batch-size", 64])
    status, text = start(programs / "fashion_cnn", "join", token, "--data", data, "--samples", 32, "--batch-size", 64).end()
    assert status == 1 and "--samples 64" in text and "--samples 32" in text, text


def test_a_python_script_of_the_model_joins(start, programs, data, motley_path):
    arguments = ["--data", data, "--epochs", 2, "--batch-size", 64]
    begun, token = head(start, programs, arguments)
    status, text = start(motley_path, "join", token, SCRIPT, "--", *arguments).end()
    assert status == 0, text
    status, text = begun.end()
    assert status == 0 and "12 steps" in text, text


def test_a_program_joins_the_run_of_a_python_script(start, programs, data, motley_path, tmp_path):
    arguments = ["--data", data, "--epochs", 2, "--batch-size", 64]
    begun = start(motley_path, "train", SCRIPT, "--listen", "127.0.0.1:0", "--set", "train.min_workers=2", "--token-file", "token",
                  "--json", "--", *arguments)
    begun.wait_for(r'"event":"(run)"')
    status, text = start(programs / "fashion_cnn", "join", (tmp_path / "token").read_text().strip(), *arguments).end()
    assert status == 0, text
    status, text = begun.end()
    assert status == 0, text
