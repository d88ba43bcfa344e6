"""Runs in which a device is taken for Apple's GPU, with its faults (scripts/mac.py): they end right, or the device is out, by name."""

import json

import pytest

from conftest import SCRIPTS

HERE = ["--listen", "127.0.0.1:0", "--threads", "1"]
SCRIPT = str(SCRIPTS / "mac.py")


def epochs_of(program):
    return [json.loads(line.partition(" ")[2]) for line in program.text if line.startswith("epoch ")]


def sizes_of(program):
    return [tuple(json.loads(line.partition(" ")[2])) for line in program.text if line.startswith("saw ")]


def alone(motley, case, fault, run="run"):
    program = motley.start("train", SCRIPT, case, fault, "--run", run, "--device", "cpu", *HERE, prefix=("env", "MAC=1"))
    return program, program.end()


@pytest.fixture
def undisturbed(motley):
    def of(case):
        program = motley.run("train", str(SCRIPTS / "train_case.py"), case, "--run", f"plain-{case}", "--device", "cpu", *HERE)
        return epochs_of(program)

    return of


def check(found, expected):
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        for name, value in other.items():
            assert one[name] == pytest.approx(value, rel=1e-5, abs=1e-5), name


@pytest.mark.parametrize("case", ["epochs", "tokens", "normed"])
def test_a_device_that_is_right_trains_as_any_other(motley, undisturbed, case):
    program, status = alone(motley, case, "none")
    assert status == 0, program.story()
    check(epochs_of(program), undisturbed(case))
    assert "computed again" not in "\n".join(program.text)


@pytest.mark.parametrize("fault, said", [("lost", "did not compute what it was asked for"),
                                         ("words", "the driver gave up work of cpu, which took too long")])
def test_what_was_lost_is_computed_again(motley, undisturbed, fault, said):
    program, status = alone(motley, "epochs", fault)
    assert status == 0, program.story()
    check(epochs_of(program), undisturbed("epochs"))
    assert said in "\n".join(program.text), program.story()


@pytest.mark.parametrize("fault, said", [("sizes", "computes wrong gradients: the gradient of"), ("often", "that was the third time")])
def test_a_joiner_that_cannot_be_believed_is_out_by_name(motley, undisturbed, fault, said):
    head = motley.start("train", SCRIPT, "epochs", fault, "--run", "run", "--device", "cpu", "--token-file", "token", *HERE,
                        "--set", "train.min_workers=2", "--set", "train.shares=[1, 1]")
    other = motley.start("join", "--token-file", "token", SCRIPT, "--name", "other", "--threads", "1", "epochs", fault,
                         prefix=("env", "MAC=1"))
    assert other.end() == 1, other.story()
    assert said in other.error()["message"], other.story()
    assert "--device cpu" in other.error()["try"]
    lost = head.wait_event("worker", where=lambda event: said in event.get("reason", ""))
    assert "other" in lost["worker"]
    head.kill()
