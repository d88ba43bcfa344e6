"""Who works for a run keeps its machine awake, as long as it lives and unless told not to."""

import os
import pathlib
import select
import sys

import pytest

from program import PATIENCE_S, arguments, settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the tool of Linux")

WORKS = ["softmax", *arguments(samples=2000, features=16, classes=4, test=0), *settings(train_steps=100000)]
HEAD = ["--run", "run", "--device", "none", "--listen", "127.0.0.1:0", "--token-file", "token"]


@pytest.fixture
def told(tmp_path, monkeypatch):
    """A named pipe to which a systemd-inhibit of the test's own tells its words; open as long as that runs."""
    # What a joiner starts may write to its cache alone.
    pipe, tool = tmp_path / "home" / ".cache" / "motley" / "told", tmp_path / "bin" / "systemd-inhibit"
    pipe.parent.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    os.mkfifo(pipe)
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec 3>"{pipe}"\necho "$@" >&3\nexec cat >&2\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    return pipe


def opened(pipe):
    """To read what the tool tells, once it has begun."""
    handle = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    assert poll.poll(PATIENCE_S * 1000), "the tool does not begin"
    os.set_blocking(handle, True)
    return open(handle)


def children(pid):
    return [child for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]


@pytest.mark.parametrize("how", ["interrupt", "kill"])
def test_a_head_keeps_its_machine_awake(motley, told, how):
    head = motley.start("train", *WORKS, *HEAD)
    with opened(told) as tool:
        assert tool.readline() == "--what=idle:sleep --who=motley --why=a model is being trained --mode=block cat\n"
        head.wait_event("run")
        getattr(head, how)()
        assert tool.read() == ""  # it has ended


def test_a_joiner_keeps_its_machine_awake(motley, told):
    head = motley.start("train", *WORKS, *HEAD, "--no-keep-awake")
    joiner = motley.start("join", "--token-file", "token")
    with opened(told) as tool:
        assert "--why=this machine helps to train a model" in tool.readline()
        head.wait_step(1)
        assert children(head.pid) == []
        joiner.interrupt()
        assert tool.read() == ""
        assert joiner.end() in (0, 130), joiner.story()


def test_a_plan_does_not(motley, told):
    plan = motley.start("plan", *WORKS, "--device", "none", "--listen", "127.0.0.1:0")
    plan.wait_event("run")
    assert children(plan.pid) == []
    plan.kill()
