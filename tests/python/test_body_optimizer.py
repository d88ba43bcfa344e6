"""What the body of an epoch finds in the optimizer's state, and what it may not do with optimizers."""

import collections
import copy

import pytest
import torch

import motley
from test_body import EPOCHS, in_its_own_directory, parts, plainly, run_of, same  # noqa: F401


@pytest.mark.parametrize("kind", [lambda p: torch.optim.AdamW(p, lr=0.01), lambda p: torch.optim.RMSprop(p, lr=0.003)],
                         ids=["adamw", "rmsprop"])
def test_the_body_finds_the_optimizers_state_and_may_put_the_same_back(kind):
    model, optimizer, train = parts(kind)
    plain_model, plain_optimizer, _ = parts(kind)
    moments = []

    def note(plain, into):
        into.append([{name: value.clone() for name, value in plain.state[p].items()} for p in plain.param_groups[0]["params"]])

    plain_moments = []
    plainly(plain_model, plain_optimizer, train, after_epoch=lambda _: note(plain_optimizer, plain_moments))
    for _ in run_of(model, optimizer, train).epochs(EPOCHS):
        note(optimizer, moments)
        kept = copy.deepcopy(optimizer.state_dict())
        optimizer.load_state_dict(kept)
    for found, expected in zip(moments, plain_moments, strict=True):
        for one, other in zip(found, expected, strict=True):
            assert one.keys() == other.keys()
            for name, value in other.items():
                torch.testing.assert_close(one[name], value, rtol=1e-4, atol=1e-6)
    same(model, plain_model)


def clear(optimizer):
    optimizer.state.clear()


def begin_anew(optimizer):
    optimizer.state = collections.defaultdict(dict)


def zero(optimizer):
    for state in optimizer.state.values():
        state["momentum_buffer"].zero_()


def load_older(optimizer):
    older = optimizer.state_dict()
    older["state"] = {}
    optimizer.load_state_dict(older)


@pytest.mark.parametrize("change", [clear, begin_anew, zero, load_older])
def test_another_state_of_the_optimizer_is_named(change):
    model, optimizer, train = parts()
    with pytest.raises(motley.Error, match="the body of the epoch changed 'momentum_buffer' in the optimizer's state"):
        for _ in run_of(model, optimizer, train).epochs(2):
            change(optimizer)


def test_a_new_optimizer_in_the_body_is_named():
    model, optimizer, train = parts()
    with pytest.raises(motley.Error, match=r"made a new optimizer \(Adam\) of the model's parameters"):
        for _ in run_of(model, optimizer, train).epochs(2):
            optimizer = torch.optim.Adam(model.parameters())
    model, optimizer, train = parts()
    for _ in run_of(model, optimizer, train).epochs(2):
        probe = torch.nn.Linear(12, 2)
        torch.optim.SGD(probe.parameters(), lr=0.1)
