"""What a script changes beside its run, where no other machine would see it, and what nobody would call around a step: refused by name."""

import argparse

import pytest
import torch
from torch.nn import functional

import cases
import motley
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


def change_global(model, optimizer, train):
    global KL
    KL += 0.5


def change_weights(model, optimizer, train):
    for parameter in model.parameters():
        parameter.data.clamp_(-0.01, 0.01)


def change_decay(model, optimizer, train):
    optimizer.param_groups[0]["weight_decay"] = 0.1


def change_freezing(model, optimizer, train):
    model[0].requires_grad_(False)


def change_data(model, optimizer, train):
    train.tensors[0].mul_(2)


def change_class(model, optimizer, train):
    Settings.scale += 0.5


def change_arguments(model, optimizer, train):
    ARGUMENTS.kl += 0.5


def change_function(model, optimizer, train):
    weighted.scale += 0.5


def change_long_list(model, optimizer, train):
    WEIGHTS[0] += 0.5


def change_second_model(model, optimizer, train):
    """As much Q-learning code does it."""
    for parameter in TARGET.parameters():
        parameter.data.mul_(0.9)


def change_buffer(model, optimizer, train):
    model.scale.mul_(2)


def change_layer(model, optimizer, train):
    model[1] = torch.nn.Sigmoid()


def change_momentum(model, optimizer, train):
    """As CyclicLR and OneCycleLR do."""
    optimizer.param_groups[0]["momentum"] = 0.5


REFUSED = {
    change_global: ("KL", "state="),
    change_class: ("Settings.scale", "state="),
    change_arguments: ("Namespace.kl", "state="),
    change_function: ("weighted.scale", "state="),
    change_long_list: ("WEIGHTS", "state="),
    change_second_model: ("Linear.(weight|bias)", "state="),
    change_buffer: ("scale of the model", "state="),
    change_layer: (r"1 \(Sequential\) of the model", "another motley.Run"),
    change_weights: ("0.weight", "parametrize"),
    change_freezing: ("requires_grad of 0.weight", "set_lr"),
    change_decay: ("weight_decay", "new optimizer"),
    change_momentum: ("momentum", "new optimizer"),
    change_data: ("tensors|sample", "HeadTensors|state="),
}


@pytest.mark.parametrize("change", REFUSED)
def test_what_other_machines_would_not_see_is_refused_by_name(change):
    model, optimizer, train = parts()
    model.register_buffer("scale", torch.ones(()))
    what, remedy = REFUSED[change]
    bodies = 0
    with pytest.raises(motley.Error, match=what) as raised:
        for _ in run_of(model, optimizer, train, loss=weighted).epochs(EPOCHS):
            bodies += 1
            change(model, optimizer, train)
    assert bodies == 1 and any(each in raised.value.hint for each in remedy.split("|"))


def step_hook(model, optimizer):
    optimizer.register_step_post_hook(lambda *_: None)


def gradient_hook(model, optimizer):
    model[0].weight.register_post_accumulate_grad_hook(lambda _: None)


def other_step(model, optimizer):
    step = optimizer.step
    optimizer.step = lambda: (torch.nn.utils.clip_grad_value_(model.parameters(), 0.1), step())


def warm_up(model, optimizer):
    return torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=8)


def decaying(model, optimizer):
    class Schedule(torch.optim.lr_scheduler.LRScheduler):
        def get_lr(self):
            optimizer = self.optimizer
            optimizer.param_groups[0]["weight_decay"] = 0.1 * self.last_epoch
            return [0.1]

    return Schedule(optimizer)


AROUND_STEPS = {
    step_hook: ("has hooks on its steps", "on_step"),
    gradient_hook: ("0.weight has a hook", "register_hook"),
    other_step: ("step was replaced", "a subclass of SGD"),
    warm_up: ("after each step, or after each epoch", "schedule_every="),
    decaying: ("changes weight_decay", "another motley.Run"),
}


@pytest.mark.parametrize("made", AROUND_STEPS)
def test_what_nobody_would_call_around_a_step_is_refused(made):
    model, optimizer, train = parts()
    what, remedy = AROUND_STEPS[made]
    with pytest.raises(motley.Error, match=what) as raised:
        list(run_of(model, optimizer, train, schedule=made(model, optimizer)).epochs(EPOCHS))
    assert remedy in raised.value.hint


def on_rate(model, run, optimizer):
    optimizer.param_groups[0]["lr"] *= 0.9


def on_state(model, run, optimizer):
    run.state["scale"] += 0.1


def on_global(model, run, optimizer):
    global KL
    KL += 0.5


def on_weights(model, run, optimizer):
    for parameter in model.parameters():
        parameter.data.clamp_(-0.01, 0.01)


def on_second_model(model, run, optimizer):
    with torch.no_grad():
        for average, weight in zip(TARGET.parameters(), model.parameters(), strict=True):
            average.lerp_(weight, 0.1)


BETWEEN = {on_rate: ("learning rate", "schedule="), on_state: ("run.state", "`step`"), on_global: ("the global KL", "`step`"),
           on_weights: ("0.weight of the model", "parametrize"), on_second_model: ("Linear.weight", "ema=0.999")}


@pytest.mark.parametrize("change", BETWEEN)
def test_what_on_step_changes_beside_the_run_is_refused_by_name(change):
    model, optimizer, train = parts()
    what, remedy = BETWEEN[change]
    steps = []

    def on_step(model, step):
        steps.append(step.number)
        change(model, run, optimizer)

    run = run_of(model, optimizer, train, loss=weighted, state={"scale": 1.0}, on_step=on_step)
    with pytest.raises(motley.Error, match=what) as raised:
        list(run.epochs(1))
    assert steps == [1] and remedy in raised.value.hint


def test_callbacks_do_not_set_the_learning_rate():
    class Warm:
        def on_step(self, step):
            optimizer.param_groups[0]["lr"] = 0.01 * step.number

    model, optimizer, train = parts()
    with pytest.raises(motley.Error, match="a callback's on_step changed the optimizer's learning rate"):
        list(run_of(model, optimizer, train, callbacks=[Warm()]).epochs(1))
