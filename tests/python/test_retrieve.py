"""What the core downloads through Python: whole or not at all, and never from https to http."""

import http.server
import json
import threading
import urllib.error
import urllib.request

import pytest

from motley import _core
from motley._content import _retrieve

CONTENT = b"what was published"


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/missing":
            self.send_error(404)
            return
        if self.path.startswith("/round"):
            self.send_response(302)
            self.send_header("Location", "/round")
            self.end_headers()
            return
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/file")
            self.end_headers()
            return
        self.send_response(200)
        if self.path != "/unsaid":
            self.send_header("Content-Length", str(len(CONTENT) + (5 if self.path == "/short" else 0)))
        self.end_headers()
        self.wfile.write(CONTENT)

    def log_message(self, *_):
        pass


@pytest.fixture
def origin(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def taken(url):
    pieces = []

    def take(piece, total):
        pieces.append((piece, total))
        return True

    why = _retrieve.retrieve(url, take)
    return why, b"".join(piece for piece, _ in pieces), {total for _, total in pieces}


@pytest.mark.parametrize("path, total", [("/file", len(CONTENT)), ("/moved", len(CONTENT)), ("/unsaid", 0)])
def test_brings_what_is_there(origin, path, total):
    assert taken(origin + path) == ("", CONTENT, {total})


@pytest.mark.parametrize("path, word", [("/missing", "404"), ("/short", "18 of 23"), ("/round", "redirect")])
def test_says_why_there_is_nothing(origin, path, word):
    why, _, _ = taken(origin + path)
    assert word in why


def test_stops_when_it_is_not_taken(origin):
    assert _retrieve.retrieve(origin + "/file", lambda piece, total: False)


def test_opens_no_files(tmp_path):
    (tmp_path / "secret").write_bytes(CONTENT)
    why, content, _ = taken(f"file://{tmp_path}/secret")
    assert why and content == b""


@pytest.mark.parametrize("came_from, leads_to, goes", [("https://a.example/x", "http://a.example/x", False),
                                                       ("https://a.example/x", "https://b.example/x", True),
                                                       ("http://a.example/x", "https://a.example/x", True)])
def test_is_not_led_from_https_to_http(came_from, leads_to, goes):
    redirects = _retrieve.Redirects()
    asked = urllib.request.Request(came_from)
    if goes:
        assert redirects.redirect_request(asked, None, 302, "Found", {}, leads_to).full_url == leads_to
    else:
        with pytest.raises(urllib.error.URLError):
            redirects.redirect_request(asked, None, 302, "Found", {}, leads_to)
