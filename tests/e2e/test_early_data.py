"""Recipes begin before all of their data are there: a joining machine computes with the samples that have come."""

import contextlib
import pathlib
import socket
import threading

import pytest

from conftest import arrays
from program import settings
from wire import parse_token, token_text

pytestmark = pytest.mark.usefixtures("home")

BLOCK = 1 << 20
SAMPLES, FEATURES = 4096, 2048  # 8 KiB each: 32 blocks
PASSES = 16 * BLOCK  # bytes that come before the rest is withheld
STEPS, BATCH = 20, 64  # ten blocks, in their order


@pytest.fixture
def data(tmp_path):
    return arrays(tmp_path / "data", SAMPLES, FEATURES)


class Withholding:
    """Stands between a head and who joins. It passes on so many bytes of the head's, and then of each connection a block at most."""

    def __init__(self, port):
        self._port = port
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self._open = []
        self._passed = 0
        threading.Thread(target=self._let_in, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._door.close()
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _let_in(self):
        with contextlib.suppress(OSError):
            while True:
                here, _ = self._door.accept()
                there = socket.create_connection(("127.0.0.1", self._port))
                self._open += [here, there]
                for source, sink, withheld in ((here, there, False), (there, here, True)):
                    threading.Thread(target=self._pass_on, args=(source, sink, withheld), daemon=True).start()

    def _pass_on(self, source, sink, withheld):
        passed = 0
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                passed += len(piece)
                self._passed += len(piece)
                if withheld and passed > BLOCK and self._passed > PASSES:
                    return
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)


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
