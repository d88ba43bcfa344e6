"""BatchNorm of several groups at once, as cards compute it, against torch's own of each group: values, moments, gradients and theirs."""

import conftest
import pytest
import torch
from torch.nn import functional

from motley._models import _normalised

CASES = {"images": ((200, 5, 4, 6), [32] * 6 + [8]), "rows": ((64, 7), [32, 32]), "sequences": ((40, 3, 9), [32, 8]),
         "one group": ((20, 3, 5), [20]), "single samples": ((3, 2, 4), [1, 1, 1])}


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(_normalised, "_one_by_one", _normalised._at_once)
    monkeypatch.setattr(_normalised, "_one_by_one_back", _normalised._at_once_back)


def inputs(shape, last, dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    x = (3 * torch.randn(shape, generator=generator) + 1.5).to(dtype)
    x = x.contiguous(memory_format=torch.channels_last) if last else x
    channels = shape[1]
    given = x, torch.linspace(0.5, 2, channels, dtype=dtype), torch.linspace(-1, 1, channels, dtype=dtype)
    return [each.requires_grad_() for each in given]


def expected_of(x, weight, bias, sizes, momentum):
    parts, moments = [], []
    for part in x.split(sizes):
        mean, var = torch.zeros_like(weight).detach(), torch.zeros_like(weight).detach()
        parts.append(functional.batch_norm(part, mean, var, weight, bias, True, momentum, 1e-5))
        moments.append((mean, var))
    return torch.cat(parts), [torch.stack(each) for each in zip(*moments, strict=True)]


@pytest.mark.parametrize("name, last", [*((name, False) for name in CASES), ("images", True)])
def test_each_group_is_what_torch_makes_of_it(at_once, name, last):
    shape, sizes = CASES[name]
    found, expected = [], []
    for results, ours in ((found, True), (expected, False)):
        x, weight, bias = inputs(shape, last)
        if ours:
            moved = _normalised.Moved(len(sizes), weight.detach())
            y = _normalised.Normalised.apply(x, weight, bias, moved, sizes, 0.1, 1e-5)
            moments = moved.from_zero()
            assert y.is_contiguous(memory_format=torch.channels_last) or not last
        else:
            y, moments = expected_of(x, weight, bias, sizes, 0.1)
        first = torch.autograd.grad((y.sin() * y).sum(), (x, weight, bias), create_graph=True)
        second = torch.autograd.grad(first[0].square().sum() + first[1].sum(), (x, weight))
        results += [y, *moments, *first, *second]
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_as_the_device_computes_it(name, affine):
    """In float32, by what that has for it, and without a gradient of the gradient."""
    shape, sizes = CASES[name]
    found, expected = [], []
    for results, ours in ((found, True), (expected, False)):
        dtype = torch.float32 if ours else torch.float64
        x, weight, bias = (each.detach().to(conftest.device).requires_grad_() for each in inputs(shape, False, dtype))
        if ours:
            moved = _normalised.Moved(len(sizes), weight.detach())
            y = _normalised.Normalised.apply(x, *((weight, bias) if affine else (None, None)), moved, sizes, 0.1, 1e-5)
            moments = moved.from_zero()
        else:
            y, moments = expected_of(x, weight, bias, sizes, 0.1)
            y = y if affine else torch.cat([functional.batch_norm(part, None, None, training=True) for part in x.split(sizes)])
        results += [y, *moments, *torch.autograd.grad((y.sin() * y).sum(), (x, weight, bias) if affine else (x,))]
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a.double(), b.double(), rtol=2e-4, atol=2e-4)


def test_without_weights_and_in_bf16(at_once):
    x = inputs((64, 6, 5, 5), False, torch.float32)[0].detach()
    alone = torch.cat([functional.batch_norm(part, None, None, None, None, True) for part in x.split(32)])
    plain = _normalised.Normalised.apply(x.requires_grad_(), None, None, None, [32, 32], 0.1, 1e-5)
    torch.testing.assert_close(plain, alone)
    half = x.detach().bfloat16().requires_grad_()
    found = _normalised.Normalised.apply(half, torch.ones(6), torch.zeros(6), None, [32, 32], 0.1, 1e-5)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), alone, rtol=0.02, atol=0.02)
    found.sum().backward()
    assert half.grad.dtype == torch.bfloat16
