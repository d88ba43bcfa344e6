"""What loggers are told, and the table in notebooks."""

import json
import re

import pytest
from torch.utils.data import DataLoader

import cases
import motley as package
from conftest import train
from motley._runs import _notebook


class Logger:
    def __init__(self):
        self.told = []

    def on_step(self, step):
        self.told.append(step)

    def on_epoch(self, epoch):
        self.told.append(epoch)


def test_loggers_are_told_of_steps_and_epochs(motley):
    program = train(motley, "logged.py", "groups")
    told = [json.loads(line.removeprefix("told ")) for line in program.text if line.startswith("told ")]
    steps = [each for each in told if "step" in each]
    assert [(each["step"], each["epoch"]) for each in steps] == [(number + 1, number // 7 + 1) for number in range(42)]
    assert [each["loss"] for each in steps] == list(program.losses().values())
    case, rates = cases.make("groups"), []
    for _ in steps:
        rates.append(case.optimizer.param_groups[0]["lr"])
        case.optimizer.step()
        case.schedule.step()
    assert [each["learning_rate"] for each in steps] == pytest.approx(rates, rel=1e-12)
    assert all(each["gradient_norm"] > 0 and each["seconds"] > 0 and each["samples"] in (48, 12) for each in steps)
    # An epoch comes behind its steps, and is told before the body sees it.
    ends = [number for number, each in enumerate(told) if "ended" in each]
    assert [told[number]["ended"] for number in ends] == list(range(1, 7))
    assert all(each["epoch"] <= told[end]["ended"] for end in ends for each in told[:end] if "step" in each and each["step"] <= 7)
    assert all(told[end + 1] == {"body": told[end]["ended"]} for end in ends)


def test_a_callback_must_have_something_to_call():
    case = cases.make("epochs")
    with pytest.raises(package.Error, match="neither on_step nor on_epoch"):
        package.Run(case.model, case.loss, DataLoader(case.train, 48), case.optimizer, callbacks=[print])


class Event:
    kind, epoch, version, loss, samples, seconds, learning_rate, gradient_norm = "step", 0, 3, 0.5, 48, 0.1, 0.01, 0.0
    scores = [("accuracy", 0.75), ("<b>", 1.0)]


def test_the_table_of_a_notebook_has_a_row_for_each_epoch():
    drawn = []

    class Handle:
        update = drawn.append

    def show(text):
        drawn.append(text)
        return Handle()

    table = _notebook.Table(show, lambda text: text)
    table.on_step(package.Step(Event()))
    table.on_step(package.Step(Event()))  # too soon for a browser
    assert len(drawn) == 1 and "1 …" in drawn[0]
    table.on_epoch(package.Epoch(Event(), None))
    table.on_epoch(package.Epoch(Event(), Event()))
    assert len(drawn) == 3 and drawn[2].count("<tr>") == 3
    assert "accuracy" in drawn[2] and "&lt;b&gt;" in drawn[2] and not re.search("<b>", drawn[2])
    assert _notebook.table() is None  # this is none
