"""`motley invite`, by a program called ssh that runs the command on this machine, each host in a directory of its own."""

import os
import signal

import pytest
from processes import await_end, command_lines, having
from program import arguments, settings

from motley import _command

SSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do [ "$1" = -o ] && shift; shift; done
[ "$1" != me@nowhere ] || { echo "ssh: no route" >&2; exit 255; }
cd "$0-home" && exec sh -c "$2"
"""
ENDLESS = ["softmax", *arguments(samples=20000, features=256, classes=20, test=0, lr=0.02),
           *settings(train_global_batch=2048, train_epochs=100000, train_shares=[1])]


@pytest.fixture
def invite(motley):
    """Starts `motley invite` with that ssh on its PATH."""
    program = motley.directory / "bin" / "ssh"
    (motley.directory / "bin" / "ssh-home" / "work").mkdir(parents=True)
    program.write_text(SSH)
    program.chmod(0o755)

    def start(*words):
        path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
        return motley.start("invite", *words, "--program", motley.path, prefix=["env", f"PATH={path}"])

    return start


def start(motley, *words):
    head = motley.start("train", *words, "--run", "runs/it", "--listen", "127.0.0.1:0", "--device", "cpu")
    head.wait_event("run")
    return head


def test_hosts_join_and_leave(motley, invite):
    head = start(motley, *ENDLESS)
    (motley.directory / "hosts.txt").write_text("# who is there\n\nsecond --device cpu --threads 1  # slow\n")
    guests = invite("me@first", "-f", "hosts.txt", "--directory", "work")
    head.wait_share("first/cpu")
    head.wait_share("second/cpu")
    token = (motley.directory / "runs" / "it" / "token").read_text().strip()
    assert not [line for line in command_lines().values() if any(token in word for word in line)]
    left = having("join", "-", "--name", below=motley.directory)
    assert {os.readlink(f"/proc/{pid}/cwd") for pid in left} == {str(motley.directory / "bin" / "ssh-home" / "work")}
    guests.stop()
    for name in ("first", "second"):
        head.wait_event("worker", worker=f"{name}/cpu", change="left")
    await_end(left)
    head.stop()


def test_who_loses_the_connection_leaves(motley, invite):
    head = start(motley, *ENDLESS)
    guests = invite("first")
    head.wait_share("first/cpu")
    os.kill(guests.pid, signal.SIGKILL)
    head.wait_event("worker", worker="first/cpu", change="left")
    head.stop()


def test_the_end_of_the_run_is_the_end_of_the_visit(motley, invite):
    head = start(motley, *ENDLESS, *settings(train_min_workers=2, train_steps=40))
    guests = invite("--run", "runs/it", "me@first")
    assert head.end() == 0 and guests.end() == 0, guests.story()


def test_who_cannot_be_reached_is_named(motley, invite):
    head = start(motley, *ENDLESS)
    guests = invite("me@nowhere")
    assert guests.end() == 1
    assert any("nowhere: could not be reached" in line for line in guests.text), guests.story()
    head.stop()


@pytest.mark.parametrize("words, said", [(["first"], "there is no run with a token"), ([], "invite whom?"),
                                         (["-f", "nothing.txt"], "nothing.txt")])
def test_nobody_can_be_invited(invite, words, said):
    guests = invite(*words)
    assert guests.end() == 2 and said in guests.error()["message"]


def test_its_help_names_what_goes_without_ssh_too(capsys):
    with pytest.raises(SystemExit):
        _command.main(["invite", "--help"])
    shown = capsys.readouterr().out
    assert all(flag in shown for flag in ("HOST", "--once", "--pair", "--expires"))
