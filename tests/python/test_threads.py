"""What a run does to the threads, the memory and the sockets of the process that it shares with a script."""

import json
import os
import subprocess
import sys

import pytest
from conftest import SCRIPTS, train

GLIBC = sys.platform == "linux"

ONE_HEAP = """
import motley
import ctypes, threading

OF_ANOTHER_HEAP = 4  # a bit of what stands before each piece of memory
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
found = []

def allocate():
    place = libc.malloc(ctypes.c_size_t(100_000))
    found.append(ctypes.c_size_t.from_address(place - ctypes.sizeof(ctypes.c_size_t)).value & OF_ANOTHER_HEAP)

threads = [threading.Thread(target=allocate) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(found)
"""


@pytest.mark.skipif(not GLIBC, reason="needs glibc")
def test_all_threads_use_the_heap_that_keeps_what_is_freed(tmp_path):
    said = subprocess.run([sys.executable, "-c", ONE_HEAP], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert json.loads(said) == [0, 0, 0]


@pytest.mark.skipif(not GLIBC, reason="needs libgomp")
def test_threads_of_a_scripts_own_kernels_do_not_wait_beside_the_run(motley):
    program = train(motley, "own_kernels.py")
    counts = [json.loads(line.removeprefix("threads ")) for line in program.text if line.startswith("threads ")]
    assert len(counts) == 3 and all(before + 1 == after for before, after in counts), counts
    assert len({before for before, _ in counts}) == 1, counts


def test_python_runs_on_while_the_core_waits_for_others(motley):
    """The head waits for a second worker, the first worker for work, and threads of their scripts go on: nobody keeps Python's lock."""
    script, scripts = str(SCRIPTS / "beside.py"), {}
    for name in ("head", "other"):
        os.mkfifo(motley.directory / name)
    scripts["head"] = motley.start("train", script, "--run", "run", "--listen", "127.0.0.1:0", "--device", "none", "--token-file", "token",
                                   "--set", "train.min_workers=2", "./head")
    scripts["other"] = motley.start("join", "--token-file", "token", script, "--threads", "1", "--name", "other", "./other")
    scripts["head"].wait_event("worker", worker="other/cpu", change="joined")
    for name, program in scripts.items():
        (motley.directory / name).write_text(f"says {name}\n")
        program.wait_text(f"says {name}")
    assert not scripts["head"].named("step")


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is forked there")
def test_a_process_that_is_forked_has_none_of_the_runs_sockets(motley, tmp_path):
    """It would hold the head's port open, and its connections, when that has ended."""
    train(motley, "sockets.py")
    assert int((tmp_path / "script.txt").read_text()) > 0
    assert int((tmp_path / "child.txt").read_text()) == 0
