"""What a head can have a machine do that joins it: compute, and nothing that the machine's user did not offer."""

import contextlib
import hashlib
import hmac
import socket
import sys

import pytest
import wire
from wire_vectors import proof_input

from program import arguments, settings

SIZES = arguments(samples=512, features=8, classes=3, test=0)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_who_computes_gets_no_more_rights(motley):
    head = motley.start("train", "softmax", *SIZES, *settings(train_global_batch=32, train_steps=100000), "--run", "run",
                        "--device", "none", "--listen", "127.0.0.1:0", "--token-file", "token")
    joiner = motley.start("join", "--token-file", "token", "--name", "guest")
    head.wait_step(2)
    with open(f"/proc/{joiner.pid}/status", encoding="ascii") as status:
        assert "NoNewPrivs:\t1\n" in status
    joiner.interrupt()
    assert joiner.end() in (0, 130), joiner.story()


class Head(wire.Peer):
    """A head that says what it likes to a machine that joins it, without encryption."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.token = dict(plaintext=True, run=7, id=9, expires=0, spki=bytes(32), secret=bytes(range(16)),
                          port=self.listener.getsockname()[1], addresses=["127.0.0.1"])

    def answers(self, config):
        """Proves itself and sends the configuration of a run without a script, until the machine says why it leaves. It comes twice: the
        first time it asks for the files of a script."""
        self.listener.settimeout(30)
        for _ in range(2):
            self.socket, _ = self.listener.accept()
            self.socket.settimeout(30)
            with self.socket:
                assert [self.message()[0] for _ in range(2)] == [wire.HELLO, wire.PROOF]
                run = self.token["run"]
                mac_input = proof_input(b"head", bytes(32), bytes(32), bytes(32), run, self.token["id"], 1)
                mac = hmac.digest(self.token["secret"], mac_input, hashlib.sha256)
                self.send(wire.control(wire.PROOF_REPLY, wire.field(1, mac), run=run))
                self.send(wire.control(wire.RUN_SPEC, wire.field(1, config), run=run))
                said = [content for kind, content in self.closed() if kind == wire.BYE]
        return said[-1]


def config(*sizes, keys=""):
    return f'[model]\nkind = "softmax"\narguments = {list(sizes)}\n[train]\nsteps = 10\nglobal_batch = 8\n{keys}'.replace("'", '"')


@pytest.mark.parametrize("sent, named", [
    (config("samples=2000000000"), "samples"),
    (config("features=2000000000"), "features"),
    (config("classes=2000000000"), "classes"),
    (config("samples=-1"), "samples"),
    (config("samples=64", "file=/etc/passwd"), "file"),
    (config("samples=64", keys='[data]\nuri = "/etc/passwd"\n'), "data.uri"),
    (config("samples=64").replace("softmax", "torchscript"), "torchscript"),
], ids=lambda each: each if "\n" not in each else "sent")
def test_a_configuration_beyond_what_is_trained_is_refused_by_name(motley, sent, named):
    """Before anything of it is made."""
    head = Head()
    with contextlib.closing(head.listener):
        joiner = motley.start("join", wire.token_text(head.token), "--device", "cpu")
        said = head.answers(sent)
    assert joiner.end() != 0, joiner.story()
    assert named in joiner.error()["message"], joiner.story()
    assert any(named.encode() in each for each in said.values() if isinstance(each, bytes)), said
