"""A process whose memory grew begins again in its own place, however it was let in: a code is good once."""

import subprocess

import pytest

from conftest import COMMAND, SCRIPTS

SCRIPT = str(SCRIPTS / "grown.py")


@pytest.mark.parametrize("by", ["token file", "code", pytest.param("standard input", marks=pytest.mark.nightly),
                                pytest.param("fetched", marks=pytest.mark.nightly)])
def test_a_process_that_grew_goes_on_in_another(motley, by, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    marker = tmp_path / "marker"
    head = motley.start("train", SCRIPT, "--run", "run", "--listen", "127.0.0.1:0", "--device", "none", "--threads", "1", "--token-file",
                        "token", "--pair", "groups", str(marker))
    event = head.wait_event("run")
    words = {"token file": ["--token-file", "token", SCRIPT], "standard input": ["-", SCRIPT],
             "code": [event["addresses"][0], event["code"], SCRIPT], "fetched": ["--token-file", "token", "--fetch", "--yes"]}[by]
    theirs = [] if by == "fetched" else ["groups", str(marker)]
    joiner = subprocess.Popen([COMMAND, "join", *words, "--threads", "1", "--name", "other", *theirs], cwd=motley.directory,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said, _ = joiner.communicate((motley.directory / "token").read_text() if by == "standard input" else "", timeout=120)
    assert joiner.returncode == 0, said
    assert head.end() == 0, head.story()
    assert said.count("is about to serve") == 2 and said.count("it is started again") == 1, said
    assert int(marker.read_text()) == joiner.pid
    assert {part["worker"] for step in head.named("step") for part in step["workers"]} == {"other/cpu"}
    motley.audit("run")
