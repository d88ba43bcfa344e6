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


def begins(server):
    """By path, where what was asked for begins."""
    found = {}
    for method, path, ranged in server.requests:
        if method == "GET" and ranged:
            first = int(ranged.removeprefix("bytes=").partition("-")[0])
            found[path] = min(first, found.get(path, first))
    return found


def stopped_after(monkeypatch, ranges):
    """A fetch is interrupted by its user once so many ranges are here, of which the first are a quarter and a half of the others."""
    put, done = _stores.Store._put, []

    def stopped(self, wanted, version, content):
        if len(done) == ranges:
            raise KeyboardInterrupt
        done.append(wanted)
        put(self, wanted, version, content)

    monkeypatch.setattr(_stores.Store, "_put", stopped)
    with pytest.raises(KeyboardInterrupt):
        _origins.bring("s3://bucket/set")
    monkeypatch.setattr(_stores.Store, "_put", put)


def test_a_fetch_that_was_stopped_goes_on_within_a_file(store, server, monkeypatch):
    monkeypatch.setattr(_stores, "RANGE_BYTES", 1 << 20)
    store.pipe("bucket/set", content(5))
    stopped_after(monkeypatch, 2)
    server.requests.clear()
    assert read(_origins.bring("s3://bucket/set")) == content(5)
    assert begins(server) == {"/bucket/set": 3 << 18}


def test_a_part_that_is_here_is_used_though_a_file_came_before_it(store, server, monkeypatch):
    monkeypatch.setattr(_stores, "RANGE_BYTES", 1 << 20)
    store.pipe({"bucket/set/b.bin": content(5), "bucket/set/c.bin": content(6)})
    stopped_after(monkeypatch, 2)
    store.pipe({"bucket/set/a.bin": content(7)})
    server.requests.clear()
    place = _origins.bring("s3://bucket/set")
    assert [read(place, f"{name}.bin") for name in "abc"] == [content(7), content(5), content(6)]
    assert begins(server) == {"/bucket/set/a.bin": 0, "/bucket/set/b.bin": 3 << 18, "/bucket/set/c.bin": 0}


def test_files_of_no_bytes_and_of_few_come_as_well(store):
    files = {"a": b"", "b": b"b", "c": b"", "d": content(1), "e": b""}
    store.pipe({f"bucket/set/{name}": file for name, file in files.items()})
    place = _origins.bring("s3://bucket/set")
    assert {name: read(place, name) for name in files} == files == {name: read(place, name) for name in os.listdir(place)}


def test_so_many_ranges_are_asked_for_at_once_and_no_more(store, monkeypatch):
    monkeypatch.setattr(_stores, "RANGE_BYTES", 1 << 18)
    store.pipe({f"bucket/set/{number}": content(number) for number in range(3)})
    ask, content_of, open_now, most = _stores.Store._ask, _stores.Store._content, [0], [0]

    def asks(self, remote, wanted):
        open_now[0] += 1
        most[0] = max(most[0], open_now[0])
        return ask(self, remote, wanted)

    def has(self, remote, wanted, future):
        open_now[0] -= 1
        return content_of(self, remote, wanted, future)

    monkeypatch.setattr(_stores.Store, "_ask", asks)
    monkeypatch.setattr(_stores.Store, "_content", has)
    place = _origins.bring("s3://bucket/set")
    assert most == [_stores.AT_ONCE] and open_now == [0]
    assert [read(place, str(number)) for number in range(3)] == [content(number) for number in range(3)]


def test_a_library_that_answers_one_question_after_the_other(tmp_path, monkeypatch):
    import fsspec

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(_stores, "RANGE_BYTES", 1 << 20)
    system = fsspec.filesystem("memory")
    system.pipe({"/set/a.bin": content(1), "/set/more/b.bin": content(2)})
    try:
        place = _origins.bring("memory://set")
        assert read(place, "a.bin") == content(1) and read(place, "more", "b.bin") == content(2)
    finally:
        system.rm("/set", recursive=True)


def meddling(monkeypatch, meddle):
    """Calls meddle() once the first range of a file is here."""
    content_of = _stores.Store._content

    def ranged(self, remote, wanted, future):
        got = content_of(self, remote, wanted, future)
        if wanted.first == 0:
            meddle()
        return got

    monkeypatch.setattr(_stores.Store, "_content", ranged)


def test_a_file_that_becomes_another_is_never_mixed(store, monkeypatch):
    monkeypatch.setattr(_stores, "RANGE_BYTES", 1 << 18)
    store.pipe("bucket/big.bin", content(6))
    changes = iter([content(7)])
    meddling(monkeypatch, lambda: store.pipe("bucket/big.bin", next(changes, content(7))))
    assert read(_origins.bring("s3://bucket/big.bin")) == content(7)


def test_a_file_that_never_stays_is_refused(store, monkeypatch):
    monkeypatch.setattr(_stores, "RANGE_BYTES", 1 << 18)
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
