#!/usr/bin/env python3
"""A run in which something fails every few seconds: a head and four workers on hosts of the lab (Linux, root), and liars.

Each of the four first trains alone, all at the same time. Then they train together, undisturbed, for `--rest` seconds: what each of them
contributes there is its capacity. Then, every `--every` seconds, the next of them is killed (kill -9) and started again `--gone` seconds
later; half way between two kills another one is frozen (SIGSTOP) or its cable is pulled, in turns, for as long. After a fifth of the time
or 3 minutes, whichever is less, the first liar joins, with the token and as the fastest of all (tests/e2e/liar.py), and every `--another`
seconds one that lies in another way. Of `negated`, `outdated` and `rarely` (tests/e2e/lying_link.py) the worker is a sound one whose
gradients are changed on their way, after some of its leases: all with another sign, those of twenty leases before, or one in fifty with
another sign. These lies are tried where they are asked for; `--no-events` tries them without anything that fails.

ratio = samples trained by the four / (sum over them of capacity x seconds there). There is who is not killed, frozen or cut off: from the
moment that it is started again, resumed or plugged in it counts in full. `ratio_alone` is the same with the speeds of each alone. Other
programs slow the machine down now and then; `ratio_at_speed` has each capacity follow how fast its device computed a sample between two
events, by its own clock (median), relative to the time before: what is left is what the events cost. On a quiet machine it is the first.
One JSON object on standard output, a table on standard error.

With `--rounds` they make rounds of so many local steps, an epoch each. Something fails in the middle of each round, and nobody lies.
`rounds` says what that costs: how long the others waited at the end of a round when their own part of it was there, over the time that took
(0.5 is as long as a round waits for anybody); and how much of a round's samples was owed to later ones, over the part of who failed in it.

  bench/lab_chaos.py [--minutes 10] [--every 15] [--gone 5] [--lie NAME ...] [--rounds STEPS [--failures 50]]
"""

import argparse
import collections
import json
import pathlib
import signal
import sys
import time

import lab
import lying
import measure

HEAD, HEAD_CORES = "head", 0.2
CORES = {"one": 0.45, "two": 0.35, "three": 0.25, "four": 0.15}
LIAR, LIAR_CORES = "liar", 0.1
FEATURES, CLASSES, SAMPLES, BATCH = 256, 256, 32768, 16384
ROUND_SAMPLES = 8 * SAMPLES  # some two seconds: it takes longer than a kill and what comes of it
ALONE_STEPS, WARM_UP, PATIENCE_S = 8, 2, 120
ALONE_ROUNDS, WARM_UP_ROUNDS = 1, 1
JOINT_WARM_UP, JOINT_WARM_UP_ROUNDS, SPEED_STEPS_MIN = 40, 5, 3  # steps
LIES_FROM_S, STEPS_MAX = 180, 20
# The last is of a usual size: a second look finds it (train.verify), sooner or later.
LIES = ("no_number", "a_gradient_beyond_all", "handed_back", "a_weight_beyond_all", "another_weight", "a_loss_beyond_all", "no_gradient")
NOT_AT_ONCE = ("no_gradient",)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: build/motley)")
    parser.add_argument("--minutes", type=float, default=10, help="of chaos")
    parser.add_argument("--rest", type=float, default=30, help="seconds together before it")
    parser.add_argument("--every", type=float, default=15, help="seconds between two kills")
    parser.add_argument("--gone", type=float, default=5, help="seconds that a worker is away")
    parser.add_argument("--lie", action="append", choices=LIES + lying.BY_LINK,
                        help="of the liars, in turns (default: all that need no worker)")
    parser.add_argument("--another", type=float, default=50, help="seconds from liar to liar")
    parser.add_argument("--no-events", action="store_true", help="nothing fails, and the liars come one after the other from the start")
    parser.add_argument("--only", action="append", choices=("kill", "freeze", "cable"), help="of what fails (default: all)")
    parser.add_argument("--rounds", type=int, metavar="STEPS", help="rounds of so many local steps instead of exact steps")
    parser.add_argument("--failures", type=int, default=sys.maxsize, help="as many, also where there are minutes left")
    parser.add_argument("--log", help="a file for the head's events, with the seconds at which they came")
    return parser.parse_args()


class Away:
    """When which worker was not there."""

    def __init__(self):
        self._since, self._spells = {}, []

    def begin(self, host):
        self._since[host] = time.monotonic()

    def end(self, host):
        self._spells.append((host, self._since.pop(host), time.monotonic()))

    def seconds_there(self, host, begin, end):
        spells = [*self._spells, *((who, since, end) for who, since in self._since.items())]
        return end - begin - sum(max(0.0, min(to, end) - max(since, begin)) for who, since, to in spells if who == host)

    def possible(self, speeds, begin, end):
        """Samples, at these speeds of each."""
        return sum(speed * self.seconds_there(host, begin, end) for host, speed in speeds.items())


class Events:
    """What the head says, and when it was read."""

    def __init__(self, path):
        self._lines, self._partial = open(path), ""
        self.all = []

    def read(self):
        while True:
            self._partial += self._lines.readline()
            if not self._partial.endswith("\n"):
                return
            self.all.append((time.monotonic(), json.loads(self._partial)))
            self._partial = ""

    def steps(self, begin=0.0, end=float("inf")):
        return [(at, event) for at, event in self.all if event["event"] == "step" and begin < at <= end]

    def first(self, change, worker):
        return next(((at, event) for at, event in self.all if event["event"] == "worker" and event["change"] == change
                     and event["worker"] == f"{worker}/cpu"), None)

    def until(self, holds):
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > deadline:
                raise measure.Failed(f"waited {PATIENCE_S} s in vain; the last event: {self.all[-1:]}")
            time.sleep(0.02)
            self.read()

    def speed(self, host, begin, end):
        """Samples a second of its device while it computes; None where that is not known. Of a worker with two shares in a step the
        time is that of the second."""
        found = [part["samples"] / part["compute_s"] for _, step in self.steps(begin, end) for part in step["workers"]
                 if part["worker"] == f"{host}/cpu" and part["compute_s"] > step["seconds"] / 2]
        return measure.median(found) if len(found) >= SPEED_STEPS_MIN else None

    def trained(self, begin, end):
        """Samples of each worker in this time; a step in which it began or ended counts in part."""
        samples = collections.Counter()
        for at, step in self.steps(begin, end + PATIENCE_S):
            inside = max(0.0, min(at, end) - max(at - step["seconds"], begin)) / step["seconds"]
            for part in step["workers"]:
                samples[part["worker"].split("/")[0]] += inside * part["samples"]
        return samples


class Lab:
    """The programs on the hosts."""

    def __init__(self, args, scratch):
        self.args, self.scratch, self.away = args, scratch, Away()
        self._workers = {}
        self.directory = scratch.fresh("together")
        self.token = self.directory.with_suffix(".token")

    def on(self, host, command):
        """Each host has its user's files for itself: what was learned of its device lies there."""
        home = self.scratch.path / f"home-{host}"
        home.mkdir(exist_ok=True)
        return lab.on(host, ["env", f"HOME={home}", *command])

    def train_command(self, directory, steps, **others):
        """`steps`: or rounds."""
        samples, batch, local = SAMPLES, BATCH, self.args.rounds or 1
        extra = {"train.checkpoint_seconds": "30", **others.pop("extra", {})}
        if self.args.rounds:
            samples, batch = ROUND_SAMPLES, ROUND_SAMPLES // local
            extra |= {"train.mode": "rounds", "train.rounds.steps": str(local)}
        words = (f"samples={samples}", f"features={FEATURES}", f"classes={CLASSES}", "lr=0.01", "momentum=0.9")
        return measure.train_command(self.args.motley, "softmax", directory, batch=batch, steps=steps * local, threads=1, words=words,
                                     extra=extra, **others)

    def alone(self):
        """Samples a second of each worker's host, all at the same time."""
        started, (steps, before) = {}, (ALONE_ROUNDS, WARM_UP_ROUNDS) if self.args.rounds else (ALONE_STEPS, WARM_UP)
        for host in CORES:
            directory = self.scratch.fresh(f"alone-{host}")
            started[host] = measure.start(self.on(host, self.train_command(directory, steps + before)), directory)
        return {host: lab.steady(measure.finish(each, PATIENCE_S), before)[0] for host, each in started.items()}

    def start_head(self):
        command = self.train_command(self.directory, 10_000_000, listen="0.0.0.0:7117", devices=("none",),
                                     extra={"train.min_workers": str(len(CORES))})
        command += ["--plaintext", "--token-file", str(self.token)]
        self.head = measure.start(self.on(HEAD, command), self.directory)[0]
        return Events(f"{self.directory}.out")

    def start_worker(self, host):
        join = [self.args.motley, "join", "--json", "--token-file", self.token, "--device", "cpu", "--threads", 1, "--name", host]
        self._workers[host] = measure.start(self.on(host, join), self.scratch.fresh(f"join-{host}"))[0]

    def start_liar(self, lie, name):
        output = self.scratch.fresh(name)
        measure.start(self.on(LIAR, [sys.executable, lying.__file__, self.args.motley, lie, name, str(self.token),
                               str(FEATURES), str(CLASSES)]), output)
        return output

    def begin(self, what, host):
        """It counts as there until it surely is not, and again from the moment at which it may be."""
        if what == "cable":
            lab.lab("cut", host)
        else:
            self._workers[host].send_signal(signal.SIGKILL if what == "kill" else signal.SIGSTOP)
        self.away.begin(host)

    def end(self, what, host):
        self.away.end(host)
        if what == "cable":
            lab.lab("mend", host)
        elif what == "freeze":
            self._workers[host].send_signal(signal.SIGCONT)
        else:
            self._workers[host].wait()
            self.start_worker(host)

    def stop(self):
        self.head.send_signal(signal.SIGINT)
        self.head.wait(PATIENCE_S)

    def audit(self):
        started = measure.start([self.args.motley, "audit", str(self.directory), "--json"], self.scratch.fresh("audit"))
        return measure.event(measure.finish(started, PATIENCE_S), "audit")


def schedule(args, seconds):
    """(when, what, host): kills of one after the other; half way between two of them another one is frozen or cut off."""
    hosts, only = list(CORES), args.only or ("kill", "freeze", "cable")
    planned = []
    if args.no_events:
        return planned
    for turn in range(int((seconds - args.gone) // args.every)):
        planned.append(((turn + 0.5) * args.every, ("freeze", "cable")[turn % 2], hosts[(turn + turn // 4 + 2) % 4]))
        planned.append(((turn + 1) * args.every, "kill", hosts[turn % 4]))
    return [each for each in planned if each[1] in only]


def in_each_round(args, events):
    """As schedule(), for the round that began with the newest event: something that fails in its middle."""
    rounds = events.steps()
    at, kinds = rounds[-1][0] + rounds[-1][1]["seconds"] / 2, args.only or ("kill",)
    return at, kinds[len(rounds) % len(kinds)], list(CORES)[len(rounds) % len(CORES)]


def disturb(args, running, events, seconds):
    """Until the time is over: what happened when, and the liars that joined (name, lie, where its output is)."""
    began, rounds = time.monotonic(), len(events.steps())
    planned, ends, happened, liars = [] if args.rounds else schedule(args, seconds), [], [], []
    kinds, next_liar = [] if args.rounds else list(args.lie or LIES), 0 if args.no_events else min(LIES_FROM_S, 0.2 * seconds)
    while (now := time.monotonic() - began) < seconds and len(happened) < args.failures:
        events.read()
        if args.rounds and len(events.steps()) > rounds:
            rounds, at, what, host = len(events.steps()), *in_each_round(args, events)
            if host not in {each[2] for each in ends}:
                planned = [(at - began, what, host)]
        if kinds and now >= next_liar:
            lie, name = kinds.pop(0), f"liar{len(liars)}"
            liars.append((name, lie, running.start_liar(lie, name)))
            happened.append((time.monotonic(), "liar", LIAR))
            next_liar += args.another
        for end in [end for end in ends if now >= end[0]]:
            running.end(*end[1:])
            ends.remove(end)
        if planned and now >= planned[0][0]:
            _, what, host = planned.pop(0)
            running.begin(what, host)
            ends.append((now + args.gone, what, host))
            happened.append((time.monotonic(), what, host))
        time.sleep(0.01)
    for end in ends:
        running.end(*end[1:])
    return began, time.monotonic(), happened, liars


def at_speed(events, capacity, rest, begin, end):
    """What each could do in this time, by how fast its device was."""
    now = {host: events.speed(host, begin, end) for host in capacity}
    changes = {host: speed / events.speed(host, *rest) for host, speed in now.items() if speed}
    usual = measure.median(changes.values()) if changes else 1
    return {host: each * changes.get(host, usual) for host, each in capacity.items()}


def spells(begin, end, happened):
    """From event to event."""
    at = [begin, *(when for when, what, _ in happened if what != "liar"), end]
    return zip(at, at[1:])


def lost(events, away, capacity, rest, end, happened):
    """Seconds of the whole capacity at the speed of the time that are lost from an event to the next one, mean by kind."""
    at = [when for when, *_ in happened] + [end]
    seconds = collections.defaultdict(list)
    for (since, what, _), to in zip(happened, at[1:]):
        able = at_speed(events, capacity, rest, since, to)
        missing = away.possible(able, since, to) - sum(events.trained(since, to)[host] for host in CORES)
        seconds[what].append(missing / sum(able.values()))
    return {what: round(sum(each) / len(each), 2) for what, each in seconds.items()}


def of_rounds(events, begin, end, happened):
    """Waiting at the end of rounds, and samples that were left to later ones. Of a round in which nobody's work is lost, nothing is."""
    waits, left, owed = [], [], 0
    for number, (at, step) in enumerate(events.steps()):
        total, owed = ROUND_SAMPLES + owed, owed + ROUND_SAMPLES - step["samples"]
        if not begin < at <= end:
            continue
        hit = {who for when, _, who in happened if at - step["seconds"] < when <= at}
        parts = {part["worker"].split("/")[0]: part for part in step["workers"] if part["samples"]}
        last = max(part["finish_s"] for part in parts.values())
        waits.append(max(0.0, step["seconds"] - last) / last)
        lost = hit - set(parts)
        # Who failed would have had a part by its speed.
        cores = sum(CORES[host] for host in {*parts, *lost})
        left.append({"round": number, "owed": owed, "failed": sorted(lost),
                     "of_their_part": round(owed / (total * sum(CORES[host] for host in lost) / cores), 3) if lost else None})
    costly = [each for each in left if each["owed"]]
    return {"told": len(waits), "longest_wait_over_the_parts": round(max(waits), 3),
            "median_wait_over_the_parts": round(measure.median(waits), 3), "with_loss": len(costly),
            "loss_of_nobody_who_failed": [each for each in costly if not each["failed"]],
            "most_owed_of_a_round": round(max(each["owed"] for each in left) / ROUND_SAMPLES, 3),
            "most_owed_over_the_part_of_who_failed": max((each["of_their_part"] or 0 for each in costly), default=0)}


def about_liar(events, name, lie, output):
    """Steps from its first lease until it was excluded, or parked, as it holds up the others: then it is tried again now and then."""
    said = [json.loads(line) for line in pathlib.Path(f"{output}.out").read_text().splitlines()]
    leases = [line["at"] for line in said if "lease" in line]
    about = {"lie": lie, "joined": events.first("joined", name) is not None, "leases": len(leases)}
    if errors := pathlib.Path(f"{output}.err").read_text():
        about["error"] = errors[-300:]
    if leases and (out := events.first("excluded", name)):
        about |= {"steps_until_out": len(events.steps(leases[0], out[0])), "seconds_until_out": round(out[0] - leases[0], 2),
                  "why": out[1]["reason"], "parked": out[1]["parked"], "leases_afterwards": sum(at > out[0] for at in leases)}
    return about


def together(args, running, alone):
    events = running.start_head()
    for host in CORES:
        running.start_worker(host)
    events.until(lambda: len(events.steps()) >= (JOINT_WARM_UP_ROUNDS if args.rounds else JOINT_WARM_UP))
    rest = time.monotonic()
    events.until(lambda: time.monotonic() >= rest + args.rest)
    rest_end = time.monotonic()
    begin, end, happened, liars = disturb(args, running, events, 60 * args.minutes)
    events.until(lambda: events.steps(end))
    running.stop()
    events.read()
    if args.log:
        pathlib.Path(args.log).write_text("".join(json.dumps({"at": round(at - begin, 3), **event}) + "\n" for at, event in events.all)
                                          + "".join(json.dumps({"at": round(at - begin, 3), "did": what, "to": who}) + "\n"
                                                    for at, what, who in happened))
    capacity = {host: events.trained(rest, rest_end)[host] / (rest_end - rest) for host in CORES}
    undisturbed = [step["seconds"] for _, step in events.steps(rest, rest_end)]
    trained = sum(events.trained(begin, end)[host] for host in CORES)
    audit, about = running.audit(), [about_liar(events, *each) for each in liars]
    there = {host: round(running.away.seconds_there(host, begin, end), 1) for host in CORES}
    steps = [step["seconds"] for _, step in events.steps(begin, end)]
    able = sum(running.away.possible(at_speed(events, capacity, (rest, rest_end), *spell), *spell)
               for spell in spells(begin, end, happened))
    return {"ratio": round(trained / running.away.possible(capacity, begin, end), 4), "ratio_at_speed": round(trained / able, 4),
            "ratio_alone": round(trained / running.away.possible(alone, begin, end), 4),
            "ratio_is": "samples of the four workers / sum of capacity x seconds there; capacity: what each contributed undisturbed",
            "capacity": {host: round(each) for host, each in capacity.items()},
            "alone": {host: round(each) for host, each in alone.items()},
            "seconds_there": there, "samples": round(trained), "steps": len(steps), "undisturbed_step_s": measure.median(undisturbed),
            "longest_step_s": max(steps), "events": dict(collections.Counter(what for _, what, _ in happened)),
            "lost_s": lost(events, running.away, capacity, (rest, rest_end), end, happened), "liars": about,
            "liars_out_in_time": all(each.get("steps_until_out", STEPS_MAX + 1) <= STEPS_MAX for each in about
                                     if each["lie"] not in NOT_AT_ONCE),
            **({"rounds": of_rounds(events, begin, end, happened)} if args.rounds else {}),
            "audit": {key: audit[key] for key in ("missing", "duplicate")}}


def main():
    args = arguments()
    args.motley = measure.motley(args.motley)
    if not lab.ready("lab_chaos"):
        return
    hosts = {HEAD: HEAD_CORES, **CORES, LIAR: LIAR_CORES}
    with lab.laboratory(hosts, "1gbit"):
        with measure.Scratch() as scratch:
            running = Lab(args, scratch)
            result = together(args, running, running.alone())
    measure.emit(bench="lab_chaos", result=result, minutes=args.minutes, every=args.every, gone=args.gone, machine=measure.machine())
    measure.table(["what", "figure"], [[key, str(value)] for key, value in result.items() if key != "liars"])
    measure.table(["liar", "leases", "steps until out", "why"],
                  [[each["lie"], each["leases"], str(each.get("steps_until_out", "-")), each.get("why", "")] for each in result["liars"]])


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"lab_chaos: {failure}")
