"""The data of a run without a script: a machine that joins gets the files of the head's data.uri, and opens none of its own for it."""

import functools
import http.server
import threading

import pytest

from conftest import arrays
from program import settings

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def data(tmp_path):
    return arrays(tmp_path / "data", 512, 8)


@pytest.fixture
def server(data):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=data)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def head_of(motley, uri):
    words = settings(data_uri=uri, data_test_uri="", train_global_batch=32, train_steps=100000)
    head = motley.start("train", "softmax", *words, "--run", "run", "--device", "none", "--listen", "127.0.0.1:0", "--token-file", "token")
    head.wait_event("run")
    return head


def joins(motley, head, *words):
    joiner = motley.start("join", "--token-file", "token", "--name", "guest", *words)
    head.wait_step(2)
    joiner.interrupt()
    assert joiner.end() in (0, 130), joiner.story()


def copies(home, name):
    return [path.read_bytes() for path in home.glob(f".cache/motley/data/sets/*/tree/data/train/*/{name}")]


def test_who_has_no_such_file_gets_it_from_the_head(motley, data, home):
    head = head_of(motley, f"{data}/x.npy+{data}/y.npy")
    joins(motley, head)
    for name in ("x.npy", "y.npy"):
        assert copies(home, name) == [(data / name).read_bytes()]


def test_what_was_offered_is_used_as_it_is(motley, data, home):
    head = head_of(motley, f"{data}/x.npy+{data}/y.npy")
    joins(motley, head, "--data-dir", data)
    assert not copies(home, "x.npy")


def test_an_address_is_fetched_by_the_head(motley, server, data, home):
    head = head_of(motley, f"{server}/x.npy+{server}/y.npy")
    joins(motley, head)
    assert copies(home, "y.npy") == [(data / "y.npy").read_bytes()]


@pytest.mark.parametrize("uri", ["s3://bucket/x.npy+s3://bucket/y.npy", "gs://bucket/set.motley"])
def test_what_this_program_does_not_fetch_is_said(motley, uri):
    error = motley.fails("train", "softmax", *settings(data_uri=uri, data_test_uri=""))
    assert error["code"] == "input" and "http:// and https:// alone" in error["message"] and "pip install ." in error["try"], error


def test_an_address_where_nothing_is(motley, server):
    error = motley.fails("train", "softmax", *settings(data_uri=f"{server}/none.npy+{server}/y.npy", data_test_uri=""), status=1)
    assert error["code"] == "network" and "none.npy" in error["message"], error
