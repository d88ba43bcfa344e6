"""What a fetched script imports: told where it is missing, installed where that is asked for."""

import base64
import hashlib
import json
import os
import pty
import sys
import zipfile

import pytest

from conftest import COMMAND, SCRIPTS
from motley import _errors
from motley._machines import _fetch, _packages
from program import PATIENCE_S, Starter

HERE = ["--run", "run", "--listen", "127.0.0.1:0", "--device", "none", "--threads", "1", "--token-file", "token"]
CODE = "NAME = 'groups'\n"


def files_of(version):
    about = f"oddly_named-{version}.dist-info"
    return {"oddly/__init__.py": CODE, f"{about}/METADATA": f"Metadata-Version: 2.1\nName: oddly-named\nVersion: {version}\n",
            f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{about}/top_level.txt": "oddly\n"}


def make_wheel(directory, version):
    files, record = files_of(version), []
    place = f"oddly_named-{version}.dist-info/RECORD"
    with zipfile.ZipFile(directory / f"oddly_named-{version}-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(text)}")
        wheel.writestr(place, "\n".join([*record, f"{place},,"]) + "\n")


def install(directory, version):
    for name, text in files_of(version).items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


@pytest.fixture
def head(motley, tmp_path, monkeypatch):
    """Of a script that imports a package which it alone has; the index of pip is a directory, and the home is empty."""
    (tmp_path / "index").mkdir()
    make_wheel(tmp_path / "index", "1.5")
    install(tmp_path / "heads", "1.5")
    script = tmp_path / "script"
    script.mkdir()
    text = (SCRIPTS / "train_case.py").read_text()
    (script / "train.py").write_text("import oddly\n" + text)
    (script / "cases.py").write_text((SCRIPTS / "cases.py").read_text())
    with Starter(str(COMMAND), tmp_path) as starter:
        with monkeypatch.context() as of_head:
            of_head.setenv("PYTHONPATH", str(tmp_path / "heads"))
            running = starter.start("train", str(script / "train.py"), *HERE, "groups")
        running.wait_event("run")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
        yield running


def test_what_is_missing_is_told_with_what_installs_it(motley, head):
    told = motley.fails("join", "--token-file", "token", "--fetch", "--yes")
    assert "oddly-named==1.5" in told["message"] and "-m pip install oddly-named==1.5" in told["try"] and "--install" in told["try"]
    assert not head.named("step")


def test_it_is_installed_into_an_environment_of_its_own(motley, head, tmp_path):
    other = motley.start("join", "--token-file", "token", "--fetch", "--yes", "--install", "--threads", "1", "--name", "other")
    assert other.end() == 0, other.story()
    assert head.end() == 0, head.story()
    assert head.workers() == {"other/cpu"}
    (complete,) = (tmp_path / "home").glob(".cache/motley/environments/*/complete")
    assert list(complete.parent.glob("**/oddly/__init__.py"))
    with pytest.raises(ImportError):
        __import__("oddly")


def test_nothing_is_installed_without_an_answer(motley, head, tmp_path):
    other = motley.run("join", "--token-file", "token", "--fetch", "--install")
    assert other.process.returncode == 2 and "oddly-named==1.5" in "\n".join(other.text), other.story()
    assert not (tmp_path / "home" / ".cache" / "motley" / "environments").exists()


def test_at_a_terminal_the_script_is_offered(motley, tmp_path, monkeypatch):
    head = motley.start("train", str(SCRIPTS / "train_case.py"), *HERE, "groups")
    head.wait_event("run")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, "-m", "motley", "join", "--token-file", "token", "--threads", "1", "--name", "other"])
    said = b""
    while b"[y/N]" not in said:
        said += os.read(terminal, 4096)
    os.write(terminal, b"y\n")
    head.wait_event("done")
    try:
        while part := os.read(terminal, 4096):
            said += part
    except OSError:  # it has ended
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, said.decode()
    assert head.end(PATIENCE_S) == 0, head.story()
    assert head.workers() == {"other/cpu"}


def test_a_script_names_what_it_imports():
    sources = {"a.py": "import torch, json, os.path\nimport b\nfrom numpy import linalg\nfrom . import c",
               "b.py": "if True:\n    import pytest", "broken.py": "import"}
    found = _packages.imported(sources)
    assert set(found) == {"torch", "numpy", "pytest"} and all(_packages.VERSION.fullmatch(version) for version in found.values())


def test_names_and_versions_of_a_head_are_checked():
    assert _packages.checked({"a-b.c": "1.0.post1"}) == {"a-b.c": "1.0.post1"}
    wrong = [[], {"-r": "1"}, {"a": "1 --index-url x"}, {"a b": "1"}, {"a": 1}, {"a": "1+cpu"}, {"a" * 101: "1"}, {"": "1"}, {"a": ""},
             {"a\n": "1"}, {f"a{n}": "1" for n in range(_packages.NAMES_MAX + 1)}]
    for told in wrong:
        packed = json.dumps({"script": "a.py", "arguments": [], "files": {"a.py": ""}, "packages": told}).encode()
        with pytest.raises(_errors.Error):
            _fetch.unpack(packed)


def test_another_version_is_told_and_torch_stays_as_it_is():
    found = _packages.compare({"torch": "0.1", "pytest": "0.2", "not-here": "3"})
    assert found.missing == ["not-here==3"] and [name for name, _, _ in found.other] == ["torch", "pytest"]
    assert found.wanted == ["not-here==3", "pytest==0.2"]
    assert any("torch" in line and "0.1" in line for line in found.lines())
