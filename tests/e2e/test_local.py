"""Processes of one machine: they find each other without the network."""

import socket
import sys

import pytest
import wire

from program import settings


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: its abstract local sockets")
def test_a_worker_on_the_machine_of_the_head_needs_no_network(motley):
    head = motley.start("train", "softmax", "--device", "none", "--run", "head", "--listen", "127.0.0.1:0",
                        *settings(train_steps=9, train_global_batch=32))
    token = wire.parse_token(head.wait_event("run")["join"])
    with socket.socket() as free:  # bound, but nobody listens: connections are refused
        free.bind(("127.0.0.1", 0))
        worker = motley.start("join", wire.token_text({**token, "port": free.getsockname()[1]}))
        assert worker.end() == 0, worker.story()
    assert head.end() == 0, head.story()
    assert head.named("done")[0]["steps"] == 9
