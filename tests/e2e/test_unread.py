"""Standard output that nobody reads: the run goes on, and Ctrl-C ends it."""

import signal
import subprocess

from program import PATIENCE_S, arguments, parse_event, settings

# A step's event has some 300 bytes: so many are more than a pipe holds and more than the program keeps.
STEPS = 20_000
DATA = [*arguments(samples=1000, features=8, classes=4, test=0), *settings(train_global_batch=32, train_seed=9)]


def start(motley_path, tmp_path, *, steps):
    command = [motley_path, "train", "softmax", *DATA, *settings(train_steps=steps), "--run", "run", "--device", "cpu",
               "--listen", "127.0.0.1:0", "--json"]
    return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_line(process, begins):
    for line in process.stderr:
        if line.startswith(begins):
            return
    raise AssertionError(f"ended before it said {begins!r}")


def wait_for_step(process, number):
    for line in process.stderr:
        if line.startswith("step ") and int(line.split()[1].partition("/")[0]) >= number:
            return
    raise AssertionError(f"ended before step {number}")


def test_a_reader_that_comes_at_the_end_gets_the_end(motley_path, tmp_path):
    process = start(motley_path, tmp_path, steps=STEPS)
    wait_for_line(process, "done: ")  # it trained to the end
    events = [parse_event(line) for line in process.stdout]
    assert process.wait(PATIENCE_S) == 0
    assert events[0]["event"] == "run" and events[-1]["event"] == "done"
    missing = sum(event["events"] for event in events if event["event"] == "dropped")
    steps = [event["step"] for event in events if event["event"] == "step"]
    assert missing > 0 and steps == list(range(len(steps))), "the oldest are kept"
    assert len(steps) + missing >= STEPS


def test_ctrl_c_ends_a_run_whose_output_nobody_reads(motley_path, tmp_path):
    process = start(motley_path, tmp_path, steps=10**9)
    wait_for_step(process, STEPS)
    process.send_signal(signal.SIGINT)
    wait_for_line(process, "error (interrupted)")
    assert process.wait(PATIENCE_S) == 130
