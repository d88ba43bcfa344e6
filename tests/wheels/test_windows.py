"""The wheel for Windows under Wine, beside a Python for Windows, which `tools/wheels --emulate windows-x86_64` lays out."""

import json
import os
import pathlib
import shutil
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOME = ROOT / "build/wheels/windows-x86_64"
PYTHON = HOME / "python/python.exe"
SECONDS = 120
# Pythons that are made to be unpacked beside a program look at no variable of the environment.
MODULE = "import runpy, sys; sys.path.insert(0, {site!r}); sys.argv[0] = 'motley'; runpy.run_module('motley', run_name='__main__')"
WINE = {"WINEPREFIX": str(HOME / "wine"), "WINEDEBUG": "-all"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the wheel's files, which Windows' own pip has put there, and how many seconds that took."""
    if shutil.which("wine") is None or not PYTHON.exists():
        pytest.skip(f"there is no Wine here, or no Python for Windows at {PYTHON}")
    wheel, = (ROOT / "build/wheels/dist").glob("motley-*-cp312-abi3-win_amd64.whl")
    pip, = (PYTHON.parent / "Lib/ensurepip/_bundled").glob("pip-*.whl")
    site = tmp_path_factory.mktemp("site")

    def run(*words):
        done = subprocess.run(["wine", PYTHON, *words], env=os.environ | WINE, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    run("-c", "")  # makes Wine's own folders
    began = time.monotonic()
    run(f"Z:{pip}/pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--target", f"Z:{site}", f"Z:{wheel}")
    return site, time.monotonic() - began


@pytest.fixture(scope="module")
def words(installed):
    """Of a command line, before those of motley."""
    return ["wine", str(PYTHON), "-c", MODULE.format(site="Z:" + str(installed[0]))]


@pytest.fixture
def start(words, tmp_path):
    """Starts `motley`; what is still running in the end is ended."""
    started = []

    def begin(*arguments):
        environment = os.environ | WINE
        # Not a file: Wine makes no standard stream for Windows' Python of one.
        process = subprocess.Popen([*words, *arguments], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def said(process):
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, out + err
    return [json.loads(line) for line in out.splitlines()]


def test_tells_its_version_and_looks_at_the_machine(start, installed, record_property):
    record_property("seconds", {"install": round(installed[1], 1)})
    out, err = start("--version").communicate(timeout=SECONDS)
    assert out.startswith("motley "), err
    devices, _ = start("devices").communicate(timeout=SECONDS)
    assert devices.startswith("cpu ")
    assert said(start("doctor", "--json"))


def test_head_and_joiner_share_a_run(start, tmp_path):
    head = start("train", "softmax", "--json", "--run", "run", "--listen", "127.0.0.1:0", "--set", "train.steps=40",
                 "--set", "train.min_workers=2", "--set", "train.shares=[1,1]")
    events = [json.loads(head.stdout.readline())]
    joiner = start("join", events[0]["join"], "--name", "joiner")
    events += said(head)
    out, err = joiner.communicate(timeout=SECONDS)
    assert joiner.returncode == 0, out + err
    assert any(event["event"] == "worker" and event["worker"] == "joiner/cpu" and event["change"] == "joined" for event in events)
    assert events[-1]["event"] == "done" and events[-1]["steps"] == 40
    audit = said(start("audit", "run", "--json"))[-1]
    assert audit["missing"] == 0 and audit["duplicate"] == 0
    assert "motley join motley1." in start("invite", "--once", "--run", "run").communicate(timeout=SECONDS)[0]


SUPERVISES = """
import subprocess, sys
from motley import _core
from motley._content._locks import hold
from motley._machines import _processes, _system
import pathlib
waits = [sys.executable, "-c", "import threading; threading.Event().wait()"]
for end in ("interrupt", "kill"):
    process = _processes.Supervised(lambda again: waits, None, own_group=True)
    while process.pid is None:
        pass
    getattr(process, end)()
    print(end, process.wait(60), process.status != 0)
tree = subprocess.Popen(waits, **_system.new_group(True))
_system.kill(tree.pid, with_group=True)
print("tree", tree.wait(60) != 0)
first = hold(pathlib.Path("lock"))
print("lock", first is not None, subprocess.run([sys.executable, "-c", sys.argv[1]], capture_output=True, text=True).stdout.strip())
name, memory, processors = _core.machine()
print("machine", bool(name) and name != "processor", memory > 1 << 26, processors >= 1)
"""
HOLDS = ("import sys; sys.path.insert(0, {site!r}); import pathlib; from motley._content import _locks; "
         "print(_locks.hold(pathlib.Path('lock')))")


def test_processes_are_supervised(words, tmp_path):
    site = words[-1].split("insert(0, ")[1].split(")")[0].strip("'")
    code = f"import sys; sys.path.insert(0, {site!r})\n{SUPERVISES}"
    environment = os.environ | WINE
    done = subprocess.run([*words[:2], "-c", code, HOLDS.format(site=site)], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.stdout.splitlines() == ["interrupt True True", "kill True True", "tree True", "lock True None", "machine True True True"], \
        done.stderr
