"""Runs the program under test and reads what it says; a run that says nothing for too long is ended and fails its test."""

import fcntl
import json
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

import tied  # noqa: E402

# The least that Linux gives a pipe: a run is at most a dozen events ahead of its reader, so that a test can interrupt it
# where it wants to, however fast the machine is.
PIPE_BYTES = 4096
# Far above what any run here takes on a busy machine: it only turns a hang into a failure.
LIMIT_S = 180


class Process:
    """One invocation: events as they come, then the exit status. Belongs to the thread that made it."""

    def __init__(self, command, cwd=None):
        self.command = [str(word) for word in command]
        self.events = []
        self._reader = None
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=self._errors, cwd=cwd, preexec_fn=tied.begin)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            fcntl.fcntl(self._process.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._watchdog = threading.Timer(LIMIT_S, self._process.kill)
        self._watchdog.daemon = True
        self._watchdog.start()

    def __iter__(self):
        for line in self._process.stdout:
            # A killed process may leave half a line.
            if not line.endswith(b"\n"):
                return
            event = json.loads(line)
            self.events.append(event)
            yield event

    def until(self, wanted):
        """Reads up to the first event for which wanted(event) holds."""
        for event in self:
            if wanted(event):
                return event
        raise AssertionError(f"ended before the awaited event; {self.say()}")

    def until_step(self, step):
        return self.until(lambda event: event["event"] == "step" and event["step"] >= step)

    def alive(self):
        return self._process.poll() is None

    def read_along(self):
        """Reads on in the background until the process ends, so that a full pipe never stops it."""
        self._reader = threading.Thread(target=lambda: [None for _ in self])
        self._reader.start()

    def signal(self, number):
        self._process.send_signal(number)

    def finish(self):
        """Reads the rest; returns the exit status (negative: the signal that killed it)."""
        if self._reader:
            self._reader.join()
        for _ in self:
            pass
        status = self._process.wait()
        self._watchdog.cancel()
        self._process.stdout.close()
        return status

    def kill(self):
        self.signal(signal.SIGKILL)
        return self.finish()

    def of(self, kind):
        return [event for event in self.events if event["event"] == kind]

    def losses(self):
        """Loss by step."""
        return {event["step"]: event["loss"] for event in self.of("step")}

    def say(self):
        self._errors.seek(0)
        return " ".join(self.command) + "\n" + self._errors.read().decode(errors="replace")[-2000:]


class Program:
    def __init__(self, path):
        self.path = path

    def start(self, *arguments, cwd=None):
        return Process([self.path, *arguments, "--json"], cwd)

    def start_training(self, run, target=None, workers=1, settings=(), resume=False):
        command = ["train"] + ([target] if target is not None else []) + ["--run", run, "--listen", "127.0.0.1:0"]
        command += ["--device", "cpu"] * workers + ["--threads", "1"]
        if resume:
            command.append("--resume")
        if workers > 1:
            settings = [*settings, f"train.min_workers={workers}", "train.verify=0"]  # each computes its own parts
        for setting in settings:
            command += ["--set", setting]
        return self.start(*command)

    def train(self, run, target=None, workers=1, settings=(), resume=False):
        """Trains to the end, which must be a good one."""
        process = self.start_training(run, target, workers, settings, resume)
        status = process.finish()
        assert status == 0, f"exit status {status}; {process.say()}"
        return process

    def text(self, *arguments):
        return subprocess.run([self.path, *map(str, arguments)], check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout

    def audit(self, run):
        """The audit's event, which must be that of a clean ledger."""
        process = self.start("audit", run)
        status = process.finish()
        assert status == 0, f"exit status {status}; {process.say()}"
        (event,) = process.events
        assert (event["event"], event["missing"], event["duplicate"], event["findings"]) == ("audit", 0, 0, [])
        return event

    def export(self, source, target):
        """Exports; returns the event."""
        process = self.start("export", source, target)
        status = process.finish()
        assert status == 0 and Path(target).is_file(), f"exit status {status}; {process.say()}"
        (event,) = process.events
        return event

    def order(self, run, epoch):
        return [int(line) for line in self.text("audit", run, "--order", epoch).split()]


def checkpoint(run, step):
    return Path(run) / "checkpoints" / f"step-{step:09d}"
