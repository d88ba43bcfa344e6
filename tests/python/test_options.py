"""Options of optimizers, and rates of schedules, in every type that torch's arithmetic takes; what it refuses is refused by name."""

import decimal
import fractions

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import motley
from test_body import in_its_own_directory, parts, plainly, run_of, same  # noqa: F401

f32 = np.float32
SGD, AdamW, LambdaLR = torch.optim.SGD, torch.optim.AdamW, torch.optim.lr_scheduler.LambdaLR
OPTIONS = {
    "lr of NumPy": lambda p: AdamW(p, lr=f32(0.01)),
    "a whole lr of NumPy": lambda p: SGD(p, lr=np.int64(1)),
    "an array with one element": lambda p: SGD(p, lr=np.array(0.1)),
    "momentum": lambda p: SGD(p, lr=0.1, momentum=f32(0.9), dampening=f32(0.5)),
    "weight decay": lambda p: SGD(p, lr=0.1, weight_decay=f32(0.1)),
    "eps": lambda p: torch.optim.Adam(p, lr=0.01, eps=f32(0.01)),
    "a fraction": lambda p: AdamW(p, lr=fractions.Fraction(1, 64)),
    "betas as a list": lambda p: AdamW(p, lr=0.01, betas=[0.5, 0.9]),
    "betas of NumPy, whose powers torch rounds": lambda p: AdamW([{"params": p, "betas": (f32(0.9), f32(0.99))}], lr=0.01),
    "betas as tensors": lambda p: AdamW(p, lr=0.01, betas=(torch.tensor(0.8), torch.tensor(0.99)), foreach=False),
    "float16, in which decay vanishes": lambda p: AdamW(p, lr=np.float16(0.001), weight_decay=0.1),
    "of a group": lambda p: SGD([{"params": q, "lr": f32(0.1 * n)} for n, q in enumerate(p)], lr=0.05),
    "of an optimizer that runs on the head": lambda p: torch.optim.NAdam(p, lr=f32(0.01), betas=[0.5, 0.9]),
}


@pytest.mark.parametrize("kind", OPTIONS.values(), ids=OPTIONS)
def test_options_are_numbers_of_any_type(kind):
    model, optimizer, train = parts(kind)
    plain_model, plain_optimizer, _ = parts(kind)
    plainly(plain_model, plain_optimizer, train, epochs=2)
    for _ in run_of(model, optimizer, train).epochs(2):
        pass
    same(model, plain_model, 1e-6)


REFUSED = {
    "a fraction, which SGD adds": (lambda p: SGD(p, lr=fractions.Fraction(1, 64)), "SGD makes no step .* TypeError"),
    "a decimal": (lambda p: AdamW(p, lr=decimal.Decimal("0.01")), "AdamW makes no step .* TypeError"),
    "three betas": (lambda p: AdamW(p, betas=(0.9, 0.9, 0.99)), "AdamW makes no step .* ValueError"),
}


@pytest.mark.parametrize("kind, what", REFUSED.values(), ids=REFUSED)
def test_what_torch_refuses_is_refused_at_the_start(kind, what):
    model, optimizer, train = parts(kind)
    with pytest.raises(motley.Error, match=what):
        run_of(model, optimizer, train)


def set_group(optimizer, run, value):
    optimizer.param_groups[0]["lr"] = value


def set_lr(optimizer, run, value):
    run.set_lr(value)


@pytest.mark.parametrize("how", [set_group, set_lr])
def test_the_body_sets_numbers_of_any_type(how):
    model, optimizer, train = parts()
    plain_model, plain_optimizer, _ = parts()
    plainly(plain_model, plain_optimizer, train, after_epoch=lambda _: set_group(plain_optimizer, None, float(f32(0.01))), epochs=2)
    run = run_of(model, optimizer, train)
    for _ in run.epochs(2):
        how(optimizer, run, f32(0.01))
    same(model, plain_model, 1e-6)


@pytest.mark.parametrize("how, value, what", [
    (set_group, fractions.Fraction(1, 64), "SGD makes no step"), (set_group, "0.1", "SGD makes no step"),
    (set_group, np.float16(0.1), "gives the optimizer its lr in float16"), (set_lr, "0.1", "set_lr: lr: expected a number"),
    (set_lr, torch.zeros(2), "set_lr: lr: expected a number")])
def test_what_the_body_sets_and_is_no_number_is_refused(how, value, what):
    model, optimizer, train = parts()
    run = run_of(model, optimizer, train)
    with pytest.raises(motley.Error, match=what):
        for _ in run.epochs(2):
            how(optimizer, run, value)


def test_betas_that_the_body_changes_in_place_are_noticed():
    model, optimizer, train = parts(lambda p: AdamW([{"params": p, "betas": [0.9, 0.99]}]))
    with pytest.raises(motley.Error, match=r"changed betas of the optimizer's group 0 from \(0.9, 0.99\) to \(0.5, 0.99\)"):
        for _ in run_of(model, optimizer, train).epochs(2):
            optimizer.param_groups[0]["betas"][0] = 0.5


TABLE = np.linspace(0.1, 0.01, 15, dtype=f32)
SCHEDULES = {
    "scheduler": lambda o: LambdaLR(o, lambda step: TABLE[min(step, 14)]),
    "function": lambda _: lambda step: TABLE[min(step, 14)],
    "tensor": lambda _: lambda step: torch.tensor(TABLE)[min(step, 14)],
}


@pytest.mark.parametrize("make", SCHEDULES.values(), ids=SCHEDULES)
def test_a_schedule_takes_rates_from_a_table_in_float32(make):
    model, optimizer, train = parts(lambda p: SGD(p, lr=1.0, momentum=0.9))
    plain_model, plain_optimizer, _ = parts(lambda p: SGD(p, lr=float(TABLE[0]), momentum=0.9))
    rates = iter([*map(float, TABLE[1:]), 0.0])
    plainly(plain_model, plain_optimizer, train, after_step=lambda: set_group(plain_optimizer, None, next(rates)), epochs=3)
    for _ in run_of(model, optimizer, train, schedule=make(optimizer), schedule_every="step").epochs(3):
        pass
    same(model, plain_model, 1e-6)


def ends(step):
    if step > 4:
        raise ValueError(f"no rate for step {step}")
    return 1.0


ENDING = {
    "OneCycleLR": (lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=5), "OneCycleLR goes 5 steps on, and .* 15 steps on"),
    "a function in LambdaLR": (lambda o: LambdaLR(o, ends), "LambdaLR goes 4 steps on.* ValueError: no rate for step 5"),
    "a table in LambdaLR": (lambda o: LambdaLR(o, [1.0, 0.5].__getitem__), "LambdaLR goes 1 steps on.* IndexError"),
    "a function": (lambda o: ends, "the function failed for step 5: ValueError: no rate"),
    "words": (lambda o: lambda step: "0.1", "the learning rate: expected a number, found str"),
}


@pytest.mark.parametrize("make, what", ENDING.values(), ids=ENDING)
def test_a_schedule_that_ends_too_soon_is_refused_at_the_start(make, what):
    model, optimizer, train = parts()
    with pytest.raises(motley.Error, match=what):
        next(run_of(model, optimizer, train, schedule=make(optimizer), schedule_every="step").epochs(3))


def test_a_schedule_may_end_with_the_run():
    model, optimizer, train = parts()
    plain_model, plain_optimizer, _ = parts()
    schedule, plain_schedule = (torch.optim.lr_scheduler.OneCycleLR(each, 0.1, total_steps=10) for each in (optimizer, plain_optimizer))
    plainly(plain_model, plain_optimizer, train, after_step=plain_schedule.step, epochs=2)
    for _ in run_of(model, optimizer, train, schedule=schedule, schedule_every="step").epochs(2):
        pass
    same(model, plain_model)
    assert schedule.last_epoch == 10


def test_sparse_gradients_are_named():
    embedding = nn.Embedding(12, 4, sparse=True)
    data = torch.utils.data.TensorDataset(torch.randint(0, 12, (60, 5)), torch.randint(0, 4, (60,)))

    def loss(model, batch):
        return functional.cross_entropy(model(batch[0]).mean(1), batch[1])

    run = motley.Run(embedding, loss, torch.utils.data.DataLoader(data, 30), torch.optim.SparseAdam(list(embedding.parameters())))
    with pytest.raises(motley.Error, match="SparseAdam updates the rows that a batch has") as raised:
        next(run.epochs(1))
    assert "sparse=False" in raised.value.hint


def test_several_optimizers_are_one_with_groups():
    model, optimizer, train = parts()
    with pytest.raises(motley.Error, match="found tuple") as raised:
        run_of(model, (optimizer, optimizer), train)
    assert "a group for each" in raised.value.hint


def test_who_freezes_outside_of_a_body_is_told_so():
    with pytest.raises(motley.Error, match="^freeze: the run is not in the body") as raised:
        run_of(*parts()).freeze(0)
    assert "run.freeze(" in raised.value.hint


class Around(torch.optim.Optimizer):
    """Wraps another, as published ones do, without a word to Optimizer.__init__."""

    def __init__(self, inner):
        self.inner, self.param_groups, self.state, self.defaults = inner, inner.param_groups, inner.state, inner.defaults

    def zero_grad(self, set_to_none=True):
        self.inner.zero_grad(set_to_none)

    def step(self, closure=None):
        torch.nn.utils.clip_grad_value_([p for group in self.param_groups for p in group["params"]], 0.01)
        self.inner.step()


def test_a_wrapper_of_an_optimizer_makes_its_steps():
    test_options_are_numbers_of_any_type(lambda p: Around(SGD(p, lr=0.1, momentum=0.9)))


class Packed(torch.Tensor):
    """A tensor that says float32 and is not, as that of a quantised state."""


class Packing(SGD):
    def step(self, closure=None):
        super().step(closure)
        for state in self.state.values():
            state["momentum_buffer"] = state["momentum_buffer"].as_subclass(Packed)


class Locked(SGD):
    def __init__(self, parameters):
        super().__init__(parameters, lr=0.1)
        self.numbers = (number for number in range(3))


@pytest.mark.parametrize("kind, what", [
    (lambda p: Packing(p, lr=0.1, momentum=0.9), r"Packing keeps 'momentum_buffer' \(Packed \[.*\]\) of a parameter"),
    (Locked, "Locked cannot be copied: TypeError")])
def test_an_optimizer_that_cannot_be_resumed_is_named(kind, what):
    model, optimizer, train = parts(kind)
    with pytest.raises(motley.Error, match=what):
        next(run_of(model, optimizer, train).epochs(1))


def of_weights(kind):
    return lambda p: kind([q for q in p if q.dim() == 2], lr=0.01)


@pytest.mark.parametrize("kind, told", [(torch.optim.Muon, True), (torch.optim.RMSprop, False), (torch.optim.Adafactor, False)])
def test_the_start_says_what_turns_rounding_into_more(capfd, kind, told):
    model, optimizer, train = parts(of_weights(kind))
    next(run_of(model, optimizer, train).epochs(1))
    assert ("makes a change of a gradient" in capfd.readouterr().err) == told
