"""What is done for a device whose answers cannot be taken as they come. There is no Mac here: the CPU is taken for one, with its faults."""

import pytest
import torch
from torch.nn import functional as F

from driving import run
from motley._computing import _care
from test_computation import Task, make


@pytest.fixture
def mac(monkeypatch):
    monkeypatch.setattr(_care, "of", _care.Care)


class Filled(Task):
    """Passes of `full` samples and of `odd`: what is left goes through several times."""

    full, odd = 32, 8

    def computed_by(self, computation):
        sizes, at = [], 0
        most, _ = computation.open(self)
        assert most >= self.full
        try:
            computation.start(self.bring(0, len(self.flat)))
            while at < self.count:
                left = self.count - at
                size = next(each for each in (32, 8, 4, 2, 1) if each <= left)
                repeats = max(1, self.odd // size)
                assert computation.forward(at, size, self.count, *[repeats] * (repeats > 1))[0]
                computation.backward(False)
                sizes.append(size * repeats)
                at += size
            fault, sums = computation.fault(), computation.sums()
            computation.finish(self.count)
        finally:
            computation.close()
        return sizes, fault, sums, computation.gradients.clone()


@pytest.mark.parametrize("name", ["epochs", "tokens"])
@pytest.mark.parametrize("count", [32, 45, 71])
def test_passes_that_are_filled_up_come_to_the_same(mac, name, count):
    _, plain, flat = make(name)
    task = Task(plain, flat, count)
    _, weight, loss_sum, _ = run(plain, task)
    _, computation, flat = make(name)
    sizes, fault, sums, gradients = Filled(computation, flat, count).computed_by(computation)
    assert set(sizes) <= {32, 8} and fault is None
    assert sums[:2] == pytest.approx((weight, loss_sum), rel=1e-5)
    torch.testing.assert_close(gradients, plain.gradients, rtol=1e-5, atol=1e-4)


def test_the_scores_of_passes_that_are_filled_up_are_those_of_the_samples(mac):
    _, plain, flat = make("epochs")
    task = Task(plain, flat, 45)
    task.kind = "evaluate"
    expected = run(plain, task)
    _, computation, flat = make("epochs")
    task = Task(computation, flat, 45)
    task.kind = "evaluate"
    computation.open(task)
    computation.start(task.bring(0, len(flat)))
    for at, size, repeats in ((0, 32, 1), (32, 8, 1), (40, 4, 2), (44, 1, 8)):
        assert computation.forward(at, size, 45, *[repeats] * (repeats > 1))[0]
    weight, loss_sum, scores = computation.sums()
    computation.close()
    assert (weight, loss_sum) == pytest.approx(expected[1:3], rel=1e-5) and scores == pytest.approx(expected[3], rel=1e-5)


@pytest.mark.parametrize("lost", [0, 3, 9])
def test_work_that_was_never_done_shows_in_the_canary(lost):
    care = _care.Care(torch.device("cpu"))
    for _ in range(50):  # tasks
        care.begin()
        assert care.fault() is None
        for _ in range(10):
            care.mark()
        assert care.fault() is None
    care.begin()
    for number in range(10):
        before = care._sum.clone()
        care.mark()
        if number == lost:
            care._sum.copy_(before)
    assert "expected" in care.fault()
    care.begin()
    care._sum[4096:].zero_()  # all but the first page
    assert care._expected == 0 or care.fault()


def test_an_error_of_the_driver_while_it_is_waited_for_is_a_fault():
    care = _care.Care(torch.device("cpu"))
    care.begin()

    class Broken:
        def copy_(self, _):
            raise RuntimeError("command buffer exited with error status")

    care._seen = Broken()
    assert care.fault() == "command buffer exited with error status"


class Product(torch.autograd.Function):
    """A matmul whose backward pass reads an expanded gradient as if it were whole, as a kernel of Metal did: all but its first number is
    garbage."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        if 0 in gradient.stride():
            first = gradient.flatten()[0].item()
            gradient = torch.zeros(gradient.shape)
            gradient.view(-1)[0] = first
        return gradient @ weight.T, x.T @ gradient


@pytest.mark.parametrize("reduced", [lambda y: y.sum() / len(y), lambda y: y.sum(-1).mean()])
def test_gradients_that_are_handed_down_are_whole(reduced):
    torch.manual_seed(0)
    x, weight = torch.randn(8, 5), torch.randn(5, 3, requires_grad=True)

    def gradient(product, careful):
        weight.grad = None
        loss = reduced(product(x, weight))
        if careful:
            _care.Care(torch.device("cpu")).hand_down_whole(loss)
        loss.backward(torch.full_like(loss, 8.0))
        return weight.grad.clone()

    right = gradient(torch.matmul, False)
    assert not torch.allclose(gradient(Product.apply, False), right)  # the fault is there
    torch.testing.assert_close(gradient(Product.apply, True), right)


def test_other_devices_are_taken_as_they_come():
    for device in ("cpu", "cuda:0"):
        care = _care.of(torch.device(device))
        loss = F.mse_loss(torch.ones(2, requires_grad=True), torch.zeros(2))
        care.begin(), care.mark(), care.hand_down_whole(loss)
        assert care.asked(True) is None and care.fault() is None
