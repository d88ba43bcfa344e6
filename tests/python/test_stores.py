"""Data in a store that speaks S3: moto's server, whole and with every tenth request reset, through fsspec and s3fs."""

import os
import random
import re
import socket
import struct
import threading

import pytest

from conftest import SCRIPTS
from motley import Error
from motley._content import _origins, _stores
from program import settings

pytest.importorskip("s3fs")
moto_server = pytest.importorskip("moto.server")
serving = pytest.importorskip("werkzeug.serving")

SIZE = 3 * (1 << 20) + 17


class Server:
    """resets: every so many requests, the connection is cut off: before the answer, or after a part of it, in turns; 0: never."""

    def __init__(self):
        self.requests, self.resets, self.reset = [], 0, 0
        outer = self

        class Handler(serving.WSGIRequestHandler):
            protocol_version = "HTTP/1.1"

            def run_wsgi(self):
                outer.requests.append((self.command, self.path, self.headers.get("Range")))
                if outer.resets and len(outer.requests) % outer.resets == 0:
                    outer.reset += 1
                    if outer.reset % 2:
                        self.wfile.write(b"HTTP/1.1 206 Partial Content\r\nContent-Length: 1000000\r\n\r\nhalf")
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()
                    self.close_connection = True
                    return
                super().run_wsgi()

            def log(self, *_):
                pass

        app = moto_server.DomainDispatcherApplication(moto_server.create_backend_app)
        self._server = serving.make_server("127.0.0.1", 0, app, threaded=True, request_handler=Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture(scope="module")
def server():
    server = Server()
    yield server
    server.close()


@pytest.fixture
def store(server, tmp_path, monkeypatch):
    """The store as the user of this machine reaches it, with an empty bucket."""
    for name, value in {"HOME": str(tmp_path), "AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
                        "AWS_DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    server.resets = 0
    system = s3fs.S3FileSystem()
    if system.exists("bucket"):
        system.rm("bucket", recursive=True)
    system.mkdir("bucket")
    yield system
    server.resets = 0


def content(seed, size=SIZE):
    return random.Random(seed).randbytes(size)


def read(*parts):
    with open(os.path.join(*parts), "rb") as file:
        return file.read()


def gets(server):
    return [path for method, path, _ in server.requests if method == "GET" and "list-type" not in path and "?" not in path]


def test_a_directory_of_a_bucket_comes_once_and_follows_it(store, server):
    store.pipe({"bucket/set/a.bin": content(1), "bucket/set/more/b.bin": content(2), "bucket/other": b"x"})
    place = _origins.bring("s3://bucket/set")
    assert read(place, "a.bin") == content(1) and read(place, "more", "b.bin") == content(2)
    assert sorted(os.listdir(place)) == ["a.bin", "more"] and os.path.basename(place) == "set"
    server.requests.clear()
    assert _origins.bring("s3://bucket/set") == place and not gets(server)
    store.pipe("bucket/set/a.bin", content(3))
    store.rm("bucket/set/more/b.bin")
    server.requests.clear()
    assert _origins.bring("s3://bucket/set") == place
    assert read(place, "a.bin") == content(3) and not os.path.exists(os.path.join(place, "more", "b.bin"))
    assert read(_origins.bring("s3://bucket/other")) == b"x"


def test_every_tenth_request_is_reset(store, server, monkeypatch):
    monkeypatch.setattr(_stores, "RANGE_BYTES", 1 << 18)
    store.pipe({f"bucket/set/{number}.bin": content(number) for number in range(4)})
    server.requests.clear()
    server.resets, server.reset = 10, 0
    place = _origins.bring("s3://bucket/set")
    assert server.reset >= 4
    for number in range(4):
        assert read(place, f"{number}.bin") == content(number)


def test_a_fetch_that_was_stopped_goes_on_within_a_file(store, server, monkeypatch):
    monkeypatch.setattr(_stores, "RANGE_BYTES", 1 << 20)
    store.pipe("bucket/big.bin", content(5))
    fetch, done = _stores.Store._range, []

    def stopped(self, remote, first, size):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(first)
        return fetch(self, remote, first, size)

    monkeypatch.setattr(_stores.Store, "_range", stopped)
    with pytest.raises(KeyboardInterrupt):
        _origins.bring("s3://bucket/big.bin")
    monkeypatch.setattr(_stores.Store, "_range", fetch)
    server.requests.clear()
    assert read(_origins.bring("s3://bucket/big.bin")) == content(5)
    ranges = [ranged for method, path, ranged in server.requests if method == "GET" and ranged]
    assert ranges and ranges[0].startswith("bytes=2097152-"), ranges


def meddling(monkeypatch, meddle):
    """Calls meddle() after the first range of each file."""
    fetch = _stores.Store._range

    def ranged(self, remote, first, size):
        got = fetch(self, remote, first, size)
        if first == 0:
            meddle()
        return got

    monkeypatch.setattr(_stores.Store, "_range", ranged)


def test_a_file_that_becomes_another_is_never_mixed(store, monkeypatch):
    monkeypatch.setattr(_stores, "RANGE_BYTES", 1 << 20)
    store.pipe("bucket/big.bin", content(6))
    changes = iter([content(7)])
    meddling(monkeypatch, lambda: store.pipe("bucket/big.bin", next(changes, content(7))))
    assert read(_origins.bring("s3://bucket/big.bin")) == content(7)


def test_a_file_that_never_stays_is_refused(store, monkeypatch):
    monkeypatch.setattr(_stores, "RANGE_BYTES", 1 << 20)
    store.pipe("bucket/big.bin", content(8))
    seeds = iter(range(100, 200))
    meddling(monkeypatch, lambda: store.pipe("bucket/big.bin", content(next(seeds))))
    with pytest.raises(Error, match="changed 4 times"):
        _origins.bring("s3://bucket/big.bin")


def test_what_a_store_has_comes_to_a_machine_that_cannot_reach_it(motley, store, server):
    import torch

    samples = torch.randn(64, 4, generator=torch.Generator().manual_seed(3)).numpy().tobytes()
    store.pipe({"bucket/set/samples.bin": samples + content(9), "bucket/set/more/notes.txt": b"more"})
    script = [str(SCRIPTS / "with_files.py"), "--threads", "1", "--device", "cpu", "--token-file", "token"]
    keys = [f"AWS_ENDPOINT_URL={server.url}", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_DEFAULT_REGION=us-east-1"]
    at = ["PLACE=s3://bucket/set"]
    head = motley.start("train", *script, "--run", "run", "--listen", "127.0.0.1:0", *settings(train_min_workers=2),
                        prefix=["env", f"HOME={motley.directory / 'home-head'}", *at, *keys])
    head.wait_event("run")
    other = motley.start("join", *script, "--name", "other",
                         prefix=["env", f"HOME={motley.directory / 'home-other'}", *at, "AWS_ENDPOINT_URL=http://127.0.0.1:1"])
    assert head.end() == 0, head.story()
    assert other.end() == 0, other.story()
    place = re.search(r"the files are at (.*)", "\n".join(other.text))[1]
    assert read(place, "samples.bin") == samples + content(9) and read(place, "more", "notes.txt") == b"more"


def test_what_is_not_there_is_said(store):
    with pytest.raises(Error, match="bucket/nothing"):
        _origins.bring("s3://bucket/nothing")
    with pytest.raises(Error, match="no-such-bucket"):
        _origins.bring("s3://no-such-bucket/x")
