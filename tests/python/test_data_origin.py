"""A machine that joins has blocks of its files from their address too, where its user said so (motley join --origin)."""

import os
import re
import threading

import pytest
import torch

from program import PATIENCE_S, settings
from test_data import SCRIPT, join, start_head, variables
from test_from_origin import host_of, server  # noqa: F401
from wire import parse_token, token_text
from withholding import Withholding


@pytest.fixture
def wide(server):  # noqa: F811
    """A server of a file that is large enough for many blocks of a set."""
    samples = torch.randn(64, 4, generator=torch.Generator().manual_seed(3)).numpy().tobytes()
    server.content = samples + os.urandom(20 << 20)
    return server


def join_with(motley, wide, origin):
    return motley.start("join", "--token-file", "token", SCRIPT, "--threads", "1", "--device", "cpu", "--name", "other", "--origin", origin,
                        prefix=[*variables(motley, "home-other", wide.url), "MEDDLE=origin"])


def kept_by(program):
    path = re.search(r"the files are at (.*)", "\n".join(program.text))[1]
    with open(path, "rb") as file:
        return file.read()


def test_a_machine_has_blocks_from_the_address_too(motley, wide):
    head = start_head(motley, wide.url)
    wide.resets_each = 10
    other = join_with(motley, wide, host_of(wide))
    assert head.end() == 0, head.story()
    assert other.end() == 0, other.story()
    assert kept_by(other) == wide.content
    assert "GB of it from its address" in "\n".join(other.text), other.story()
    motley.audit("run")


def test_a_wrong_block_of_the_address_is_never_used(motley, wide):
    head = start_head(motley, wide.url)
    right = wide.content
    wide.content = bytes(len(right))
    other = join_with(motley, wide, host_of(wide))
    assert head.end() == 0, head.story()
    assert other.end() == 0, other.story()
    assert kept_by(other) == right
    assert "another content" in "\n".join(other.text) and "from its address" not in "\n".join(other.text), other.story()


def test_without_a_word_of_the_user_the_address_is_not_asked(motley, wide):
    head = start_head(motley, wide.url)
    wide.asked.clear()
    other = join(motley, wide.url)
    assert head.end() == 0 and other.end() == 0, other.story()
    assert not wide.asked
    assert kept_by(other) == wide.content


def test_a_private_address_is_not_public(motley, wide):
    head = start_head(motley, wide.url)
    wide.asked.clear()
    other = join_with(motley, wide, "public")
    assert head.end() == 0 and other.end() == 0, other.story()
    assert not wide.asked
    assert "127.0.0.1 is 127.0.0.1, which is no public address" in "\n".join(other.text)


def test_the_data_of_a_recipe_come_from_their_address_too(motley, wide):
    """The head's blocks are withheld after a while: most of them can only be asked of the address."""
    wide.content = os.urandom(80 << 20)
    words = settings(data_uri=f"text:{wide.url}", data_test_uri="", model_block=8, model_layers=1, model_heads=1, model_width=8,
                     train_global_batch=8, train_steps=100000, train_shuffle="false")
    head = motley.start("train", "gpt-mini", *words, "--run", "run", "--device", "cpu", "--threads", "1", "--listen", "127.0.0.1:0",
                        "--token-file", "token", prefix=["env", f"HOME={motley.directory / 'home-head'}"])
    head.wait_event("run")
    token = parse_token((motley.directory / "token").read_text())
    asked, parts = threading.Event(), len(wide.asked)
    wide.on_request = lambda number: asked.set() if any(each != "bytes=0-0" for each in wide.asked[parts:]) else None
    with Withholding(token["port"]) as between:
        token |= {"addresses": ["127.0.0.1"], "port": between.port}
        other = motley.start("join", token_text(token), "--name", "other", "--device", "cpu", "--threads", "1", "--origin", host_of(wide),
                             prefix=["env", f"HOME={motley.directory / 'home-other'}"])
        assert asked.wait(PATIENCE_S), other.story()
        other.interrupt()
        assert other.end() == 0, other.story()
    head.stop()


@pytest.mark.parametrize("word", ["anything", "https://", "ftp://host", "http://host/path", "http://me@host"])
def test_what_origin_takes(motley, word):
    error = motley.fails("join", "motley1.x", "x.py", "--origin", word, status=2)
    assert "public" in error["message"]
