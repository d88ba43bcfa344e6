"""What a script changes beside its run, where no other machine would see it, and what nobody would call around a step: refused by name."""

import argparse
import fractions
import multiprocessing
import types

import pytest
import torch
from torch.nn import functional

import cases
import motley
from motley._runs import _callbacks, _watched
from motley._trials import _traces, _trial
from test_body import EPOCHS, in_its_own_directory, parts, run_of  # noqa: F401

KL = 0.0


class Settings:
    scale = 1.0


ARGUMENTS, WEIGHTS = argparse.Namespace(kl=0.0), [1.0] * 300
TARGET = cases.mlp()


def weighted(model, batch):
    with torch.no_grad():
        wanted = TARGET(batch[0])
    loss = cases.cross_entropy(model, batch) + 0.1 * functional.mse_loss(model(batch[0]), wanted)
    return loss * (1 + KL) * (1 + ARGUMENTS.kl) * Settings.scale * WEIGHTS[0] * weighted.scale


weighted.scale = 1.0


def perform(code, **names):
    """A line of a script; the names as it left them."""
    exec(code, globals(), names)
    return names


REFUSED = [
    ("global KL; KL += 0.5", "KL", "state="),
    ("Settings.scale += 0.5", "Settings.scale", "state="),
    ("ARGUMENTS.kl += 0.5", "Namespace.kl", "state="),
    ("weighted.scale += 0.5", "weighted.scale", "state="),
    ("WEIGHTS[0] += 0.5", "WEIGHTS", "state="),
    ("for parameter in TARGET.parameters(): parameter.data.mul_(0.9)", "Linear.(weight|bias)", "state="),  # as much Q-learning code does it
    ("model.scale.mul_(2)", "scale of the model", "state="),
    ("model[1] = torch.nn.Sigmoid()", r"1 \(Sequential\) of the model", "another motley.Run"),
    ("for parameter in model.parameters(): parameter.data.clamp_(-0.01, 0.01)", "0.weight", "parametrize"),
    ("model[0].requires_grad_(False)", "requires_grad of 0.weight", "set_lr"),
    ("optimizer.param_groups[0]['weight_decay'] = 0.1", "weight_decay", "new optimizer"),
    ("optimizer.param_groups[0]['momentum'] = 0.5", "momentum", "new optimizer"),  # as CyclicLR and OneCycleLR do
    ("train.tensors[0].mul_(2)", "tensors|sample", "HeadTensors|state="),
]


@pytest.mark.parametrize("code, what, remedy", REFUSED)
def test_what_other_machines_would_not_see_is_refused_by_name(code, what, remedy):
    model, optimizer, train = parts()
    model.register_buffer("scale", torch.ones(()))
    bodies = 0
    with pytest.raises(motley.Error, match=what) as raised:
        for _ in run_of(model, optimizer, train, loss=weighted).epochs(EPOCHS):
            bodies += 1
            perform(code, model=model, optimizer=optimizer, train=train)
    assert bodies == 1 and any(each in raised.value.hint for each in remedy.split("|"))


class Decaying(torch.optim.lr_scheduler.LRScheduler):
    def get_lr(self):
        self.optimizer.param_groups[0]["weight_decay"] = 0.1 * self.last_epoch
        return [0.1]


AROUND_STEPS = [
    ("optimizer.register_step_post_hook(lambda *_: None)", "has hooks on its steps", "on_step"),
    ("model[0].weight.register_post_accumulate_grad_hook(lambda _: None)", "0.weight has a hook", "register_hook"),
    ("optimizer.step = lambda step=optimizer.step: step()", "step was replaced", "a subclass of SGD"),
    ("schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=8)", "after each step, or after each epoch",
     "schedule_every="),
    ("schedule = Decaying(optimizer)", "changes weight_decay", "another motley.Run"),
]


@pytest.mark.parametrize("code, what, remedy", AROUND_STEPS)
def test_what_nobody_would_call_around_a_step_is_refused(code, what, remedy):
    model, optimizer, train = parts()
    schedule = perform(code, model=model, optimizer=optimizer, schedule=None)["schedule"]
    with pytest.raises(motley.Error, match=what) as raised:
        list(run_of(model, optimizer, train, schedule=schedule).epochs(EPOCHS))
    assert remedy in raised.value.hint


BETWEEN = [
    ("optimizer.param_groups[0]['lr'] *= 0.9", "learning rate", "schedule="),
    ("run.state['scale'] += 0.1", "run.state", "`step`"),
    ("global KL; KL += 0.5", "the global KL", "`step`"),
    ("for parameter in model.parameters(): parameter.data.clamp_(-0.01, 0.01)", "0.weight of the model", "parametrize"),
    ("for average, weight in zip(TARGET.parameters(), model.parameters()): average.data.lerp_(weight.data, 0.1)", "Linear.weight",
     "ema=0.999"),
]


@pytest.mark.parametrize("code, what, remedy", BETWEEN)
def test_what_on_step_changes_beside_the_run_is_refused_by_name(code, what, remedy):
    model, optimizer, train = parts()
    steps = []

    def on_step(model, step):
        steps.append(step.number)
        perform(code, model=model, run=run, optimizer=optimizer)

    run = run_of(model, optimizer, train, loss=weighted, state={"scale": 1.0}, on_step=on_step)
    with pytest.raises(motley.Error, match=what) as raised:
        list(run.epochs(1))
    assert steps == [1] and remedy in raised.value.hint


@pytest.mark.parametrize("at", [1, 3])
def test_what_nobody_walks_to_shows_after_on_step_too(at, monkeypatch):
    monkeypatch.setattr(_callbacks, "LOOKS_PART", 1e9)
    model, optimizer, train = parts()

    def on_step(model, step):
        SHARED.value += 0.1 * (step.number == at)

    with pytest.raises(motley.Error, match="on_step changed SHARED.*the loss of 8 samples was") as raised:
        list(run_of(model, optimizer, train, loss=scaled_by_a_shared_number, on_step=on_step).epochs(1))
    assert "`step`" in raised.value.hint


def test_what_on_step_leaves_in_another_mode_is_refused():
    model, optimizer, train = parts()
    with pytest.raises(motley.Error, match=r"on_step left \w+ in eval\(\)"):
        list(run_of(model, optimizer, train, on_step=lambda model, step: model.eval()).epochs(1))


def test_looks_after_on_step_are_few(monkeypatch):
    decided, look, may_look = [], _watched.Watched._look, _callbacks._Beside._may_look
    now = [1.0]

    def slowly(self):
        now[0] += 0.1  # seconds
        return look(self)

    monkeypatch.setattr(_callbacks, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(_watched.Watched, "_look", slowly)
    monkeypatch.setattr(_callbacks._Beside, "_may_look", lambda self: decided.append(may_look(self)) or decided[-1])
    model, optimizer, train = parts()
    list(run_of(model, optimizer, train, on_step=lambda model, step: None).epochs(2))
    assert decided == [True] + [False] * 9


def test_callbacks_do_not_set_the_learning_rate():
    class Warm:
        def on_step(self, step):
            optimizer.param_groups[0]["lr"] = 0.01 * step.number

    model, optimizer, train = parts()
    with pytest.raises(motley.Error, match="a callback's on_step changed the optimizer's learning rate"):
        list(run_of(model, optimizer, train, callbacks=[Warm()]).epochs(1))


SHARED = multiprocessing.Value("d", 0.1)


def by_gradient_alone(model, batch):
    term = model(batch[0]).square().mean()
    return cases.cross_entropy(model, batch) + SHARED.value * (term - term.detach())


def scaled_by_a_shared_number(model, batch):
    return (1 + SHARED.value) * cases.cross_entropy(model, batch)


@pytest.mark.parametrize("loss", [by_gradient_alone, scaled_by_a_shared_number])
def test_what_nobody_walks_to_shows_in_the_loss_or_in_its_gradient(loss, monkeypatch):
    looks, gradient = [], _trial.Trial.gradient

    def seen(trial, *arguments, **named):
        looks.append(named.get("backward"))
        return gradient(trial, *arguments, **named)

    monkeypatch.setattr(_trial.Trial, "gradient", seen)
    model, optimizer, train = parts()
    with pytest.raises(motley.Error, match="SHARED.*the (gradient or the score|loss) of 8 samples"):
        for epoch in run_of(model, optimizer, train, loss=loss).epochs(EPOCHS):
            SHARED.value += 0.1 * (epoch.number == 2)
    assert set(looks[-4:]) == {loss is by_gradient_alone}


@pytest.mark.parametrize(("loss", "follow"), [
    (cases.cross_entropy, True), (weighted, False), (by_gradient_alone, False), (scaled_by_a_shared_number, True),
    (lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]) * float(fractions.Fraction(1, 2)), False),
    (lambda model, batch: cases.cross_entropy(model, batch) * pytest.approx(1).expected, False)])
def test_when_a_gradient_can_change_alone(loss, follow):
    model = cases.mlp()
    assert _traces.Traces({"loss": loss, "model": model}, model).gradients_follow() is follow
    model[0].register_full_backward_hook(lambda *_: None)
    assert not _traces.Traces({"loss": loss, "model": model}, model).gradients_follow()
