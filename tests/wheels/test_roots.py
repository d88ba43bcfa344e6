"""The wheels on systems of their own, without a compiler: folders of build/wheels/roots, each a root as debootstrap makes it, with
python3 and python3-venv:

  debootstrap --variant=minbase --include=python3,python3-venv bookworm build/wheels/roots/debian-12

Needs root, to change into them. Each notes how long it took from `pip install` to what a joiner computed.
"""

import json
import os
import pathlib
import platform
import shutil
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIST = ROOT / "build/wheels/dist"
SYSTEMS = sorted(path.parent.parent for path in (ROOT / "build/wheels/roots").glob("*/bin/sh"))
SECONDS = 180
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: chroot")


@pytest.fixture(scope="module", params=SYSTEMS or [None], ids=lambda path: path.name if path else "none")
def system(request):
    if request.param is None:
        pytest.skip("there is no root in build/wheels/roots")
    home = request.param / "motley-test"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    for wheel in DIST.glob(f"motley-*-manylinux_2_28_{platform.machine()}.whl"):
        shutil.copy(wheel, home)
    subprocess.run(["mount", "--bind", "/dev", request.param / "dev"], check=True)
    subprocess.run(["mount", "-t", "proc", "proc", request.param / "proc"], check=True)
    try:
        yield request.param
    finally:
        subprocess.run(["umount", request.param / "dev", request.param / "proc"], check=True)
        shutil.rmtree(home, ignore_errors=True)


def start(system, *words):
    inside = ["/usr/bin/env", "-i", "HOME=/motley-test", "PATH=/usr/bin:/bin", "sh", "-c", 'cd /motley-test && exec "$@"', "sh", *words]
    command = ["chroot", system, *inside]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def said(process):
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, err
    return out


def test_from_install_to_the_joiners_first_share(system, record_property):
    for tool in ("cc", "gcc", "g++", "clang"):
        assert not shutil.which(tool, path=f"{system}/usr/bin"), "a system without a compiler was wanted"
    said(start(system, "python3", "-m", "venv", "venv"))
    version = said(start(system, "python3", "-c", "import sys; print('cp%d%d' % sys.version_info[:2])")).strip()
    wheel, = (system / "motley-test").glob(f"*-{version if version in ('cp310', 'cp311') else 'cp312'}-*.whl")
    began = time.monotonic()
    said(start(system, "venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", wheel.name))
    installed = time.monotonic()
    checks = [json.loads(line) for line in said(start(system, "venv/bin/motley", "doctor", "--json")).splitlines()]
    assert {"torch", "network", "disk"} <= {check["subject"] for check in checks}
    settings = [word for key in ("train.min_workers=2", "train.shares=[1,1]", "train.steps=200") for word in ("--set", key)]
    words = ["train", "softmax", *settings, "--run", "run", "--listen", "127.0.0.1:0", "--token-file", "token", "--json"]
    head = start(system, "venv/bin/motley", *words)
    joiner = start(system, "venv/bin/motley", "join", "--token-file", "token", "--name", "other", "--json")
    first, shares = None, 0
    for line in head.stdout:
        event = json.loads(line)
        if event["event"] == "step" and any(part["worker"] == "other/cpu" and part["samples"] for part in event["workers"]):
            first, shares = first or time.monotonic(), shares + 1
    said(head)
    said(joiner)
    assert shares > 0
    audit = json.loads(said(start(system, "venv/bin/motley", "audit", "run", "--json")).splitlines()[-1])
    assert audit["missing"] == 0 and audit["duplicate"] == 0
    record_property("seconds", {"install": round(installed - began, 1), "first share": round(first - began, 1)})
