"""Steps of several workers that the head's device makes: those of the plain loop, and what crosses between device and host."""

import json

import pytest
import torch

import cases
import plain
from conftest import SCRIPTS, train
from motley._computing import _server
from program import settings
from test_parity import check_follows, loop


@pytest.mark.parametrize("name", ["groups", "epochs", "clipped", "tokens"])
def test_steps_on_the_device_follow_the_plain_loop(motley, name):
    case = cases.make(name)
    losses, tested = loop(case)
    program = train(motley, "joint_case.py", name, workers=2)
    assert "joint on the device" in program.text
    check_follows(motley, program, case, name, losses, tested)
    crossed = json.loads(next(line for line in program.text if line.startswith("crossed ")).removeprefix("crossed "))
    assert crossed["down"] == len(losses) * crossed["model"]
    assert not crossed["gradient_left"]
    motley.audit("run")


def test_goes_on_where_a_checkpoint_has_the_state_from_the_device(motley):
    case = cases.make("groups")
    losses, _ = loop(case)
    words = ["train", str(SCRIPTS / "joint_case.py"), "--run", "run", "--listen", "127.0.0.1:0", "--threads", "1", *["--device", "cpu"] * 2,
             *settings(train_min_workers=2, train_shares=[2, 1], train_verify=0,
                       train_checkpoint_seconds=0.1)]
    head = motley.start(*words, "groups", "dies")
    head.process.wait()
    again = motley.run(*words, "--resume", "groups")
    assert again.process.returncode == 0, again.story()
    assert "joint on the device" in head.text and "joint on the device" in again.text
    found = {**head.losses(), **again.losses()}
    assert plain.worst_loss(found, losses) <= 1e-5
    motley.audit("run")


def test_others_parts_are_added_in_their_order_as_they_came():
    class Bound:
        device_weights = torch.zeros(8)
        device_gradients = torch.arange(8, dtype=torch.float32)

    server = _server.Server(None, [], Bound())
    server._place = _server.ServerVectors(torch.zeros(8), torch.zeros(8), torch.zeros(8), torch.zeros(8), None)
    server._chunks = [(0, 4), (4, 4)]
    owner, address, largest = server.keep()
    assert largest == [3, 7]
    Bound.device_gradients.zero_()  # the next task begins
    exact, half = torch.full((4,), 0.5), torch.full((4,), 0.25, dtype=torch.bfloat16)

    def memory(values):
        return memoryview(bytearray(values.view(torch.uint8).numpy().tobytes()))

    server.sum([[(0, address), (0, memory(exact))], [(1, memory(half)), (0, address)]])
    assert server._place.device_gradients.tolist() == [0.5, 1.5, 2.5, 3.5, 4.25, 5.25, 6.25, 7.25]
    assert server.up == 16 + 8
    # One block: the scale 2^0 * 1.5, then codes.
    eighth = torch.tensor([129, *[2, 255], *[0] * 254], dtype=torch.uint8)
    fourth = torch.tensor([128, *[9 | 7 << 4], *[0x88] * 31], dtype=torch.uint8)
    server.sum([[(2, memory(eighth))], [(3, memory(fourth))]])
    assert server._place.device_gradients.tolist() == [3, -1.5, 0, 0, 1, 0, 0, 0]
    server.host = torch.zeros(8)
    server.fetch(address + 4 * 4, 4)
    assert server.host.tolist() == [4, 5, 6, 7, 0, 0, 0, 0] and server.down == 16
    Bound.device_gradients[5] = torch.nan
    assert server.keep()[2] == [0, torch.inf]
