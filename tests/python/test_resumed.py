"""A run that is killed and resumed: its script sees what it would have seen, had nobody interrupted it."""

import collections
import json
import random
import signal

import numpy
import pytest
import torch

from conftest import SCRIPTS
from motley._runs import _epoch, _eval_points, _packed, _reach

HERE = ["--run", "run", "--listen", "127.0.0.1:0", "--threads", "1", "--device", "cpu", "--set", "train.checkpoint_seconds=0.01"]
CASES = ["patience", "nan_first", "plateau", "plateau_in_body", "schedulers_of_an_object", "rates_by_hand", "scheduled_by_step",
         "generators", "variables", "second_optimizer", "state", "sampled", "two_runs", "leases"]


def go(motley, name, *more):
    program = motley.run("train", str(SCRIPTS / "resumed.py"), *HERE, *more, name)
    return program, motley.directory / "out.json"


@pytest.mark.parametrize("name", CASES)
def test_the_script_sees_what_it_would_have_seen(motley, name):
    program, out = go(motley, name)
    assert program.process.returncode == 0, program.story()
    whole = json.loads(out.read_text())
    (motley.directory / "run").rename(motley.directory / "whole")
    if (motley.directory / "run-2").exists():
        (motley.directory / "run-2").rename(motley.directory / "whole-2")
    out.unlink()
    for step in ("9", "17"):
        (motley.directory / "die").write_text(step)
        program, _ = go(motley, name, *(["--resume"] if step != "9" else []))
        assert program.process.returncode == -signal.SIGKILL and not out.exists(), program.story()
    (motley.directory / "die").unlink()
    program, _ = go(motley, name, "--resume")
    assert program.process.returncode == 0, program.story()
    assert json.loads(out.read_text()) == whole
    out.unlink()
    program, _ = go(motley, name, "--resume")  # when all is done
    assert program.process.returncode == 0 and json.loads(out.read_text()) == whole, program.story()


def test_an_epoch_has_its_rate_also_where_the_body_after_it_was_not_the_last_word(motley):
    """The checkpoint is of the eval point; what the body there left is of the steps behind it."""
    program, out = go(motley, "interrupted")
    assert program.process.returncode == 0, program.story()
    whole = json.loads(out.read_text())
    (motley.directory / "run").rename(motley.directory / "whole")
    (motley.directory / "interrupt").touch()
    program, _ = go(motley, "interrupted")
    assert program.process.returncode == 130, program.story()
    (motley.directory / "interrupt").unlink()
    program, _ = go(motley, "interrupted", "--resume")
    assert program.process.returncode == 0 and json.loads(out.read_text()) == whole, program.story()


def test_what_cannot_be_put_back_is_named(motley):
    text = (SCRIPTS / "resumed.py").read_text()
    more = '''
class Open:
    def __init__(self):
        self.of = lambda: 3

def unplain():
    model, kept = net(), None
    for _ in run_of(model, sgd(model)).epochs(8):
        kept = Open()

if __name__'''
    (motley.directory / "unplain.py").write_text(text.replace("\nif __name__", more, 1))
    (motley.directory / "die").write_text("9")
    assert motley.run("train", "unplain.py", *HERE, "unplain").process.returncode == -signal.SIGKILL
    (motley.directory / "die").unlink()
    program = motley.run("train", "unplain.py", *HERE, "--resume", "unplain")
    assert program.process.returncode == 0 and any("had changed kept" in line for line in program.text), program.story()


@pytest.mark.parametrize("value", [
    None, True, 3, 2 ** 100, 1.5, float("inf"), "größe", "\udcff", b"\0\xff", (1, (2, [3])), {1: "a", (2, 3): {"b"}}, frozenset([4]),
    1 + 2j, collections.OrderedDict(b=1, a=2), collections.Counter("aab"), random.Random(3).getstate()])
def test_plain_data_come_back_as_they_were(value):
    found = _packed.unpack(_packed.pack([value]))[0]
    assert found == value and type(found) is type(value)


def test_arrays_and_tensors_come_back_as_they_were():
    queue = collections.deque([1, 2], 3)
    found = _packed.unpack(_packed.pack({"t": torch.arange(6).view(2, 3), "half": torch.ones(3, dtype=torch.bfloat16), "a": numpy.eye(2),
                                         "n": numpy.float32(2.5), "empty": torch.zeros(0, 3), "q": queue, "nan": float("nan")}))
    assert torch.equal(found["t"], torch.arange(6).view(2, 3)) and found["half"].dtype == torch.bfloat16
    assert numpy.array_equal(found["a"], numpy.eye(2)) and found["n"] == 2.5 and type(found["n"]) is numpy.float32
    assert found["empty"].shape == (0, 3) and found["q"] == queue and found["q"].maxlen == 3 and found["nan"] != found["nan"]
    for other in (object(), lambda: 3, torch.nn.Linear(2, 2), [[object()]], numpy.array([object()])):
        with pytest.raises(_packed.Unkept):
            _packed.pack(other)
    with pytest.raises(_packed.Unkept):
        _packed.pack(torch.zeros(100), 399)


def test_records_that_were_being_written_and_those_of_lost_steps_are_not_read(tmp_path):
    epoch = _epoch.Epoch.of({"number": 1, "scores": {}})
    records = _eval_points.Records(str(tmp_path))
    records.begin([])
    for version in (5, 10, 15):
        records.add({"version": version, "epochs": [epoch], "set": {"a": _packed.pack(version)}, "gone": []})
    path = tmp_path / _eval_points.FILE
    content = path.read_bytes()
    for cut in range(len(content) - 1, len(content) * 2 // 3 + 1, -7):
        path.write_bytes(content[:cut])
        assert [record["version"] for record in records.read()] == [5, 10]
    path.write_bytes(content)
    assert [record["version"] for record in records.read(14)] == [5, 10]
    records.begin(records.read(10))
    whole = _eval_points.folded(records.read())
    assert whole["version"] == 10 and len(whole["epochs"]) == 2 and _packed.unpack(whole["set"]["a"]) == 10
    records.close()


def test_a_file_of_many_marks_is_made_smaller(tmp_path, monkeypatch):
    monkeypatch.setattr(_eval_points, "COMPACT_BYTES", 1000)
    (tmp_path / "checkpoints" / "step-000000050").mkdir(parents=True)
    records = _eval_points.Records(str(tmp_path))
    records.begin([])
    for version in range(1, 101):
        epoch = _epoch.Epoch.of({"number": version, "scores": {}})
        records.add({"version": version, "epochs": [epoch], "set": {"a": _packed.pack(bytes(100) + bytes([version]))}, "gone": []})
    found = records.read()
    assert [record["version"] for record in found][-50:] == list(range(51, 101)) and len(found) < 60
    assert [each.number for each in _eval_points.folded(found)["epochs"]] == list(range(1, 101))
    records.close()
