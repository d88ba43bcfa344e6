#!/usr/bin/env python3
"""A machine with an empty disk joins a script whose data are on the head alone (motley.files), on hosts of the lab (Linux, root).

`idle`: the head waits for that machine before its first step, and it for all of the data; nothing else is on the link. `cable`: likewise,
and the cable is out for three seconds in the middle. `beside`: the head and another worker train; a machine comes and fetches, is killed
after a while, and comes again with an empty disk; steps while it fetches are compared with the steps before and after (the median of the
turns, and the steps of all turns together). The last one stays until it computes.

share = (bytes of the set * 8 / seconds of the fetch) / rate of the link. One JSON object a phase on standard output, a table on standard
error.

  bench/lab_data.py [--megabytes 1000] [--rate 1gbit] [--turns 4] [--phase idle|cable|beside]
"""

import argparse
import functools
import json
import os
import pathlib
import signal
import sys
import time

import measure
from lab import lab, laboratory, on, ready

# The head, another worker, the machine that joins.
ALONE = {"one": 0.9, "three": 0.9}
BESIDE = {"one": 0.6, "two": 0.4, "three": 0.6}
SHARDS = 16
IMAGE_BYTES = 3 * 32 * 32  # as in lab_data_script.py
TIMEOUT_S = 240
RATES = {"gbit": 1e9, "mbit": 1e6}
WARM_UP_S, SETTLE_S, GLANCE_S = 12, 2, 0.01
REST_STEPS = 60


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: build/motley)")
    parser.add_argument("--megabytes", type=int, default=1000, help="of the set")
    parser.add_argument("--rate", default="1gbit", help="of each link, in both directions")
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=7, help="of fetching, and of rest, in a turn")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--width", type=int, default=16, help="of the model")
    parser.add_argument("--phase", action="append", choices=PHASES, help="repeatable (default: all)")
    return parser.parse_args()


def write_set(place, size):
    """Equal shards of whole images; their bytes in all."""
    place.mkdir()
    each = size // SHARDS // IMAGE_BYTES * IMAGE_BYTES
    for number in range(SHARDS):
        (place / f"shard-{number:02}.bin").write_bytes(os.urandom(each))
        os.utime(place / f"shard-{number:02}.bin", (1_500_000_000, 1_500_000_000))
    return each * SHARDS


class Watched:
    """A program, its events and lines with the seconds at which they were seen."""

    def __init__(self, command, directory, home, **variables):
        home.mkdir(exist_ok=True)
        self.began = time.monotonic()
        settings = [f"{name}={value}" for name, value in {"HOME": home, **variables}.items()]
        self.started = measure.start(["env", *settings, *map(str, command)], directory)
        self._paths = [pathlib.Path(f"{directory}.out"), pathlib.Path(f"{directory}.err")]
        self._read = [0, 0]
        self.events, self.lines = [], []

    def look(self):
        for number, (path, into) in enumerate(zip(self._paths, (self.events, self.lines))):
            text = path.read_bytes()[self._read[number]:]
            whole = text[:text.rfind(b"\n") + 1]
            self._read[number] += len(whole)
            for line in whole.decode(errors="replace").splitlines():
                if number or line.startswith("{"):
                    into.append((time.monotonic(), line if number else json.loads(line)))

    def check(self):
        if self.started[0].poll():
            self.look()
            raise measure.Failed(f"a program ended: {self.lines[-20:]}")

    def until(self, what, found, *others):
        """Seconds at which `found` first held of an event or a line."""
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            self.look()
            for each in others:
                each.look()
                each.check()
            for at, each in [*self.events, *self.lines]:
                if found(each):
                    return at
            if self.started[0].poll() is not None:
                break
            time.sleep(GLANCE_S)
        raise measure.Failed(f"{what} did not happen: {self.lines[-20:]}")

    def received(self):
        """Bytes, by the interface of its host."""
        lines = pathlib.Path(f"/proc/{self.started[0].pid}/net/dev").read_text().splitlines()
        return next((int(line.split()[1]) for line in lines if line.strip().startswith("eth0:")), 0)

    def watch(self, seconds, ends=lambda: False):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not ends():
            self.look()
            time.sleep(GLANCE_S)
        self.look()

    def stop(self, number=signal.SIGKILL):
        # `lab exec` becomes the program: a signal to it is one to the program.
        self.started[0].send_signal(number)
        self.started[0].wait()

    def steps(self, first, last):
        return [event for at, event in self.events if event.get("event") == "step" and first + event["seconds"] <= at <= last]


def head_of(args, scratch, place, workers, steps):
    directory = scratch.fresh("head")
    token = directory.with_suffix(".token")
    script = [measure.ROOT / "bench/lab_data_script.py", args.batch, steps, args.width]
    command = [args.motley, "train", script[0], "--json", "--run", directory, "--listen", "0.0.0.0:7117", "--threads", 1, "--device", "cpu",
               "--name", "one", "--token-file", token, "--set", f"train.min_workers={workers}", "--set", "train.verify=0",
               *script[1:]]
    head = Watched(on("one", command), directory, scratch.path / "home-one", PLACE=place)

    def join(host, there):
        join = [args.motley, "join", "--json", "--token-file", token, "--device", "cpu", "--threads", 1, "--name", host, *script]
        return Watched(on(host, join), scratch.fresh(f"join-{host}"), scratch.fresh("home"), PLACE=there)

    head.until("the head's run", lambda each: isinstance(each, dict) and each.get("event") == "run")
    return head, join


def is_first_share_of(host):
    def holds(each):
        return isinstance(each, dict) and each.get("event") == "step" and any(
            part["worker"].startswith(host) and part["samples"] for part in each["workers"])
    return holds


def fetch_alone(args, scratch, place, size, rate, cable):
    head, join = head_of(args, scratch, place, 2, REST_STEPS)
    joiner = join("three", scratch.path / "nowhere")
    began = joiner.until("a fetch", lambda each: isinstance(each, str) and each.startswith("fetching"))
    out, before = 0.0, joiner.received()
    if cable:
        while joiner.received() - before < size / 2:
            time.sleep(GLANCE_S)
        lab("cut", "three")
        time.sleep(3)
        lab("mend", "three")
        out = 3.0
    ended = joiner.until("the set", lambda each: isinstance(each, str) and " is here: " in each)
    bytes_in = joiner.received() - before
    lease = head.until("a lease", is_first_share_of("three"), joiner)
    said = next(line for _, line in joiner.lines if " is here: " in line)
    measure.finish(head.started, TIMEOUT_S)
    measure.finish(joiner.started, TIMEOUT_S)
    socket = {} if cable else {"share_of_a_bare_socket": round(bare(scratch, size // 2) / rate, 4)}
    return {"fetch_begins_s": round(began - joiner.began, 2), "fetch_s": round(ended - began, 2), "cable_out_s": out, **socket,
            "share": round(size * 8 / (ended - began) / rate, 4), "first_step_done_s": round(lease - joiner.began, 2),
            "received_over_set": round(bytes_in / size, 4), "said": said}


GIVES = """import socket
with socket.create_server(("0.0.0.0", 7118)) as door:
    print("{}", flush=True)
    with door.accept()[0] as there:
        for _ in range(%d):
            there.sendall(bytes(1 << 20))
"""
TAKES = """import json, socket, time
with socket.create_connection(("%s", 7118)) as there:
    began, came, into = time.monotonic(), 0, bytearray(1 << 20)
    while count := there.recv_into(into):
        came += count
print(json.dumps({"event": "came", "bits_per_second": came * 8 / (time.monotonic() - began)}))
"""


def bare(scratch, size):
    """Bits a second through a socket without anything, on the same link."""
    gives = Watched(on("one", [sys.executable, "-c", GIVES % (size >> 20)]), scratch.fresh("gives"), scratch.fresh("home"))
    gives.until("a door", lambda each: isinstance(each, dict))
    takes = Watched(on("three", [sys.executable, "-c", TAKES % lab("ip", "one")]), scratch.fresh("takes"), scratch.fresh("home"))
    came = measure.event(measure.finish(takes.started, TIMEOUT_S), "came")
    measure.finish(gives.started, TIMEOUT_S)
    return came["bits_per_second"]


def seconds_of(steps):
    return sum(step["seconds"] for step in steps) / sum(step["samples"] for step in steps)


def fetch_beside(args, scratch, place, size, rate):
    head, join = head_of(args, scratch, place, 2, 100_000)
    worker = join("two", place)
    head.until("a share", is_first_share_of("two"), worker)
    head.watch(WARM_UP_S)
    rests, fetches, turns = [], [], []

    def rest():
        begins = time.monotonic()
        head.watch(args.seconds)
        return head.steps(begins, time.monotonic())

    rests.append(rest())
    for _ in range(args.turns):
        joiner = join("three", scratch.path / "nowhere")
        joiner.until("a fetch", lambda each: isinstance(each, str) and each.startswith("fetching"), head)
        begins, before = time.monotonic(), joiner.received()
        head.watch(args.seconds, lambda: joiner.received() - before > 0.95 * size)
        ends, came = time.monotonic(), joiner.received() - before
        joiner.stop()
        fetches.append(head.steps(begins, ends))
        head.watch(SETTLE_S)
        rests.append(rest())
        slower = 2 * seconds_of(fetches[-1]) / (seconds_of(rests[-2]) + seconds_of(rests[-1])) - 1
        turns.append({"steps_slower": round(slower, 4), "share": round(came * 8 / (ends - begins) / rate, 4),
                      "step_s": round(measure.median([step["seconds"] for step in rests[-1]]), 4)})
        measure.say(f"beside: {turns[-1]}")
    joiner = join("three", scratch.path / "nowhere")
    began = joiner.until("a fetch", lambda each: isinstance(each, str) and each.startswith("fetching"))
    lease = head.until("a lease", is_first_share_of("three"), joiner)
    joiner.look()
    ended = next((at for at, line in joiner.lines if " is here: " in line), None)
    head.stop(signal.SIGINT)
    for each in (worker, joiner):
        each.stop()
    every = [[step for steps in many for step in steps] for many in (fetches, rests)]
    return {"turns": turns, "steps_slower": round(measure.median([turn["steps_slower"] for turn in turns]), 4),
            "steps_slower_all": round(seconds_of(every[0]) / seconds_of(every[1]) - 1, 4), "steps": [len(each) for each in every],
            "share": round(measure.median([turn["share"] for turn in turns]), 4),
            "fetch_begins_s": round(began - joiner.began, 2), "fetch_s": ended and round(ended - began, 2),
            "first_step_done_s": round(lease - joiner.began, 2)}


def rate_of(text):
    return float(text[:-4]) * RATES[text[-4:]]


PHASES = {"idle": (ALONE, functools.partial(fetch_alone, cable=False)), "cable": (ALONE, functools.partial(fetch_alone, cable=True)),
          "beside": (BESIDE, fetch_beside)}


def main():
    args = arguments()
    args.motley = measure.motley(args.motley)
    if not ready("lab_data"):
        return
    rate = rate_of(args.rate)
    results = {}
    with measure.Scratch() as scratch:
        place = scratch.path / "set"
        size = write_set(place, args.megabytes * 10**6)
        for phase in args.phase or PHASES:
            hosts, measured = PHASES[phase]
            with laboratory(hosts, args.rate):
                found = measured(args, scratch, place, size, rate)
            results[phase] = found
            measure.emit(bench="lab_data", phase=phase, bytes=size, rate=args.rate, hosts=hosts, **found)
    measure.emit(bench="lab_data", machine=measure.machine())
    keys = ("fetch_begins_s", "fetch_s", "share", "share_of_a_bare_socket", "first_step_done_s", "steps_slower")
    measure.table(["phase", *keys], [[phase, *[found.get(key) or "" for key in keys]] for phase, found in results.items()])


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"lab_data: {failure}")
