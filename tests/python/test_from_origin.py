"""Blocks from the address that a file is from (motley join --origin): of servers as they are, and of whom this machine may ask."""

import hashlib
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import types

import pytest

from motley._content import _from_origin
from motley._content._from_origin import Block, Consent, FromOrigin, Unusable
from test_origins import Handler, Server

BLOCK = 100_000


class Kept(Handler):
    protocol_version = "HTTP/1.1"


class Heard:
    """What an origin says, and the blocks of a file that it is asked for."""

    def __init__(self, server, *words, content=None):
        self.content = server.content if content is None else content
        self.blocks = {hashlib.sha256(each).digest(): (at, each) for at in range(0, len(self.content), BLOCK)
                       for each in [self.content[at : at + BLOCK]]}
        self.came, self.wrong, self.opened, self.why = {}, 0, threading.Event(), ""
        self.all_came, self.on_block = threading.Event(), lambda number: None
        self.origin = FromOrigin(server.url, Consent.of(words or [host_of(server)]), len(self.content), self)

    def origin_opens(self):
        self.opened.set()

    def origin_brings(self, wanted, content):
        if hashlib.sha256(content).digest() != wanted:
            self.wrong += 1
            self.origin.close()
            self.all_came.set()
            return
        self.came[wanted] = content
        self.on_block(len(self.came))
        if len(self.came) == len(self.blocks):
            self.all_came.set()

    def origin_ends(self, why):
        self.why = why
        self.opened.set()
        self.all_came.set()

    def ask(self, wanted, waited_for=False):
        at, content = self.blocks[wanted]
        self.origin.ask(Block(wanted, at, len(content)), waited_for)

    def all(self):
        """Asks for every block; what came, and that it is the file."""
        for wanted in self.blocks:
            self.ask(wanted)
        self.origin.start()
        self.all_came.wait()
        self.origin.close()
        self.origin.join()
        return not self.why and not self.wrong and b"".join(self.came[each] for each in self.blocks) == self.content


def host_of(server):
    return "/".join(server.url.split("/")[:3])


@pytest.fixture
def server():
    with Server() as served:
        served.RequestHandlerClass = Kept
        served.redirect = ""
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        yield served
        served.shutdown()


@pytest.fixture
def elsewhere():
    """Another server of this machine, with the same file where a test gives it one."""
    with Server() as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield served
        served.shutdown()


def leads_to(server, where, status=302):
    class Leads(Kept):
        def do_GET(self):
            server.asked.append(self.headers.get("Range", ""))
            self.send_response(status)
            self.send_header("Location", where)
            self.send_header("Content-Length", "0")
            self.end_headers()

    server.RequestHandlerClass = Leads


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
def test_blocks_come_in_few_questions(server, version, monkeypatch):
    monkeypatch.setattr(Kept, "protocol_version", version)
    heard = Heard(server)
    assert heard.all()
    assert server.asked == ["bytes=0-0", *(f"bytes={at}-{min(at + 8 * BLOCK, 30 * BLOCK) - 1}" for at in range(0, 30 * BLOCK, 8 * BLOCK))]


def test_what_is_waited_for_comes_first_and_nothing_twice(server):
    heard = Heard(server)
    names = list(heard.blocks)
    for each in names[:5]:
        heard.ask(each)
    heard.ask(names[20], True)
    heard.ask(names[2], True)
    heard.on_block = lambda number: [heard.ask(each, True) for each in names] if number == 1 else None
    heard.origin.start()
    heard.all_came.wait()
    heard.origin.close()
    assert list(heard.came)[:3] == names[2:5]
    asked = sorted(tuple(map(int, re.findall(r"\d+", each))) for each in server.asked[1:])
    assert sum(last + 1 - first for first, last in asked) == len(heard.content), "no block twice"


@pytest.mark.parametrize("each, together", [(10, 1), (2, 8)])
def test_a_server_that_resets_each_so_many_requests(server, monkeypatch, each, together):
    monkeypatch.setattr(_from_origin, "TOGETHER", together)
    server.resets_each = each
    assert Heard(server).all()


def test_a_server_that_is_gone_is_given_up(server, monkeypatch):
    monkeypatch.setattr(_from_origin, "PAUSE_S", (0.0,) * 4)
    heard = Heard(server)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        heard.origin = FromOrigin(url + "/x", Consent.of([url]), 5, heard)
        assert not heard.all()
    assert "5 times in a row" in heard.why and not heard.came


def test_trouble_of_the_server_passes(server):
    statuses = iter([503, 429, 408, 500])

    class Busy(Kept):
        def do_GET(self):
            status = next(statuses, 0)
            if not status:
                return super().do_GET()
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

    server.RequestHandlerClass = Busy
    assert Heard(server).all()


def test_a_server_that_gives_no_parts(server):
    server.ranges = False
    heard = Heard(server)
    assert not heard.all()
    assert "no parts" in heard.why and not heard.came and len(server.asked) == 1


def test_a_file_that_is_another_from_the_beginning(server):
    heard = Heard(server)
    server.content, server.tag = os.urandom(len(server.content) + 1), '"two"'
    assert not heard.all()
    assert f"has {len(server.content)} bytes, on the head {len(heard.content)}" in heard.why and not heard.came


@pytest.mark.parametrize("tag", ['"one"', ""])
def test_a_file_that_becomes_another_meanwhile(server, tag):
    server.tag = tag

    def change(number):
        if number == 3:
            server.content, server.tag = os.urandom(len(server.content)), tag and '"two"'

    server.on_request = change
    heard = Heard(server)
    assert not heard.all()
    assert "another one by now" in heard.why if tag else heard.wrong == 1
    assert all(heard.blocks[wanted][1] == content for wanted, content in heard.came.items())


def test_a_flipped_byte(server):
    heard = Heard(server)
    changed = bytearray(server.content)
    changed[10 * BLOCK + 7] ^= 1
    server.content = bytes(changed)
    assert not heard.all()
    assert heard.wrong == 1 and len(heard.came) == 10


def test_what_is_not_there_is_asked_for_once(server):
    class Missing(Kept):
        def do_GET(self):
            server.asked.append("")
            self.send_error(404)

    server.RequestHandlerClass = Missing
    heard = Heard(server)
    assert not heard.all()
    assert heard.why == "HTTP 404" and len(server.asked) == 1


def test_a_server_that_answers_with_something_else(server):
    class Wrong(Kept):
        ranges = "bytes 5-5/3000000"

        def do_GET(self):
            self.send_response(206)
            self.send_header("Content-Range", self.ranges)
            self.send_header("Content-Length", "9")
            self.end_headers()
            self.wfile.write(b"123456789")

    server.RequestHandlerClass = Wrong
    for ranges, why in (("bytes 5-5/3000000", "another part"), ("bytes 0-0/*", "another part"), ("bytes 0-0/3000000", "more than it said")):
        Wrong.ranges = ranges
        heard = Heard(server)
        assert not heard.all()
        assert why in heard.why and not heard.came


def test_what_a_server_says_is_printed_as_text(server, monkeypatch):
    monkeypatch.setattr(_from_origin, "PAUSE_S", (0.0,) * 4)

    class Rude(Kept):
        def do_GET(self):
            self.wfile.write(b"\x1b[2J nothing\r\n\r\n")
            self.close_connection = True

    server.RequestHandlerClass = Rude
    heard = Heard(server)
    assert not heard.all()
    assert heard.why.isprintable()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_it_may_lead_to_another_host_that_was_named(server, elsewhere, status):
    elsewhere.content = server.content
    leads_to(server, elsewhere.url, status)
    assert Heard(server, host_of(server), host_of(elsewhere)).all()
    assert len(server.asked) == 1, "where it leads is asked from then on"


@pytest.mark.parametrize("words", [[], ["public"]])
def test_it_may_not_lead_to_a_private_address(server, elsewhere, words):
    elsewhere.content = server.content
    leads_to(server, elsewhere.url)
    heard = Heard(server, host_of(server), *words)
    assert not heard.all()
    assert ("no public address" if words else "does not name") in heard.why
    assert not elsewhere.asked


def test_where_it_leads_may_be_good_for_a_while_only(server, elsewhere):
    elsewhere.content = server.content
    leads_to(server, elsewhere.url)
    stale = [3]

    class Stale(Handler):
        def do_GET(self):
            if len(elsewhere.asked) == stale[0]:
                stale[0] = 0
                return self.send_error(403)
            return super().do_GET()

    elsewhere.RequestHandlerClass = Stale
    assert Heard(server, host_of(server), host_of(elsewhere)).all()
    assert len(server.asked) == 2


def test_it_may_not_lead_in_a_circle(server):
    leads_to(server, server.url)
    heard = Heard(server)
    assert not heard.all()
    assert "more than 5 times" in heard.why and len(server.asked) == 6


@pytest.fixture
def secure(server, tmp_path):
    """The same with TLS; `server.certificate` is what vouches for it."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl that makes a certificate")
    server.certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=nobody", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", server.certificate],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server.certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.url = server.url.replace("http:", "https:")
    return server


def test_a_certificate_has_to_be_vouched_for(secure, monkeypatch):
    monkeypatch.setattr(_from_origin, "PAUSE_S", (0.0,) * 4)
    heard = Heard(secure)
    assert not heard.all()
    assert "CERTIFICATE_VERIFY_FAILED" in heard.why and not secure.asked
    monkeypatch.setenv("SSL_CERT_FILE", str(secure.certificate))
    assert Heard(secure).all()
    secure.url = secure.url.replace("127.0.0.1", "localhost")
    heard = Heard(secure)
    assert not heard.all()
    assert "CERTIFICATE_VERIFY_FAILED" in heard.why


def test_from_https_nothing_leads_to_http(secure, elsewhere, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(secure.certificate))
    elsewhere.content = secure.content
    leads_to(secure, elsewhere.url)
    heard = Heard(secure, host_of(secure), host_of(elsewhere))
    assert not heard.all()
    assert "from https to http" in heard.why and not elsewhere.asked


@pytest.mark.parametrize("where", ["ftp://127.0.0.1/x", "file:///etc/passwd", "http://me:secret@127.0.0.1/x", "http://[::1",
                                   "http://127.0.0.1:99999/"])
def test_it_may_not_lead_to_what_is_no_such_address(server, where):
    leads_to(server, where)
    heard = Heard(server)
    assert not heard.all()
    assert "secret" not in heard.why and len(server.asked) == 1


def test_private_addresses_are_told_from_public_ones():
    private = ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
               "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
               "64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::", "2002:a00:1::1", "2001:db8::1", "host"]
    assert [each for each in private if _from_origin.is_public(each)] == []
    public = ["93.184.215.14", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
    assert [each for each in public if not _from_origin.is_public(each)] == []


@pytest.mark.parametrize("found, allowed", [(["8.8.8.8", "2606:4700::1111"], True), (["8.8.8.8", "10.0.0.1"], False), (["::1"], False)])
def test_one_address_of_a_name_that_is_private_is_enough(monkeypatch, found, allowed):
    answers = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 443)) for each in found]
    monkeypatch.setattr(_from_origin.socket, "getaddrinfo", lambda *_, **__: answers)
    address = _from_origin.parse("https://example.org/x")
    if allowed:
        assert Consent.of(["public"]).resolve(address) == found
    else:
        with pytest.raises(Unusable, match="no public address"):
            Consent.of(["public"]).resolve(address)
    assert Consent.of(["https://EXAMPLE.org"]).resolve(address) == found, "a host that was named may be anywhere"


@pytest.mark.parametrize("word", ["https://example.org:444", "http://example.org", "https://example.org.evil", "https://other"])
def test_a_host_that_was_named_is_that_host_alone(word):
    with pytest.raises(Unusable, match="does not name"):
        Consent.of([word]).resolve(_from_origin.parse("https://example.org/x"))


def test_names_that_cannot_be_are_no_bug():
    with pytest.raises(Unusable):
        Consent.of(["public"]).resolve(types.SimpleNamespace(scheme="http", host="a" * 70, port=80, named=""))
