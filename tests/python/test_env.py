"""What a machine says of itself for a report of a fault, where it keeps what it can have again, and a run that is only tried."""

import json
import os
import platform
import socket
import subprocess
import sys

import pytest
import torch

from conftest import COMMAND, SCRIPTS
from motley._machines import _cache, _devices
from program import arguments, settings

PLACES = ("MOTLEY_CACHE", "XDG_CACHE_HOME")
SHORT = [*arguments(samples=2000, features=16, classes=4, test=0), *settings(train_steps=20)]
SCRIPT = str(SCRIPTS / "train_case.py")


@pytest.fixture
def person(tmp_path, monkeypatch):
    """Somebody whose name must not be told."""
    home = tmp_path / "home" / "agatha-secret"
    home.mkdir(parents=True)
    for name, value in {"HOME": str(home), "USER": "agatha-secret", "LOGNAME": "agatha-secret", "OMP_NUM_THREADS": "agatha-secret",
                        "MKL_NUM_THREADS": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home)
    return home


def test_env_says_versions_and_devices_and_nothing_of_the_person(person):
    shown = subprocess.run([COMMAND, "env"], capture_output=True, text=True, check=True).stdout
    done = subprocess.run([COMMAND, "env", "--json"], capture_output=True, text=True, check=True).stdout
    found = json.loads(done)
    assert found.pop("event") == "env"
    assert found["python"] == platform.python_version() and found["torch"].startswith(torch.__version__)
    assert {"motley", "system", "wsl", "processor", "memory", "threads", "cuda", "mps", "driver", "device cpu"} <= found.keys()
    assert "MKL_NUM_THREADS=1" in found["threads"] and platform.machine() in found["system"]
    assert all(found.values()) and len(shown.splitlines()) <= 30
    for line in shown.splitlines():
        name, _, text = line.partition("  ")
        assert name in found and text.strip(), line
    own = [address for _, _, _, _, (address, *_) in socket.getaddrinfo(socket.gethostname(), None)]
    for secret in ("agatha-secret", str(person), socket.gethostname(), *own):
        assert secret not in shown + done, secret
    assert sys.prefix not in shown + done


def test_a_gpu_of_a_mac_is_told_with_its_system_and_torch(monkeypatch):
    """What it computes depends on both, and whoever reads of a difference reads of it."""
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    processor, _, _ = _devices._core.machine()
    (description,) = [description for name, description, *_ in _devices.devices() if name == "mps"]
    assert description == f"{processor} GPU, {_devices._core.system()}, torch {torch.__version__.partition('+')[0]}"


def kept_in(directory):
    return (directory / "key.pem").is_file()


def test_the_cache_is_where_the_user_says(motley, tmp_path):
    """By the core, in the order of the variables; what is relative is ignored of XDG_CACHE_HOME, as its specification has it."""
    own, shared, home = (tmp_path / name for name in ("own", "shared", "home"))
    for number, (variables, place) in enumerate([
            ({"MOTLEY_CACHE": own, "XDG_CACHE_HOME": shared}, own), ({"XDG_CACHE_HOME": shared}, shared / "motley"),
            ({"MOTLEY_CACHE": "", "XDG_CACHE_HOME": "shared"}, home / ".cache/motley"), ({}, home / ".cache/motley"),
            ({"MOTLEY_CACHE": "beside"}, tmp_path / "beside")]):
        words = ["env", f"HOME={home}", *(f"{name}={value}" for name, value in variables.items())]
        before = {each for each in (own, shared / "motley", home / ".cache/motley", tmp_path / "beside") if kept_in(each)}
        program = motley.run("train", "softmax", "--run", f"run-{number}", "--listen", "127.0.0.1:0", "--token-file", f"token-{number}",
                             *SHORT, prefix=words)
        assert program.process.returncode == 0, program.story()
        other = motley.fails("join", f"run-{number}/nothing", prefix=words)
        assert other["code"] == "usage"
        assert (place / "speeds.json").is_file() or kept_in(place), list(tmp_path.rglob("*.json"))
        assert {each for each in (own, shared / "motley", home / ".cache/motley", tmp_path / "beside") if kept_in(each)} >= before


@pytest.mark.parametrize("variables, place", [
    ({"MOTLEY_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, "/a"), ({"XDG_CACHE_HOME": "/b"}, "/b/motley"),
    ({"MOTLEY_CACHE": "", "XDG_CACHE_HOME": "b"}, "/h/.cache/motley"), ({}, "/h/.cache/motley")])
def test_python_has_the_same_cache(monkeypatch, variables, place):
    for name in PLACES:
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/h", **variables}.items():
        monkeypatch.setenv(name, value)
    assert str(_cache.directory()) == place


def test_a_relative_cache_stays_where_the_program_began(tmp_path):
    code = "import os, motley; os.chdir('/'); from motley._machines import _cache; print(_cache.directory())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path,
                          env={**os.environ, "MOTLEY_CACHE": "here"})
    assert done.stdout.strip() == str(tmp_path / "here")


@pytest.mark.parametrize("words", [["softmax", *SHORT], [SCRIPT, "groups"]])
def test_a_dry_run_is_a_plan(motley, words):
    """The usual words and one more: nothing is trained, and no directory of a run is made."""
    program = motley.run("train", "--dry-run", "--run", "run", "--listen", "127.0.0.1:0", "--device", "cpu", "--threads", "1", *words)
    assert program.process.returncode == 0, program.story()
    assert program.named("plan") and not program.named("done")
    assert not (motley.directory / "run").exists() and not (motley.directory / "runs").exists()


def test_a_dry_run_is_of_a_new_run_here(motley):
    assert "--resume" in motley.fails("train", "--dry-run", "--resume", "--run", "run")["message"]
    assert "--dry-run has no place" in motley.fails("train", "--on", "ray", "--dry-run", "softmax")["message"]


def test_a_scripts_own_dry_run_stands_behind(motley):
    (motley.directory / "says.py").write_text("import sys; print('own words', sys.argv[1:], file=sys.stderr)\n")
    program = motley.run("train", "says.py", "--", "--dry-run")
    assert any(line.startswith("own words ['--dry-run'") for line in program.text), program.story()
