"""What a head can have a machine do that joins it: compute, and nothing that the machine's user did not offer."""

import numpy as np
import pytest

from program import settings


@pytest.fixture
def head(motley):
    """It trains on files of its own machine, which is that of the joiner as well."""
    place = motley.directory / "data"
    place.mkdir()
    random = np.random.default_rng(1)
    np.save(place / "x.npy", random.normal(size=(512, 8)).astype(np.float32))
    np.save(place / "y.npy", random.integers(0, 3, size=512))
    data = settings(data_uri=f"{place}/x.npy+{place}/y.npy", data_test_uri="", train_global_batch=32, train_steps=100000)
    head = motley.start("train", "softmax", *data, "--run", "run", "--device", "none", "--listen", "127.0.0.1:0", "--token-file", "token")
    head.wait_event("run")
    return head


def test_no_file_is_opened_that_was_not_offered(head, motley):
    (motley.directory / "elsewhere").mkdir()
    for offer in ([], ["--data-dir", "elsewhere"]):
        before = head.seen()
        error = motley.fails("join", "--token-file", "token", *offer)
        assert error["code"] == "input" and "data.uri" in error["message"] and "--data-dir" in error["try"], error
        refused = head.wait_event("worker", change="refused", after=before)
        assert ":f32" not in refused["reason"], refused  # nothing of what is in the file


def test_what_was_offered_is(head, motley):
    joiner = motley.start("join", "--token-file", "token", "--name", "guest", "--data-dir", motley.directory / "data")
    head.wait_step(2)
    with open(f"/proc/{joiner.pid}/status", encoding="ascii") as status:
        assert "NoNewPrivs:\t1\n" in status
    joiner.interrupt()
    assert joiner.end() in (0, 130), joiner.story()
