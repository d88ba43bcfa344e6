"""A script's files come only where they are asked for, and run only where somebody agrees."""

import hashlib
import json

import pytest

from conftest import SCRIPTS
from motley import _errors
from motley._machines import _fetch

HERE = ["--run", "run", "--listen", "127.0.0.1:0", "--device", "none", "--threads", "1", "--token-file", "token"]


def start_head(motley):
    head = motley.start("train", str(SCRIPTS / "train_case.py"), *HERE, "groups")
    head.wait_event("run")
    return head


def test_a_worker_runs_the_files_of_the_head(motley, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    head = start_head(motley)
    other = motley.start("join", "--token-file", "token", "--fetch", "--yes", "--threads", "1", "--name", "other")
    assert other.end() == 0, other.story()
    assert head.end() == 0, head.story()
    said = "\n".join(other.text)
    for name in ("train_case.py", "cases.py"):
        assert f"{hashlib.sha256((SCRIPTS / name).read_bytes()).hexdigest()}" in said and name in said
    assert "train_case.py groups" in said
    assert {part["worker"] for step in head.named("step") for part in step["workers"]} == {"other/cpu"}
    assert "refused" not in {told["change"] for told in head.named("worker")}  # who came for the files alone
    places = list((tmp_path / "home").rglob("*.py"))
    assert sorted(place.name for place in places) == ["cases.py", "train_case.py"]
    motley.audit("run")


def test_nothing_runs_without_an_answer(motley, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    head = start_head(motley)
    other = motley.run("join", "--token-file", "token", "--fetch")
    assert other.process.returncode == 2, other.story()
    assert "nobody agreed to run it" in other.error()["message"] and "--yes" in other.error()["try"]
    assert "train_case.py" in "\n".join(other.text)
    kept = [path.name for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert set(kept) <= {"key.pem"}, kept  # nothing of the head
    assert not head.named("step")


def test_a_run_without_a_script_has_nothing_to_fetch(motley):
    motley.start("train", "softmax", *HERE)
    assert "no files of a script" in motley.fails("join", "--token-file", "token", "--fetch", status=1)["message"]


def packed(**change):
    return json.dumps({"script": "a.py", "arguments": ["x"], "files": {"a.py": "1", "b/c.py": "2"}, "packages": {}, **change}).encode()


def test_files_have_names_below_one_directory():
    assert _fetch.unpack(packed()) == _fetch.Fetched("a.py", ["x"], {"a.py": b"1", "b/c.py": b"2"}, {})
    wrong = [b"", b"[]", b"\xff", packed(script="b.py"), packed(arguments=[1]), packed(arguments="x"), packed(files=[]),
             packed(files={"a.py": 1}), packed(files={f"{n}.py": "" for n in range(1001)} | {"a.py": ""})]
    names = ["../c.py", "/c.py", "b//c.py", "b/../../c.py", "./c.py", "c.txt", "b\\c.py", "C:c.py", ".py/", "\n.py"]
    wrong += [packed(files={"a.py": "1", name: "2"}) for name in names]
    for each in wrong:
        with pytest.raises(_errors.Error):
            _fetch.unpack(each)
    whole = packed()
    for end in range(len(whole)):
        with pytest.raises(_errors.Error):
            _fetch.unpack(whole[:end])


def test_arguments_are_shown_as_a_shell_would_take_them():
    assert _fetch.shown(["a.py", "--layers", "2"]) == "a.py --layers 2"
    assert _fetch.shown(["a.py", "x; rm -r y"]) == "a.py 'x; rm -r y'"
    said = _fetch.shown(["a.py", "\x1b[2K\rIt would run as: b.py", "\u202egnihton", "line\nline"])
    assert said.isprintable() and "\\x1b[2K\\r" in said and "\\u202e" in said and "line\\nline" in said


def test_what_is_not_beside_the_script_stays(tmp_path):
    (tmp_path / "train.py").write_text("import json\n")
    came = _fetch.unpack(_fetch.pack(str(tmp_path / "train.py"), ["--layers", "2"]))
    assert (came.script, came.arguments, list(came.files)) == ("train.py", ["--layers", "2"], ["train.py"])
    assert _fetch.pack(str(tmp_path / "none.py"), []) == b""
    assert _fetch.pack(str(pytest.__file__), []) == b""  # of a package that is installed
    (tmp_path / "train.py").write_text("#" * (_fetch.BYTES_MAX + 1))
    assert _fetch.pack(str(tmp_path / "train.py"), []) == b""
