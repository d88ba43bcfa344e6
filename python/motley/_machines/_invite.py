"""`motley invite`: other machines join a run of this one over ssh, without anybody going there."""

import argparse
import os
import pathlib
import shlex
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from motley._errors import Error

SSH = ["ssh", "-T", "-o", "ServerAliveInterval=15"]
HOSTS_MAX = 256  # the most workers of a run
UNREACHED = 255  # ssh's status where the trouble is its own
FOR_PEOPLE = """HOST is user@host, or a name of your ssh configuration, which also says how to prove who you are. The machine
has Motley, and the script and its data where they are here, seen from DIR. What stands behind a HOST in a file
is for `motley join` there, as in: laptop --share 0.5

Without a HOST nobody is asked over ssh:
  --once          print a token that lets in one machine and no other; with --expires TIME (90s, 30m, 12h, 7d) for so long
  --pair          print an address and a code of six digits, by which one machine joins in the next ten minutes"""
USAGE = """motley invite [options] HOST... [SCRIPT.py [arguments]]
       motley invite --once [--expires TIME] [--run DIR] [--json]
       motley invite --pair [--run DIR] [--json]"""

# The token comes on standard input, so that no list of processes shows it. The input stays open: when it ends, because this command
# ended or the connection did, the worker is asked to leave. (A shell's background process has no input of its own.)
REMOTE = ('cd {directory} || exit; read -r token; exec 3<&0; printf "%s\\n" "$token" | {command} & worker=$!; '
          '{{ cat <&3; kill "$worker"; }} >/dev/null 2>&1 & watch=$!; wait "$worker"; status=$?; kill "$watch"; exit "$status"')


@dataclass
class Guest:
    """A machine to invite. `words`: for its `motley join`."""

    host: str
    words: list[str]

    @property
    def name(self) -> str:
        return self.host.rpartition("@")[2]


def main(words: Sequence[str]) -> int:
    """`motley invite …`, without the first word; returns the exit status. Errors: nobody can be invited like this."""
    script = next((number for number, word in enumerate(words) if word.endswith(".py")), len(words))
    wanted = _parser().parse_args(words[:script])
    guests = [*(Guest(host, []) for host in wanted.host), *(guest for file in wanted.file for guest in read_hosts(file))]
    if not 0 < len(guests) <= HOSTS_MAX or any(guest.host.startswith("-") for guest in guests):
        raise Error(f"invite whom? expected 1 to {HOSTS_MAX} hosts, found {len(guests)}", "motley invite user@host", "usage")
    token = find_token(wanted.run)
    joiners = [(guest, _start(remote(guest, wanted.directory, wanted.program, words[script:]), guest)) for guest in guests]
    relays = [threading.Thread(target=_relay, args=(*joiner, sys.stderr if wanted.json else sys.stdout)) for joiner in joiners]
    for (_, process), relay in zip(joiners, relays):
        _tell(process, token)
        relay.start()
    try:
        statuses = [process.wait() for _, process in joiners]
    finally:
        for (_, process), relay in zip(joiners, relays):
            _hang_up(process)
            relay.join()
    return int(any(statuses))


def read_hosts(file: str) -> list[Guest]:
    """A host a line, and words for `motley join` there; # begins a comment. Errors: the file cannot be read."""
    try:
        lines = [shlex.split(line, comments=True) for line in pathlib.Path(file).read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise Error(f"-f {file}: {error}", "a line for each host: user@host", "input") from None
    return [Guest(line[0], line[1:]) for line in lines if line]


def find_token(run: str) -> str:
    """That of a run's directory; of the newest under runs/, where none is named. Errors: there is none."""
    found = [pathlib.Path(run, "token")] if run else sorted(pathlib.Path("runs").glob("*/token"), key=os.path.getmtime)
    try:
        return found[-1].read_text(encoding="utf-8").strip()
    except (OSError, IndexError):
        raise Error(f"{run or 'runs'}: there is no run with a token", "motley train first; motley invite --run DIR user@host",
                    "input") from None


def remote(guest: Guest, directory: str, program: str, script: Sequence[str]) -> str:
    """What the shell of the other machine is told."""
    name = [] if "--name" in guest.words else ["--name", guest.name]
    command = shlex.join([program, "join", "-", *name, *guest.words, *script])
    return "exec sh -c " + shlex.quote(REMOTE.format(directory=shlex.quote(directory), command=command))


def _start(command: str, guest: Guest) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen([*SSH, guest.host, command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        raise Error(f"ssh cannot be started: {error}", "install OpenSSH's client", "io") from None


def _tell(process: subprocess.Popen[bytes], token: str) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(f"{token}\n".encode())
        process.stdin.flush()
    except BrokenPipeError:
        pass  # it ended already, which shows elsewhere


def _relay(guest: Guest, process: subprocess.Popen[bytes], to: TextIO) -> None:
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            print(f"{guest.name}: {line.decode('utf-8', 'replace').rstrip()}", file=to, flush=True)
    if (status := process.wait()) != 0:
        print(f"{guest.name}: {'could not be reached' if status == UNREACHED else f'ended with status {status}'}", file=to, flush=True)


def _hang_up(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    try:
        process.stdin.close()
    except BrokenPipeError:
        pass


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="motley invite", usage=USAGE, description="Other machines join a run of this one, over ssh.",
                                     epilog=FOR_PEOPLE, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("host", nargs="*", metavar="HOST", help="whom to invite")
    parser.add_argument("-f", "--file", action="append", default=[], metavar="HOSTS.txt", help="with a HOST a line; may be repeated")
    parser.add_argument("--run", default="", metavar="DIR", help="of the run (default: the newest in runs/)")
    parser.add_argument("--directory", default=".", metavar="DIR", help="where to work there (default: where ssh begins)")
    parser.add_argument("--program", default="motley", metavar="PATH", help="of motley there (default: the one that ssh finds)")
    parser.add_argument("--json", action="store_true", help="errors as JSON events; what the machines say goes to standard error")
    return parser
