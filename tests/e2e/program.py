"""The program as a child process: its JSON events are read as they come, and everything waits for events, never for time."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import tied  # noqa: E402

for variable in ("MOTLEY_CACHE", "XDG_CACHE_HOME"):  # else tests with a home of their own would not have a cache of their own
    os.environ.pop(variable, None)

PATIENCE_S = 180.0  # longest wait for anything: a safety net, never what a test measures


def _no_constants(word):
    raise ValueError(f"{word} is not JSON")


def parse_event(line):
    """One line of --json: an object in strict JSON (no NaN, no Infinity) with a field `event`."""
    value = json.loads(line, parse_constant=_no_constants)
    assert isinstance(value, dict) and isinstance(value.get("event"), str), f"not an event: {line!r}"
    return value


def samples_of(step, worker):
    return sum(part["samples"] for part in step["workers"] if part["worker"] == worker)


class Program:
    """A running `motley --json …`. Use Starter to make one."""

    _changed = threading.Condition()  # of any program: several may be waited for together

    def __init__(self, command, process):
        self.command, self.process = command, process
        self.events = []        # (time of arrival, event)
        self.not_events = []    # lines on standard output that are no events
        self.text = []          # lines on standard error
        self._open = 2
        for stream, take in ((self.process.stdout, self._take_event), (self.process.stderr, self._take_text)):
            threading.Thread(target=self._read, args=(stream, take), daemon=True).start()

    @property
    def pid(self):
        return self.process.pid

    def _take_event(self, line):
        try:
            self.events.append((time.monotonic(), parse_event(line)))
        except (ValueError, AssertionError) as error:
            self.not_events.append(f"{line!r}: {error}")

    def _take_text(self, line):
        self.text.append(line.rstrip("\n"))

    def _read(self, stream, take):
        for line in iter(stream.readline, b""):
            with self._changed:
                take(line.decode("utf-8", "replace"))
                self._changed.notify_all()
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    @property
    def over(self):
        """All that it says has been read."""
        return self._open == 0

    def named(self, kind, **fields):
        """The events of a kind so far whose fields have these values."""
        with self._changed:
            return [e for _, e in self.events if e["event"] == kind and all(e.get(k) == v for k, v in fields.items())]

    def wait_until(self, holds, what, patience_s=PATIENCE_S):
        """Waits until holds() is true; it is asked after every line of any program, and when one ends."""
        deadline = time.monotonic() + patience_s
        with self._changed:
            while not (result := holds()):
                left = deadline - time.monotonic()
                if self.over or left <= 0:
                    raise AssertionError(f"{'ended' if self.over else 'waited in vain'} before {what}\n{self.story()}")
                self._changed.wait(left)
            return result

    def wait_event(self, kind, where=lambda event: True, after=0, **fields):
        """The first event of this kind, from number `after` on, with these fields and for which where() holds."""
        def found():
            for _, event in self.events[after:]:
                if event["event"] == kind and all(event.get(k) == v for k, v in fields.items()) and where(event):
                    return event
            return None
        return self.wait_until(found, f"{kind} {fields or ''}")

    def wait_step(self, step):
        return self.wait_event("step", lambda event: event["step"] >= step)

    def wait_share(self, worker, after=0):
        """A step of which this worker computed something."""
        return self.wait_event("step", lambda event: samples_of(event, worker) > 0, after)

    def workers(self):
        """Who computed something so far."""
        return {part["worker"] for step in self.named("step") for part in step["workers"] if part["samples"]}

    def wait_text(self, part):
        return self.wait_until(lambda: next((line for line in self.text if part in line), None), f"'{part}' on standard error")

    def seen(self):
        """How many events came so far: the `after` of a later wait."""
        with self._changed:
            return len(self.events)

    def signal(self, number):
        os.kill(self.pid, number)

    def interrupt(self):
        self.signal(signal.SIGINT)

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def end(self, patience_s=PATIENCE_S):
        """Waits for the end and for the last line; the exit status. Standard output must have held events alone."""
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"does not end\n{self.story()}") from None
        self.wait_until(lambda: self.over, "its output closed", patience_s)
        assert not self.not_events, f"standard output holds more than events: {self.not_events[:3]}"
        return self.process.returncode

    def stop(self):
        """Ctrl-C, and an end in good order."""
        self.interrupt()
        assert self.end() == 130, self.story()

    def rss_kib(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))

    def error(self):
        """The one error event of a program that failed; its four fields are there and say something."""
        errors = self.named("error")
        assert len(errors) == 1, f"one error event was expected\n{self.story()}"
        for field in ("code", "message", "try"):
            assert isinstance(errors[0][field], str), errors[0]
        assert errors[0]["code"] and errors[0]["message"], errors[0]
        return errors[0]

    def losses(self):
        """The loss of every step; of a step done twice (after a resume), the last."""
        return {event["step"]: event["loss"] for event in self.named("step")}

    def story(self):
        """What a failed test shows."""
        with self._changed:
            words = [self.command[0], *(w if len(w) < 60 else w[:40] + "…" for w in self.command[1:])]
            events = [json.dumps(e)[:300] for _, e in self.events[-12:]]
            return "\n".join([f"$ {' '.join(words)}  (status {self.process.poll()})", *events, "-- standard error:", *self.text[-12:]])


class Starter:
    """Starts programs in one directory and kills what is left at the end."""

    def __init__(self, path, directory):
        self.path, self.directory = path, directory
        self.programs = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self.programs:
            if program.process.poll() is None:
                program.process.kill()
        for number, program in enumerate(self.programs):
            program.process.wait(PATIENCE_S)
            log = pathlib.Path(self.directory) / f"program-{number}.log"
            log.write_text("\n".join([" ".join(program.command), *(json.dumps(e) for _, e in program.events), *program.text]) + "\n")

    def start(self, *words, prefix=(), preexec=None):
        command = [str(word) for word in (*prefix, self.path, *words, "--json")]
        program = Program(command, self.open(command, preexec))
        self.programs.append(program)
        return program

    def open(self, command, preexec):
        def begin():
            tied.begin()
            if preexec is not None:
                preexec()

        return subprocess.Popen(command, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, preexec_fn=begin)

    def run(self, *words, **options):
        program = self.start(*words, **options)
        program.end(5 * PATIENCE_S)
        return program

    def fails(self, *words, status=2, **options):
        """Runs a command that must fail with this status; its error event."""
        program = self.run(*words, **options)
        assert program.process.returncode == status, f"exit status {status} was expected\n{program.story()}"
        return program.error()

    def audit(self, run, **options):
        """The audit event of a run that must be clean."""
        program = self.run("audit", run, **options)
        assert program.process.returncode == 0, program.story()
        audit = program.events[-1][1]
        assert audit["event"] == "audit" and audit["missing"] == 0 and audit["duplicate"] == 0, audit
        return audit


def arguments(**values):
    """Of softmax: arguments(samples=512, test=0) -> ["samples=512", "test=0"]"""
    return [f"{key}={value}" for key, value in values.items()]


def settings(**values):
    """settings(train_steps=5) -> ["--set", "train.steps=5"]"""
    return [word for key, value in values.items() for word in ("--set", f"{key.replace('_', '.', 1)}={value}")]
