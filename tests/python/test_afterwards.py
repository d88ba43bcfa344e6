"""What the script holds after its run is the result: of the last step, whichever way it ended."""

import pathlib

import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional
from torch.utils.data import DataLoader

import cases
import motley
from test_body import BATCH, EPOCHS, in_its_own_directory, parts, plainly, run_of, same  # noqa: F401


def test_the_script_has_model_and_optimizer_as_after_the_last_step():
    model, optimizer, train = parts(lambda p: torch.optim.AdamW(p, lr=0.01))
    plain_model, plain_optimizer, _ = parts(lambda p: torch.optim.AdamW(p, lr=0.01))
    plainly(plain_model, plain_optimizer, train)
    for epoch in run_of(model, optimizer, train).epochs(EPOCHS):
        in_body = optimizer.state_dict()
    same(model, plain_model)
    for found in (optimizer.state_dict(), in_body):
        for number, state in plain_optimizer.state_dict()["state"].items():
            for name, value in state.items():
                torch.testing.assert_close(found["state"][number][name], value, rtol=1e-4, atol=1e-6)


def test_after_a_break_too():
    model, optimizer, train = parts()
    plain_model, plain_optimizer, _ = parts()
    plainly(plain_model, plain_optimizer, train, epochs=2)
    for epoch in run_of(model, optimizer, train).epochs(EPOCHS):
        if epoch.number == 2:
            break
    same(model, plain_model)
    torch.testing.assert_close(optimizer.state[model[0].weight]["momentum_buffer"],
                               plain_optimizer.state[plain_model[0].weight]["momentum_buffer"], rtol=1e-4, atol=1e-6)


def test_after_leases_the_model_has_the_last_update():
    model, optimizer, train = parts()
    plain_model, plain_optimizer, _ = parts()
    plainly(plain_model, plain_optimizer, train, epochs=2)
    run = motley.Run(model, None, DataLoader(train, BATCH, shuffle=True), optimizer, seed=cases.SEED)
    counted = set()
    for lease in run.leases(2):
        for x, y in lease:
            losses = functional.cross_entropy(model(x), y, reduction="none")
            losses.sum().backward()
            lease.add(losses.sum().item(), len(losses))
        counted.add((lease.step, lease.epoch))
    same(model, plain_model)
    steps = -(-len(train) // BATCH)
    assert counted == {(step, 1 + (step - 1) // steps) for step in range(1, 2 * steps + 1)}


def test_counters_go_on_from_a_model_that_was_trained_before():
    case = cases.normed()
    case.model.norm1.num_batches_tracked.fill_(7)
    run = run_of(case.model, case.optimizer, case.train)
    for _ in run.epochs(1):
        pass
    assert int(case.model.norm1.num_batches_tracked) == 7 + 5 and int(case.model.norm2.num_batches_tracked) == 5
    written, = sorted(pathlib.Path(".").glob("runs/*/checkpoints/step-*/model.safetensors"))[-1:]
    assert int(load_file(written)["norm1.num_batches_tracked"]) == 7 + 5


def test_leases_that_draw_are_refused():
    model, optimizer, train = parts()
    with pytest.raises(motley.Error, match="draws random numbers"):
        for lease in motley.Run(model, None, DataLoader(train, BATCH, shuffle=True), optimizer, seed=cases.SEED).leases(1):
            for x, y in lease:
                losses = functional.cross_entropy(model(x + torch.randn_like(x)), y, reduction="none")
                losses.sum().backward()
                lease.add(losses.sum().item(), len(losses))
