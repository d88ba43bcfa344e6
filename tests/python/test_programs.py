"""Programs as people write them, against the plain loop that each would be: the same losses in every step, the same tensors at the end."""

import functools

import pytest
import torch
from safetensors.torch import load_file
from torch.utils.data import DataLoader

import motley as package
import conftest
import plain
import programs
from conftest import SCRIPTS, train
from programs.others import sorted_points
from programs.refused import REFUSED

LOSSES, TENSORS = 1e-5, 1e-4
NOTHING_DEPENDS = ("c_attn.bias", "in_proj_bias")  # on an attention's key biases: Adam makes steps of the rounding of their gradients
DRAWING = ("checkpointed", "ddpm", "masked_lm", "vae")  # other numbers on a card than on a processor
APART = ("char_gpt", "checkpointed", "looked_at", "lora", "pinn", "scripted", "told_by_the_body", "weight_normed", "wgan", "wgan_in_turns")


@pytest.fixture
def in_its_own_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def check(found, tensors, program, losses, but=()):
    assert plain.worst_loss(found, losses) <= LOSSES
    expected = {name: value for name, value in program.tensors().items() if not name.endswith((*NOTHING_DEPENDS, *but))}
    assert plain.worst_weights({name: tensors[name] for name in expected}, expected) <= TENSORS


@functools.cache
def plainly(name):
    """A program that was trained as one trains it without Motley, and its losses; on a card, what draws there by one worker."""
    program, losses = programs.make(name), []
    before = {key: value.clone() for key, value in program.tensors().items()}
    if conftest.device != "cpu" and name in DRAWING:
        program.train(on_step=lambda model, step: losses.append(step.loss))
    else:
        losses += program.plain(program)
    assert any(not torch.equal(before[key], value) for key, value in program.tensors().items())
    return program, losses


@pytest.mark.parametrize("name", [name for name in programs.names() if not name.startswith("wgan")])
def test_one_worker_follows_the_plain_loop(in_its_own_directory, name):
    program, losses = plainly(name)
    ours, found = programs.make(name), []
    ours.train(on_step=lambda model, step: found.append(step.loss))
    check(found, ours.tensors(), program, losses)


def in_processes(motley, name):
    """The head with a worker, and two that join: where no process can have a second model, since the model refers to itself."""
    options = ["--token-file", "token", "--threads", "1", "--device", conftest.device]
    script = str(SCRIPTS / "train_program.py")
    head = motley.start("train", script, "--run", "run", "--listen", "127.0.0.1:0", *options, "--set", "train.min_workers=3", "--set",
                        "train.shares=[4, 2, 1]", name)
    others = [motley.start("join", script, *options, "--name", other, name) for other in "ab"]
    assert head.end() == 0, head.story()
    assert [other.end() for other in others] == [0, 0], others[0].story()
    return head


def test_second_derivatives_are_evaluated(in_its_own_directory):
    program, _ = plainly("pinn")
    expected = sum(program.loss(program.model, batch).item() * len(batch[0]) for batch in program.options["test"]) / 180
    assert programs.make("pinn").train().history[-1].test_loss == pytest.approx(expected, rel=LOSSES)


def test_frozen_statistics_stay_as_they_are(in_its_own_directory):
    before, ours = programs.make("frozen_norm").tensors(), programs.make("frozen_norm")
    ours.train()
    after = ours.tensors()
    assert all(torch.equal(before[name], after[name]) for name in before if "running" in name or "tracked" in name)
    assert [module.training for module in (ours.model, ours.model.backbone, ours.model.backbone[1])] == [True, False, False]


def test_a_mean_teacher_is_saved(in_its_own_directory):
    program, ours = programs.make("mean_teacher"), programs.make("mean_teacher")
    *_, teacher = program.plain(program, told=True)
    ours.train().save("teacher.safetensors", ema=True)
    assert plain.worst_weights(load_file("teacher.safetensors"), teacher.state_dict()) <= TENSORS


@pytest.mark.parametrize("name", ["ddpm", "mixup"])
def test_noise_is_the_same_again(in_its_own_directory, name):
    """The same bits with the same seed, others with another one."""
    found = []
    for seed in (1, 1, 2):
        ours = programs.make(name)
        ours.seed = seed
        ours.train()
        found.append(torch.cat([value.flatten() for value in ours.tensors().values()]))
    assert conftest.equal(found[0].tolist(), found[1].tolist()) and not torch.allclose(found[0], found[2], rtol=1e-3)


@pytest.mark.parametrize("name", programs.names())
def test_three_uneven_workers_follow_the_plain_loop(motley, name):
    program, losses = plainly(name)
    told = in_processes(motley, name) if name in APART else train(motley, "train_program.py", name, workers=3)
    whole = [event for event in told.named("step") if event["samples"] == program.batch]
    workers = 1 if program.batch == programs.GROUP else 3  # whose batch is one group
    assert all(len([part for part in event["workers"] if part["samples"]]) == workers for event in whole)
    tensors = load_file(motley.directory / told.named("done")[0]["checkpoint"] / "model.safetensors")
    check(told.losses(), tensors, program, losses, but=("num_batches_tracked",))  # a checkpoint counts steps


@pytest.mark.parametrize("made", REFUSED)
def test_what_would_differ_on_several_machines_is_refused_by_name(in_its_own_directory, made):
    torch.manual_seed(1)
    model, loss = made()
    what, remedy = REFUSED[made]
    with pytest.raises(package.Error, match=what) as raised:
        list(package.Run(model, loss, DataLoader(sorted_points(), 48, shuffle=True), torch.optim.SGD(model.parameters(), lr=0.1)).epochs(1))
    assert remedy in raised.value.hint
