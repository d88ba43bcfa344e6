"""Scripts against plain PyTorch loops: the same losses, weights and evaluations with one worker and with three uneven ones."""

import copy
import json

import pytest
import torch
from safetensors.torch import load_file

import cases
import conftest
import plain
from conftest import SCRIPTS, train
from sample_order import sample_order

GROUP = 32


def batches(case):
    size, steps_per_epoch = len(case.train), -(-len(case.train) // case.batch)
    for epoch in range(case.epochs):
        order = sample_order(cases.SEED, epoch, size).tolist()
        for step in range(steps_per_epoch):
            yield step == steps_per_epoch - 1, order[step * case.batch : (step + 1) * case.batch]


def collated(case, data, pick):
    samples = [data[i] for i in pick]
    return cases.pad(samples) if isinstance(data, cases.Sentences) else torch.utils.data.default_collate(samples)


def loop(case):
    """The training loop that everybody writes. Losses by step, and after each epoch the mean loss on the test set."""
    losses, tested, norm_before = [], [], None
    for last, pick in batches(case):
        case.model.train()
        case.model.zero_grad()
        found = case.loss(case.model, collated(case, case.train, pick))
        loss = found[0] if isinstance(found, tuple) else found
        loss.backward()
        if case.clip_norm:
            with_gradient = [parameter for parameter in case.model.parameters() if parameter.grad is not None]
            norm, _ = plain.clip(with_gradient, case.clip_norm, norm_before)
            norm_before = norm if case.clip_norm_of == "previous" else None
        case.optimizer.step()
        follows = isinstance(case.schedule, torch.optim.lr_scheduler.ReduceLROnPlateau)
        if case.schedule and not follows and (last or case.schedule_every == "step"):
            case.schedule.step()
        losses.append(loss.item())
        if last:
            tested.append(evaluate(case))
        if last and follows:
            case.schedule.step(tested[-1]["test_loss" if case.schedule.mode == "min" else "accuracy"])
    return losses, tested


@torch.no_grad()
def evaluate(case):
    case.model.eval()
    batch = collated(case, case.test, range(len(case.test)))
    found = case.loss(case.model, batch)
    result = {"test_loss": (found[0] if isinstance(found, tuple) else found).item()}
    if case.score:
        result |= {name: float(value) / len(case.test) for name, value in case.score(case.model, batch).items()}
    return result


def epochs_of(program):
    return [json.loads(line.removeprefix("epoch ")) for line in program.text if line.startswith("epoch ")]


def weights_of(motley, program):
    return load_file(motley.directory / program.named("done")[0]["checkpoint"] / "model.safetensors")


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", ["groups", "epochs", "clipped", "tokens", "rmsprop", "plateau", "nadam"])
def test_follows_the_plain_loop(motley, name, workers):
    case = cases.make(name)
    initial = copy.deepcopy(case.model.state_dict())
    losses, tested = loop(case)
    program = train(motley, "train_case.py", name, workers=workers)
    assert plain.worst_loss(program.losses(), losses) <= (1e-6 if workers == 1 else 1e-5)
    assert any(not torch.equal(initial[key], value) for key, value in case.model.state_dict().items())
    aliases = {"out.weight"} if name == "tokens" else set()
    expected = {key: value for key, value in case.model.state_dict().items() if key not in aliases}
    found = {key: value for key, value in weights_of(motley, program).items() if key not in aliases}
    assert plain.worst_weights(found, expected) <= 1e-4
    if workers > 1:
        whole = [event for event in program.named("step") if event["samples"] == case.batch]
        assert all(len({part["samples"] for part in event["workers"]}) == workers for event in whole)

    if name in ("plateau", "nadam"):
        assert len({epoch["learning_rate"] for epoch in epochs_of(program)}) > 1
    epochs = epochs_of(program)
    assert [epoch["number"] for epoch in epochs] == list(range(1, case.epochs + 1))
    for epoch, expected in zip(epochs, tested):
        for key, value in expected.items():
            assert epoch[key] == pytest.approx(value, rel=1e-4), (epoch, expected)
    # The script saw the weights of the end of the epoch.
    assert epochs[-1]["weights"] == pytest.approx(sum(float(p.detach().double().sum()) for p in case.model.parameters()), rel=1e-4)
    motley.audit("run")


def check_follows(motley, program, case, name, losses, tested):
    """`program` trained the case `name` as the plain loop did."""
    assert plain.worst_loss(program.losses(), losses) <= 1e-5
    aliases = {"out.weight"} if name == "tokens" else set()
    expected, found = ({key: value for key, value in state.items() if key not in aliases}
                       for state in (case.model.state_dict(), weights_of(motley, program)))
    assert plain.worst_weights(found, expected) <= 1e-4
    for epoch, numbers in zip(epochs_of(program), tested, strict=True):
        assert epoch["test_loss"] == pytest.approx(numbers["test_loss"], rel=1e-4)


@pytest.mark.parametrize("name", ["groups", "epochs", "clipped", "tokens"])
def test_an_optimizer_on_the_device_follows_the_plain_loop(motley, name):
    case = cases.make(name)
    losses, tested = loop(case)
    program = train(motley, "staged_case.py", name)
    assert "settled on the device" in program.text
    check_follows(motley, program, case, name, losses, tested)
    motley.audit("run")


@pytest.mark.parametrize("name", ["epochs", "dropout"])
def test_a_loop_of_ones_own_computes_the_same(motley, name):
    expected = train(motley, "train_case.py", name, run="expected")
    here = ["--run", "run", "--listen", "127.0.0.1:0", "--device", "none", "--token-file", "token", "--set", "train.min_workers=2"]
    script = str(SCRIPTS / "own_loop.py")
    head = motley.start("train", script, *here, name)
    others = [motley.start("join", "--token-file", "token", script, "--threads", "1", "--name", other, name) for other in "ab"]
    assert head.end() == 0, head.story()
    assert [other.end() for other in others] == [0, 0], others[0].story()
    assert plain.worst_loss(head.losses(), list(expected.losses().values())) <= 1e-5
    alone = train(motley, "own_loop.py", name, run="alone")
    assert plain.worst_loss(alone.losses(), list(expected.losses().values())) <= 1e-6
    assert str(list(range(1, cases.make(name).epochs + 1))) in alone.text


@pytest.mark.parametrize("workers", [1, 3])
def test_batch_norm_acts_on_groups(motley, workers):
    case = cases.make("normed")
    statistics, losses = plain.GroupStatistics(case.model), []
    for _, pick in batches(case):
        case.optimizer.zero_grad()
        parts = [pick[at : at + GROUP] for at in range(0, len(pick), GROUP)]
        loss = sum(case.loss(case.model, collated(case, case.train, part)) * len(part) for part in parts) / len(pick)
        loss.backward()
        case.optimizer.step()
        statistics.step()
        losses.append(loss.item())
    program = train(motley, "train_case.py", "normed", workers=workers)
    assert plain.worst_loss(program.losses(), losses) <= (1e-6 if workers == 1 else 1e-5)
    found, expected = weights_of(motley, program), case.model.state_dict()
    for layer, prefix in ((case.model.norm1, "norm1"), (case.model.norm2, "norm2")):
        expected[f"{prefix}.running_mean"], expected[f"{prefix}.running_var"] = layer.mean, layer.var
        assert int(found.pop(f"{prefix}.num_batches_tracked")) == len(losses)
        expected.pop(f"{prefix}.num_batches_tracked")
    assert plain.worst_weights(found, expected) <= 1e-4


@pytest.mark.parametrize("name", ["dropout", "augmented"])
def test_random_numbers_do_not_depend_on_the_split(motley, name):
    one = train(motley, "train_case.py", name, run="one")
    three = train(motley, "train_case.py", name, run="three", workers=3)
    losses = list(one.losses().values())
    assert plain.worst_loss(three.losses(), losses) <= 1e-5
    again = train(motley, "train_case.py", name, run="again")
    assert conftest.equal(list(again.losses().values()), losses)


def test_what_uneven_workers_add_up_is_what_a_loop_in_the_same_parts_does(motley):
    """Nearer than to a loop over whole batches, whose sums are in another order."""
    case = cases.make("epochs")
    program = train(motley, "train_case.py", "epochs", workers=3)
    losses = []
    for (last, pick), step in zip(batches(case), program.named("step"), strict=True):
        sums, mean, at = None, 0.0, 0
        for size in (part["samples"] for part in step["workers"]):
            case.model.zero_grad()
            loss = case.loss(case.model, collated(case, case.train, pick[at : at + size])) * size
            loss.backward()
            mean, at = mean + loss.item() / len(pick), at + size
            found = [parameter.grad.clone() for parameter in case.model.parameters()]
            sums = found if sums is None else [a + b for a, b in zip(sums, found, strict=True)]
        assert at == len(pick)
        for parameter, total in zip(case.model.parameters(), sums, strict=True):
            parameter.grad = total / len(pick)
        case.optimizer.step()
        if last:
            case.schedule.step()
        losses.append(mean)
    assert plain.worst_loss(program.losses(), losses) <= 1e-6
    assert len({tuple(part["samples"] for part in step["workers"]) for step in program.named("step")}) > 1, "expected a short last batch"


def test_micro_batches_add_up_to_the_batch(motley):
    losses, _ = loop(cases.make("epochs"))
    program = train(motley, "train_case.py", "epochs", options=["--set", "train.micro_batch=7"])
    assert plain.worst_loss(program.losses(), losses) <= 1e-5
