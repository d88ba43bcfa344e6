"""Data by HTTP in ranges, from servers as they are, and by fsspec."""

import email.utils
import http.server
import os
import re
import socket
import struct
import threading
import urllib.error
import urllib.request

import pytest

from motley._content import _kept, _local, _origins
from motley._errors import Error

SIZE = 3_000_000


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(_origins, "RANGE_BYTES", 200_000)


class Server(http.server.ThreadingHTTPServer):
    """Hands out `content`. What it does besides is set by the test."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.tag, self.modified = os.urandom(SIZE), '"one"', ""
        self.asked: list[str] = []  # ranges
        self.resets_each, self.ranges, self.on_request = 0, True, lambda number: None
        self.url = f"http://127.0.0.1:{self.server_port}/some%20where/set.bin?key=1"

    def handle_error(self, request, client_address):
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        server.asked.append(self.headers.get("Range", ""))
        server.on_request(len(server.asked))
        content = server.content
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        fresh = self.headers.get("If-Range") in (None, server.tag, server.modified)
        part = found is not None and server.ranges and fresh
        first, last = (int(found[1]), min(int(found[2]), len(content) - 1)) if part else (0, len(content) - 1)
        if part and first >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.end_headers()
            return
        self.send_response(206 if part else 200)
        if part:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.send_header("Content-Length", str(last + 1 - first))
        for name, value in (("ETag", server.tag), ("Last-Modified", server.modified)):
            if value:
                self.send_header(name, value)
        self.end_headers()
        body = content[first : last + 1]
        if server.resets_each and len(server.asked) % server.resets_each == 0:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
            return
        self.wfile.write(body)


@pytest.fixture
def server():
    with Server() as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        yield served
        served.shutdown()


def content_of(path):
    with open(path, "rb") as file:
        return file.read()


def test_a_file_comes_in_ranges_and_is_asked_for_once(server):
    path = _origins.bring(server.url)
    assert os.path.basename(path) == "set.bin" and content_of(path) == server.content
    assert len(server.asked) == 15
    server.asked.clear()
    assert _origins.bring(server.url) == path
    assert server.asked == ["bytes=0-0"]


def test_a_server_that_resets_each_tenth_request(server):
    server.resets_each = 10
    assert content_of(_origins.bring(server.url)) == server.content
    begins = [int(re.match(r"bytes=(\d+)", asked)[1]) for asked in server.asked]
    assert begins == sorted(begins) and len(set(begins)) >= 15, "it goes on where it was"


def test_a_fetch_that_was_stopped_goes_on(server, monkeypatch):
    def stop(number):
        if number == 6:
            raise KeyboardInterrupt

    write = _origins._Download._write
    done = []

    def stopping(download, answer, begins, ends):
        done.append(begins)
        stop(len(done))
        return write(download, answer, begins, ends)

    monkeypatch.setattr(_origins._Download, "_write", stopping)
    with pytest.raises(KeyboardInterrupt):
        _origins.bring(server.url)
    server.asked.clear()
    assert content_of(_origins.bring(server.url)) == server.content
    assert server.asked[0] == "bytes=1000000-1199999" and len(server.asked) == 10


def test_a_file_that_becomes_another_begins_anew_and_is_never_mixed(server):
    def change(number):
        if number == 5:
            server.content, server.tag = os.urandom(SIZE + 7), '"two"'

    server.on_request = change
    assert content_of(_origins.bring(server.url)) == server.content
    server.on_request = lambda number: None
    server.content, server.tag = os.urandom(100), '"three"'
    assert content_of(_origins.bring(server.url)) == server.content


def test_a_file_that_never_stays_is_given_up(server):
    def change(number):
        server.content, server.tag = os.urandom(SIZE), f'"{number}"'

    server.on_request = change
    with pytest.raises(Error, match="became another file"):
        _origins.bring(server.url)


@pytest.mark.parametrize("tag", ["", 'W/"weak"'])
def test_a_date_will_do(server, tag):
    server.tag, server.modified = tag, email.utils.formatdate(1e9, usegmt=True)
    assert content_of(_origins.bring(server.url)) == server.content


def test_a_server_without_ranges_or_versions(server):
    server.ranges = False
    assert content_of(_origins.bring(server.url)) == server.content
    server.tag = ""
    server.content = os.urandom(1000)
    assert content_of(_origins.bring(server.url)) == server.content
    server.ranges = True
    server.content = os.urandom(SIZE)
    with pytest.raises(Error, match="neither ETag nor Last-Modified"):
        _origins.bring(server.url)


def test_an_empty_file(server):
    server.content = b""
    assert content_of(_origins.bring(server.url)) == b""


def test_what_is_not_there(server):
    class Missing(Handler):
        def do_GET(self):
            self.send_error(404)

    server.RequestHandlerClass = Missing
    with pytest.raises(Error, match="HTTP 404"):
        _origins.bring(server.url)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/x"
        with pytest.raises(Error, match="times in a row"):
            _origins.bring(url)


@pytest.mark.parametrize("came_from, leads_to, goes", [("https://a.example/x", "http://a.example/x", False),
                                                       ("https://a.example/x", "https://b.example/x", True),
                                                       ("http://a.example/x", "https://a.example/x", True)])
def test_is_not_led_from_https_to_http(came_from, leads_to, goes):
    redirects = _origins.Redirects()
    asked = urllib.request.Request(came_from)
    if goes:
        assert redirects.redirect_request(asked, None, 302, "Found", {}, leads_to).full_url == leads_to
    else:
        with pytest.raises(urllib.error.URLError):
            redirects.redirect_request(asked, None, 302, "Found", {}, leads_to)


def test_names_from_addresses_are_looked_at(server):
    for path in ("%2e%2e", "a%5cb", "con"):
        with pytest.raises(Error, match="the name"):
            _origins.bring(f"http://127.0.0.1:{server.server_port}/{path}")


def test_fsspec_brings_files_and_directories_once(monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe({"/bucket/set/a/x": b"1", "/bucket/set/y": b"22", "/bucket/other": b"3"})
    try:
        place = _origins.bring("memory://bucket/set")
        assert content_of(f"{place}/a/x") == b"1" and content_of(f"{place}/y") == b"22" and os.path.basename(place) == "set"
        got = []
        get_file = type(memory).get_file
        monkeypatch.setattr(type(memory), "get_file", lambda self, *rest, **more: got.append(rest) or get_file(self, *rest, **more))
        assert _origins.bring("memory://bucket/set") == place and not got
        memory.pipe("/bucket/set/y", b"333")
        memory.rm("/bucket/set/a/x")
        assert content_of(f"{_origins.bring('memory://bucket/set')}/y") == b"333" and not os.path.exists(f"{place}/a/x")
        assert content_of(_origins.bring("memory://bucket/other")) == b"3"
        assert _kept.manifest_of(_local.pathlib.Path(place), "set").files[0].name == "y"
        with pytest.raises(Error):
            _origins.bring("memory://bucket/none")
    finally:
        memory.rm("/bucket", recursive=True)


def test_what_fsspec_cannot_is_said_with_what_to_install():
    pytest.importorskip("fsspec")
    with pytest.raises(Error, match="fsspec") as caught:
        _origins.bring("nowhere-at-all://bucket/x")
    assert "pip install" in caught.value.hint
    assert _origins.bring("/a/path") == "/a/path" and not _origins.is_address("C:\\data") and not _origins.is_address("C:/data")
