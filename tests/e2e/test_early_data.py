"""Recipes begin before all of their data are there: a joining machine computes with the samples that have come."""

import pathlib

import numpy as np
import pytest

from conftest import arrays
from program import settings
from wire import parse_token, token_text
from withholding import Withholding

pytestmark = pytest.mark.usefixtures("home")

SAMPLES, FEATURES = 4096, 2048  # 8 KiB each: 32 blocks
STEPS, BATCH = 20, 64  # ten blocks, in their order


@pytest.fixture(params=["<f4", "<i4"])
def data(tmp_path, request):
    """As they are used, and of a type that is converted."""
    place = arrays(tmp_path / "data", SAMPLES, FEATURES)
    np.save(place / "x.npy", np.load(place / "x.npy").astype(request.param))
    return place


def words_of(uri):
    return ["softmax", *settings(data_uri=uri, data_test_uri="", train_global_batch=BATCH, train_steps=STEPS, train_seed=3,
                                 train_shuffle="false", train_verify=0)]


def test_a_joiner_computes_before_all_is_there(motley, data, home):
    words = words_of(f"{data}/x.npy+{data}/y.npy")
    alone = motley.run("train", *words, "--run", "alone", "--device", "cpu", "--listen", "127.0.0.1:0")
    head = motley.start("train", *words, "--run", "run", "--device", "none", "--listen", "127.0.0.1:0", "--token-file", "token")
    head.wait_event("run")
    token = parse_token((motley.directory / "token").read_text())
    with Withholding(token["port"]) as between:
        token |= {"addresses": ["127.0.0.1"], "port": between.port}
        joiner = motley.start("join", token_text(token), "--name", "guest")
        assert head.end() == 0, head.story()
    kept, = home.glob(".cache/motley/data/sets/*")
    assert not (kept / "whole").exists(), "not all blocks came"
    assert [pathlib.Path(found).stat().st_size for found in kept.glob("tree/data/train/*/x.npy")] == [(data / "x.npy").stat().st_size]
    assert head.losses() == pytest.approx(alone.losses(), rel=1e-6)
    assert joiner.end() == 0, joiner.story()
    motley.audit("run")
