#!/usr/bin/env python3
"""How much memory a head takes beyond that of a quiet one, while machines that mean it ill are there.

A head that trains with one good worker on the same machine, in plain text; then, with a head of its own each: nobody else; members that
join and answer nothing more; members that send messages of 7 to 8 MiB as fast as they are taken; members that read nothing; strangers
without the token, in hundreds at a time, half of which send as much as nobody may; 256 members, as many as a run has; 255 that hold all
places of the run and say nothing, and then somebody who works: `in_after_s` is how long it takes until that one is in.
The growth is that of the highest point (VmHWM, set back when the head is quiet). The run must go on meanwhile, and end at Ctrl-C. One
JSON object a line on standard output, a table on standard error. Linux.

  bench/head_memory.py [--only NAME ...] [--members 64] [--seconds 10]
"""

import argparse
import contextlib
import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import time

import measure

sys.path.insert(0, str(measure.ROOT / "tests/e2e"))
import crowd  # noqa: E402
import liar  # noqa: E402
import wire  # noqa: E402

FEATURES, CLASSES, BATCH = 1024, 256, 64
QUIET_STEPS = 100
STRANGERS, AT_ONCE = 1000, 250
MEMBERS_MAX = 255  # beside the good worker
PATIENCE_S, INTERRUPT_S = 120, 5
NOBODY_MAY = (64 << 10) + 1  # before the proof
NAMES = ("nobody", "silent", "flooding", "never reading", "strangers", "256 members", "full house")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: build/motley)")
    parser.add_argument("--only", action="append", choices=NAMES)
    parser.add_argument("--members", type=int, default=64, help="of those that are silent, flood, or do not read")
    parser.add_argument("--seconds", type=float, default=10, help="that they go on once they have joined")
    return parser.parse_args()


class Head:
    def __init__(self, args, scratch):
        directory = scratch.fresh("head")
        token = directory.with_suffix(".token")
        command = measure.train_command(args.motley, "softmax", directory, batch=BATCH, steps=10_000_000, threads=1, devices=("none",),
                                        words=("samples=4096", f"features={FEATURES}", f"classes={CLASSES}"))
        self.process = measure.start([*command, "--plaintext", "--token-file", str(token)], directory)[0]
        self._events = pathlib.Path(f"{directory}.out")
        self.token_file = token
        self._wait(token.exists)
        join = [args.motley, "join", "--json", "--token-file", str(token), "--device", "cpu", "--threads", "1", "--name", "good"]
        self.worker = measure.start(join, scratch.fresh("good"))[0]
        self._wait(lambda: self.steps() >= QUIET_STEPS)
        self.token = wire.parse_token(token.read_text())
        liar.learn_data(self.token, FEATURES, CLASSES)
        self.quiet = self._kib("VmRSS")
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    @staticmethod
    def _wait(holds):
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > deadline:
                raise measure.Failed(f"waited {PATIENCE_S} s in vain for the head")
            time.sleep(0.1)

    def _kib(self, what):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{what}:"))

    def growth_mib(self):
        return round((self._kib("VmHWM") - self.quiet) / 1024, 1)

    def events(self):
        with open(self._events) as lines:
            return [json.loads(line) for line in lines if line.endswith("\n")]

    def steps(self):
        return sum(event["event"] == "step" for event in self.events())

    def fate_of_good(self):
        """What became of the good worker, in the end."""
        return [event["change"] for event in self.events() if event["event"] == "worker" and event["worker"] == "good/cpu"][-1]

    def end(self):
        """Seconds until it has ended at Ctrl-C. A step that is half applied has to be finished: if nobody is left who could, the head
        says so, and asks for another Ctrl-C."""
        began = time.monotonic()
        for patience in (INTERRUPT_S, PATIENCE_S):
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)
                return round(time.monotonic() - began, 2)
        raise measure.Failed(f"the head did not end within {PATIENCE_S} s of the second Ctrl-C")


def members(args, head, size, **manner):
    """So many join; then they go on for a while."""
    with crowd.Crowd(head.token, size, features=FEATURES, classes=CLASSES, **manner) as all_of_them:
        all_of_them.join(PATIENCE_S)
        until = time.monotonic() + args.seconds
        while time.monotonic() < until:
            all_of_them.attend()
        return {"members": size, "joined": all_of_them.joined(), "still_there": all_of_them.here(), "sent_away": all_of_them.byes()}


def flood():
    """A Ready of 7 to 8 MiB, as long as its layout may be."""
    entries = 65000 * wire.layout_entry(100 * "n", (CLASSES, FEATURES))
    assert 7 << 20 < len(entries) < 8 << 20
    return entries


def strangers(head):
    """From other addresses than the members', since the limits are by address."""
    came = 0
    while came < STRANGERS:
        peers = []
        for number in range(AT_ONCE):
            address = (head.token["addresses"][0], head.token["port"])
            peer = socket.create_connection(address, PATIENCE_S, (f"127.0.1.{number % 250 + 1}", 0))
            peers.append(peer)
            if number % 2:
                peer.setblocking(False)
                with contextlib.suppress(OSError):
                    peer.send(os.urandom(NOBODY_MAY))
        came += len(peers)
        for peer in peers:
            peer.setblocking(True)
            with contextlib.suppress(OSError):
                while peer.recv(65536):
                    pass
            peer.close()
    return {"strangers": came}


def full_house(args, head, scratch):
    """They prove that they have the token, and say nothing more."""
    holders = []
    for number in range(MEMBERS_MAX):
        address = (head.token["addresses"][0], head.token["port"])
        peer = socket.create_connection(address, PATIENCE_S, (f"127.0.{2 + number // 250}.{1 + number % 250}", 0))
        peer.sendall(wire.hello(head.token, name=f"idle{number}/cpu") + wire.proof(head.token))
        peer.recv(1)  # it is in
        holders.append(peer)
    began = time.monotonic()
    join = [args.motley, "join", "--json", "--token-file", str(head.token_file), "--device", "cpu", "--threads", "1", "--name", "late"]
    measure.start(join, scratch.fresh("late"))
    head._wait(lambda: any(event["event"] == "worker" and event["worker"] == "late/cpu" and event["change"] == "joined"
                           for event in head.events()))
    return {"members": len(holders), "in_after_s": round(time.monotonic() - began, 1)}


def measured(args, name, scratch):
    head = Head(args, scratch)
    before = head.steps()
    began = time.monotonic()
    if name == "nobody":
        time.sleep(args.seconds)
        about = {}
    elif name == "strangers":
        about = strangers(head)
    elif name == "256 members":
        about = members(args, head, MEMBERS_MAX)
    elif name == "full house":
        about = full_house(args, head, scratch)
    else:
        manner = {"silent": {"mute": True}, "flooding": {"flood": flood()}, "never reading": {"deaf": True}}[name]
        about = members(args, head, args.members, **manner)
    took = time.monotonic() - began
    steps = head.steps() - before
    result = {"what": name, "quiet_mib": round(head.quiet / 1024, 1), "growth_mib": head.growth_mib(), **about,
              "steps_meanwhile": steps, "good_worker": head.fate_of_good(), "seconds": round(took, 1), "ends_after_s": head.end()}
    measure.emit(bench="head_memory", **result)
    return result


def main():
    args = arguments()
    args.motley = measure.motley(args.motley)
    if sys.platform != "linux":
        measure.emit(bench="head_memory", skipped="needs Linux")
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(4096, hard)), hard))
    results = []
    for name in args.only or NAMES:
        with measure.Scratch() as scratch:
            results.append(measured(args, name, scratch))
    measure.emit(bench="head_memory", machine=measure.machine())
    columns = ["what", "quiet_mib", "growth_mib", "steps_meanwhile", "seconds", "ends_after_s"]
    measure.table(columns, [[result[key] for key in columns] for result in results])


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"head_memory: {failure}")
