"""What a head can have a machine do that joins it: compute, and nothing that the machine's user did not offer."""

import contextlib
import hashlib
import hmac
import pathlib
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest
import wire
from wire_vectors import frame_header, proof_input

from program import settings

MAKER = pathlib.Path(__file__).resolve().parents[1] / "parity" / "make_torchscript_models.py"
BLOB, SEGMENT_BYTES, HEARTBEAT_S = 10, 256 << 10, 0.3


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


@pytest.mark.parametrize("offer", [[], ["--data-dir", "elsewhere"]])
def test_no_file_is_opened_that_was_not_offered(head, motley, monkeypatch, offer):
    """It computes with what came from the head."""
    (motley.directory / "elsewhere").mkdir()
    monkeypatch.setenv("HOME", str(motley.directory / "home"))
    joiner = motley.start("join", "--token-file", "token", "--name", "guest", *offer)
    head.wait_step(2)
    copies = list(motley.directory.glob("home/.cache/motley/data/sets/*/tree/data/train/*/x.npy"))
    assert [copy.read_bytes() for copy in copies] == [(motley.directory / "data" / "x.npy").read_bytes()]
    joiner.interrupt()
    assert joiner.end() in (0, 130), joiner.story()


def test_what_was_offered_is(head, motley):
    joiner = motley.start("join", "--token-file", "token", "--name", "guest", "--data-dir", motley.directory / "data")
    head.wait_step(2)
    with open(f"/proc/{joiner.pid}/status", encoding="ascii") as status:
        assert "NoNewPrivs:\t1\n" in status
    joiner.interrupt()
    assert joiner.end() in (0, 130), joiner.story()


class Head(wire.Peer):
    """A head that says what it likes to the first machine that joins it, without encryption."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.token = dict(plaintext=True, run=7, id=9, expires=0, spki=bytes(32), secret=bytes(range(16)),
                          port=self.listener.getsockname()[1], addresses=["127.0.0.1"])

    def answers(self, config, file):
        """Proves itself, sends configuration and model file, and waits for what the machine says in the end."""
        self.listener.settimeout(30)
        self.socket, _ = self.listener.accept()
        self.socket.settimeout(30)
        assert [self.message()[0] for _ in range(2)] == [wire.HELLO, wire.PROOF]
        run, mac_input = self.token["run"], proof_input(b"head", bytes(32), bytes(32), bytes(32), self.token["run"], self.token["id"], 1)
        self.send(wire.control(wire.PROOF_REPLY, wire.field(1, hmac.digest(self.token["secret"], mac_input, hashlib.sha256)), run=run))
        sha256 = hashlib.sha256(file)
        spec = wire.field(1, config) + wire.field(2, sha256.hexdigest()) + wire.field(3, len(file))
        self.send(wire.control(wire.RUN_SPEC, spec, run=run))
        for at in range(0, len(file), SEGMENT_BYTES):
            body = file[at:at + SEGMENT_BYTES]
            self.send(frame_header(body, type=BLOB, run=run, subject=int.from_bytes(sha256.digest()[:8], "little"), offset=at,
                                   total=len(file)) + body)
        over = threading.Event()
        alive = threading.Thread(target=self.lives, args=(over,))
        alive.start()
        try:
            return next(content for kind, content in iter(self.message, None) if kind == wire.BYE)
        finally:
            over.set()
            alive.join()

    def lives(self, over):
        """So that the machine does not take it for dead while it loads the model."""
        while not over.wait(HEARTBEAT_S):
            self.send(wire.control(wire.HEARTBEAT, wire.field(1, 1), run=self.token["run"]))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    directory = tmp_path_factory.mktemp("models")
    subprocess.run([sys.executable, MAKER, directory], check=True)
    return directory


@pytest.mark.parametrize("name, found", [("file", "torch.from_file"), ("state", "__setstate__"), ("save", "torch.save")])
def test_a_model_file_that_would_write_is_not_run(motley, models, name, found):
    """Each of these writes to the file `written` as soon as it is loaded or called."""
    head = Head()
    config = ('[model]\nkind = "torchscript"\nfile = "model.pt"\n[data]\nuri = "synthetic:64:6:3"\ntest_uri = ""\n'
              '[train]\nsteps = 10\nglobal_batch = 8\n')
    with contextlib.closing(head.listener):
        joiner = motley.start("join", wire.token_text(head.token), "--device", "cpu")
        said = head.answers(config, (models / f"hostile-{name}.pt").read_bytes())
    assert joiner.end() != 0, joiner.story()
    assert found in joiner.error()["message"] and found.encode() in said[3], (joiner.story(), said)
    assert not (models / "written").exists()
