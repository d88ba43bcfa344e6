"""What the program says to other programs (--json): every event has its fields, of the right types, and nothing else is printed."""

import math
import os
import stat
import subprocess

import pytest

from program import arguments, parse_event, settings

NUMBER, TEXT, WHOLE, LIST, MAYBE = (int, float), str, int, list, (int, float, type(None))
FIELDS = {
    "run": dict(run=TEXT, parameters=WHOLE, global_batch=WHOLE, seed=WHOLE, join=TEXT),
    "worker": dict(worker=TEXT, machine=TEXT, device=TEXT, change=TEXT, parked=bool, reason=TEXT),
    "step": dict(step=WHOLE, epoch=WHOLE, loss=NUMBER, samples=WHOLE, seconds=NUMBER, samples_per_s=NUMBER,
                 update_s=NUMBER, workers=LIST),
    "advice": dict(set=TEXT, saves_s=NUMBER, step_s=NUMBER, sentence=TEXT),
    "mode": dict(mode=TEXT, sentence=TEXT, exact_samples_per_s=MAYBE, rounds_samples_per_s=MAYBE, rounds_loss_percent=MAYBE),
    "plan": dict(predicted=dict, fastest_alone=dict, shares=dict),
    "eval": dict(step=WHOLE, epoch=WHOLE, loss=NUMBER, accuracy=MAYBE, samples=WHOLE, weights=TEXT),
    "checkpoint": dict(step=WHOLE, path=TEXT),
    "done": dict(steps=WHOLE, samples=WHOLE, seconds=NUMBER, samples_per_s=NUMBER, loss=NUMBER, accuracy=MAYBE,
                 predicted_samples_per_s=MAYBE, verified_samples=WHOLE, checkpoint=TEXT, mode=TEXT, local_steps=MAYBE, cosine=MAYBE),
    "error": {"code": TEXT, "message": TEXT, "try": TEXT},
    "dropped": dict(events=WHOLE),
    "audit": dict(epochs=WHOLE, samples=WHOLE, missing=WHOLE, duplicate=WHOLE),
    "device": dict(device=TEXT, description=TEXT),
    "check": {"subject": TEXT, "good": bool, "text": TEXT, "try": TEXT},
    "export": dict(step=WHOLE, path=TEXT),
}
PART = dict(worker=TEXT, samples=WHOLE, compute_s=NUMBER, wait_s=NUMBER, finish_s=NUMBER, sent_bytes=WHOLE, received_bytes=WHOLE)
MODE = dict(mode=TEXT, local_steps=MAYBE, samples_per_s=NUMBER, computing=NUMBER, bytes_a_day=WHOLE, loss_percent=MAYBE, price=TEXT)
CHANGES = {"joined", "left", "lost", "excluded", "readmitted", "refused"}


def check_fields(value, fields):
    for name, kind in fields.items():
        assert name in value, f"{name} is missing in {value}"
        assert isinstance(value[name], kind) and (kind is bool or not isinstance(value[name], bool)), (name, value)
        if isinstance(value[name], (int, float)):
            assert math.isfinite(value[name]) and value[name] >= 0, (name, value)


def check_event(event):
    assert event["event"] in FIELDS, event
    check_fields(event, FIELDS[event["event"]])
    if event["event"] == "worker":
        assert event["change"] in CHANGES, event
        assert event["device"] in ("cpu", "mps") or event["device"].startswith("cuda:"), event
        assert event["reason"] and event["machine"] and event["worker"].startswith(event["machine"] + "/"), event
    for part in event.get("workers", []):
        check_fields(part, PART)
    if event["event"] == "plan":
        for mode in event.get("modes", []):
            check_fields(mode, MODE)
        check_fields(event["predicted"], dict(samples_per_s=NUMBER, step_s=NUMBER))
        check_fields(event["fastest_alone"], dict(worker=TEXT, samples_per_s=NUMBER))
        assert event["fastest_alone"]["worker"] in event["shares"], event
        assert all(type(share) is int and share >= 0 for share in event["shares"].values()), event


def events(program, *kinds):
    """All events of an ended program; those kinds are among them."""
    assert not program.not_events, program.not_events
    for _, event in program.events:
        check_event(event)
    named = {event["event"] for _, event in program.events}
    assert set(kinds) <= named, named
    return [event for _, event in program.events]


DATA = [*arguments(samples=1000, features=16, classes=4, test=100), *settings(train_global_batch=128, train_steps=20, train_seed=9)]


def test_a_whole_run(motley, tmp_path):
    head = motley.start("train", "softmax", *DATA, *settings(train_min_workers=2), "--run", "run", "--device", "cpu", "--name", "head",
                        "--token-file", "token", "--listen", "127.0.0.1:0")
    head.wait_event("run")
    assert stat.S_IMODE(os.stat(tmp_path / "token").st_mode) == 0o600
    assert (tmp_path / "token").read_text().startswith("motley1.")
    joiner = motley.start("join", "--token-file", "token", "--name", "guest", "--device", "cpu", "--threads", "1")
    assert head.end() == 0 and joiner.end() == 0, head.story() + joiner.story()
    events(joiner, "worker")
    said = events(head, "run", "worker", "step", "eval", "checkpoint", "done")

    run, = head.named("run")
    assert run == said[0] and run["global_batch"] == 128 and run["seed"] == 9 and run["parameters"] == 68
    assert run["join"] == ""  # it went to the file, which only this user may read
    assert not (tmp_path / "token").exists()

    steps = head.named("step")
    assert [e["step"] for e in steps] == list(range(20))
    assert [e["epoch"] for e in steps] == [step // 8 for step in range(20)]
    assert [e["samples"] for e in steps] == [1000 - 7 * 128 if step % 8 == 7 else 128 for step in range(20)]
    for event in steps:
        assert sum(part["samples"] for part in event["workers"]) == event["samples"]
        assert event["samples_per_s"] == pytest.approx(event["samples"] / event["seconds"], rel=1e-3)
    for name in ("head/cpu", "guest/cpu"):
        assert head.named("worker", worker=name, change="joined")
        assert any(part["worker"] == name and part["samples"] for event in steps for part in event["workers"])
    traffic = [part for event in steps for part in event["workers"] if part["worker"] == "guest/cpu"]
    assert sum(part["sent_bytes"] for part in traffic) > 0 and sum(part["received_bytes"] for part in traffic) > 0

    # Who is parked may evaluate beside the training, and end late.
    assert sorted(e["step"] for e in head.named("eval")) == [8, 16, 20]
    assert all(e["samples"] == 100 and 0 <= e["accuracy"] <= 1 for e in head.named("eval"))
    done = said[-1]
    assert done["event"] == "done" and done["steps"] == 20 and done["samples"] == sum(e["samples"] for e in steps)
    assert done["loss"] == steps[-1]["loss"] and done["accuracy"] == head.named("eval")[-1]["accuracy"]
    assert done["checkpoint"] == head.named("checkpoint")[-1]["path"]
    assert (tmp_path / done["checkpoint"] / "model.safetensors").is_file()

    audit = motley.audit("run")
    assert audit["samples"] == done["samples"]
    order = motley.start("audit", "run", "--order", "0")  # numbers are asked for, so numbers come
    order.process.wait()
    order.wait_until(lambda: order.over, "its output closed")


def test_a_plan_names_the_modes(motley):
    head = motley.start("plan", "softmax", *DATA, *settings(train_min_workers=2), "--set", "train.rounds.steps=4", "--seconds", "1",
                        "--device", "cpu", "--name", "head", "--token-file", "token", "--listen", "127.0.0.1:0")
    joiner = motley.start("join", "--token-file", "token", "--name", "guest", "--device", "cpu", "--threads", "1")
    assert head.end() == 0 and joiner.end() == 0, head.story() + joiner.story()
    events(head, "run", "plan", "mode")
    modes = {mode["mode"]: mode for mode in head.named("plan")[0]["modes"]}
    assert set(modes) == {"exact", "rounds"}
    assert modes["exact"]["loss_percent"] == 0 and 0 < modes["exact"]["computing"] <= 1
    assert modes["rounds"]["local_steps"] == 4 and modes["rounds"]["loss_percent"] is None
    assert "not tested for this kind of model" in modes["rounds"]["price"]
    for name in ("exact", "rounds of 4 steps"):
        assert any(line.lstrip().startswith(name) and "% of the time" in line for line in head.text), head.text


def test_losses_have_enough_digits(motley):
    """The same run twice: equal to the last digit; and no loss is cut to fewer digits than tell 1e-6 apart."""
    runs = [motley.run("train", "softmax", *DATA, "--run", name, "--device", "cpu", "--listen", "127.0.0.1:0") for name in ("a", "b")]
    assert runs[0].losses() == runs[1].losses()
    assert any(len(repr(loss)) > 9 for loss in runs[0].losses().values())
    assert runs[0].named("run")[0]["join"].startswith("motley1.")


def test_updates_take_a_part_of_the_run(motley):
    """Also where one worker makes steps alone, which the head does not update."""
    program = motley.run("train", "softmax", *DATA, "--run", "run", "--device", "cpu", "--listen", "127.0.0.1:0")
    done, = program.named("done")
    assert sum(event["update_s"] for event in program.named("step")) <= done["seconds"], program.named("step")


def test_other_commands(motley, tmp_path):
    assert events(motley.run("devices"), "device")
    assert {e["subject"] for e in events(motley.run("doctor"), "check")} >= {"torch", "network", "port", "disk"}
    assert motley.run("train", "softmax", *DATA, "--run", "run", "--device", "cpu", "--listen", "127.0.0.1:0").process.returncode == 0
    events(motley.run("audit", "run"), "audit")
    events(motley.run("export", "run", "m.safetensors"), "export")
    events(motley.run("train", "nothing"), "error")
    events(motley.run("nothing"), "error")


def test_flag_before_the_command(motley_path, tmp_path):
    done = subprocess.run([motley_path, "--json", "devices"], cwd=tmp_path, capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        check_event(parse_event(line))


def test_text_for_people_stays_off_standard_output(motley):
    head = motley.run("train", "softmax", *DATA, "--run", "run", "--device", "cpu", "--listen", "127.0.0.1:0")
    assert any("step" in line for line in head.text)
    assert all(not line.startswith("{") for line in head.text)
