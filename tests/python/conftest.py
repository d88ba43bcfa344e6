"""Tests of the Python package: scripts as people write them, run by the installed `motley`, beside plain PyTorch loops.

`make test` installs the package into build/python-env and runs these there. `--device cuda:0` trains most of them on a card
(with NVIDIA_TF32_OVERRIDE=0: the plain loops beside them compute on the processor).
"""

import itertools
import multiprocessing
import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCRIPTS = HERE / "scripts"
sys.path += [str(HERE.parent / "e2e"), str(SCRIPTS)]

from forks import Forks  # noqa: E402
from motley import _core  # noqa: E402
from program import Starter  # noqa: E402

# ray.init() leaves a token at home, with which the next `ray start --head` lets in nobody who does not bring it (Ray 2.60).
os.environ["RAY_AUTH_MODE"] = "disabled"

COMMAND = pathlib.Path(sys.executable).parent / "motley"
device = "cpu"  # that train() and the workers of the tests compute on


def equal(a, b):
    """Of two runs of the same: bit by bit, but on a card, whose kernels may add in any order."""
    return a == b if device == "cpu" else a == pytest.approx(b, rel=1e-5)


def pytest_addoption(parser):
    parser.addoption("--device", default=device, help="that scripts are trained on (default: %(default)s)")
    parser.addoption("--start-method", default="", help="of processes that multiprocessing starts: spawn, as on macOS and Windows")


def pytest_configure(config):
    global device
    device = config.getoption("--device")
    if method := config.getoption("--start-method"):
        multiprocessing.set_start_method(method, force=True)
        os.environ |= {"MOTLEY_TESTS_START_METHOD": method,
                       "PYTHONPATH": os.pathsep.join([str(HERE / "spawned"), *filter(None, [os.environ.get("PYTHONPATH")])])}


# What takes longest begins first, so that all processes are done at about the same time; half of these wait more than they compute.
LONG = ["test_ray", "test_siblings", "test_programs", "test_several", "test_parity", "test_short_memory", "test_ranks", "test_ray_lab"]


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """The workers run with one thread each, and kernels sum in another order with another number of threads."""
    import torch  # here, because it takes seconds, and the process that hands out the tests needs none

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def forks():
    """None where processes cannot be forked so: there every script begins from nothing."""
    if sys.platform != "linux":
        yield None
        return
    with Forks() as forks:
        yield forks


class ScriptStarter(Starter):
    """Scripts get a process that has torch already. Those that something else starts (mpirun, a lab, Ray) do not."""

    def __init__(self, path, directory, forks):
        super().__init__(path, directory)
        self._forks = forks

    def __exit__(self, raised, *more):
        super().__exit__(raised, *more)
        # Whatever a script does, and a test to its processes: that is its user's doing, and no bug.
        bugs = [event for program in self.programs for event in program.named("error", code="internal")]
        assert raised is not None or not bugs, bugs

    def open(self, command, preexec):
        variables = dict(word.split("=", 1) for word in itertools.takewhile(lambda word: "=" in word, command[1:]) if command[0] == "env")
        words = command[1 + len(variables):] if command[0] == "env" else command
        by_itself = words[0] == sys.executable and words[1].endswith(".py")
        wants_torch = ("join", "sample", "--resume", *_core.recipes)
        is_script = words[0] == str(COMMAND) and any(word.endswith((".py", ".pt")) or word in wants_torch for word in words)
        if self._forks is not None and (is_script or by_itself) and preexec is None:
            return self._forks.open(words[by_itself:], self.directory, **variables)
        return super().open(command, preexec)


@pytest.fixture
def motley(tmp_path, forks):
    """Starts the command in the test's own directory; whatever still runs when the test ends is killed."""
    if not COMMAND.is_file():
        pytest.exit(f"{COMMAND}: no command to test; pip install . into this environment", returncode=2)
    with ScriptStarter(str(COMMAND), tmp_path, forks) as starter:
        yield starter


def train(motley, script, *arguments, workers=1, run="run", options=()):
    """`motley train SCRIPT` with so many uneven workers in one process; it must end well."""
    words = ["train", str(SCRIPTS / script), "--run", run, "--listen", "127.0.0.1:0", "--threads", "1", *["--device", device] * workers]
    words += options
    if workers > 1:
        words += ["--set", f"train.min_workers={workers}", "--set", f"train.shares={[4, 2, 1][:workers]}", "--set", "train.verify=0"]
    program = motley.run(*words, *map(str, arguments))
    assert program.process.returncode == 0, program.story()
    return program
