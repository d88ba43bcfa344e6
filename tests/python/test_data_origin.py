"""A machine that joins has blocks of its files from their address too, where its user said so (motley join --origin)."""

import os
import re

import pytest
import torch

from test_data import SCRIPT, join, start_head, variables
from test_from_origin import host_of, server  # noqa: F401


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


@pytest.mark.parametrize("word", ["anything", "https://", "ftp://host", "http://host/path", "http://me@host"])
def test_what_origin_takes(motley, word):
    error = motley.fails("join", "motley1.x", "x.py", "--origin", word, status=2)
    assert "public" in error["message"]
