"""Whose random numbers a loss draws: also those of a card, which has a generator of its own."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

import cases
import conftest
from motley._machines import _devices
from motley._models import _groups, _parts
from motley._samples import _data
from motley._trials import _inspect


@pytest.fixture
def card(monkeypatch):
    """The generator of a card that is in use."""
    generator = torch.Generator().manual_seed(5)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "default_generators", (generator,))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    return generator


def test_what_a_card_draws_is_torchs(card):
    before = card.get_state()
    with _data.RandomWatch() as watch:
        torch.rand(3, generator=card)
    assert watch.draws == ("torch",) and torch.equal(card.get_state(), before)
    with _data.RandomWatch() as watch:
        pass
    assert watch.draws == ()


def test_of_a_device_and_of_all(card):
    assert _devices.generators() == _devices.generators(torch.device("cuda")) == _devices.generators(torch.device("cuda:0"))
    assert _devices.generators(torch.device("cuda:0")) == [torch.default_generator, card]
    assert _devices.generators(torch.device("cpu")) == [torch.default_generator]


def found(model, loss):
    parts = _parts.together(model.to(conftest.device), loss)
    train = _data.BatchSource(DataLoader(cases.classes(300, 2), 60), "loader")
    return _inspect.inspect(lambda batch: parts.call(batch, step=1, epoch=1, state={}), parts.root, train, "fp32", True, {})


def classes(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x), y)


def test_dropout_splits_wherever_it_draws():
    torch.manual_seed(1)
    looked = found(nn.Sequential(nn.Linear(cases.FEATURES, 16), nn.Dropout(0.4), nn.Linear(16, 8)), classes)
    assert looked.draws == ("torch",) and looked.mixes


@pytest.mark.parametrize("turned", [False, True])
def test_a_group_draws_what_lies_in_memory_as_it_would_alone(turned):
    """Cards draw in the order of memory: the part of a group has no gaps, and its dimensions in the order that they have without the
    others; so has what is put together."""
    whole = torch.randn(7, 5, 3).transpose(0, 1) if turned else torch.randn(5, 7, 3)
    parts = [_groups._alone(part) for part in whole.split([2, 3])]
    alone = [torch.empty_like(torch.empty(7, size, 3).transpose(0, 1) if turned else torch.empty(size, 7, 3)) for size in (2, 3)]
    assert [part.stride() for part in parts] == [each.stride() for each in alone]
    joined = _groups._put_together(parts, 0, [2, 3])
    assert torch.equal(joined, whole) and joined.stride() == whole.stride()
