"""The body of an epoch: in step with the training, followed in what it may change, refused by name in what it may not."""

import copy
import itertools

import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional
from torch.utils.data import DataLoader

import cases
import motley
from sample_order import sample_order

BATCH, EPOCHS = 60, 4


@pytest.fixture(autouse=True)
def in_its_own_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def parts(optimizer=None, seed=3):
    torch.manual_seed(seed)
    model = cases.mlp()
    return model, (optimizer or (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)))(model.parameters()), cases.classes(300, 2)


def run_of(model, optimizer, train, loss=cases.cross_entropy, **options):
    return motley.Run(model, loss, DataLoader(train, BATCH, shuffle=True), optimizer, seed=cases.SEED, **options)


def batches_of(train, epoch):
    """In the order of a run."""
    order = sample_order(cases.SEED, epoch, len(train)).tolist()
    for first in range(0, len(order), BATCH):
        yield torch.utils.data.default_collate([train[i] for i in order[first : first + BATCH]])


def plainly(model, optimizer, train, loss=cases.cross_entropy, after_epoch=lambda epoch: None, after_step=lambda: None, epochs=EPOCHS):
    """The loop that everybody writes; losses by epoch."""
    losses = []
    for epoch in range(epochs):
        found = []
        for batch in batches_of(train, epoch):
            optimizer.zero_grad()
            value = loss(model, batch)
            value.backward()
            optimizer.step()
            after_step()
            found.append(value.item())
        losses.append(sum(found) / len(found))
        after_epoch(epoch)
    return losses


def same(model, other, tolerance=1e-5):
    for (name, a), b in zip(model.state_dict().items(), other.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, msg=lambda text, name=name: f"{name}: {text}")


def test_nothing_of_the_next_epoch_begins_before_the_body_has_ended():
    model, optimizer, train = parts()
    read = []

    class Noting(torch.utils.data.Dataset):
        def __len__(self):
            return len(train)

        def __getitem__(self, number):
            read.append(number)
            return train[number]

    run = run_of(model, optimizer, Noting())
    at_start = None
    for epoch in run.epochs(3):
        before = len(read)
        weights = copy.deepcopy(model.state_dict())
        for _ in range(20000):
            pass
        assert len(read) == before and all(torch.equal(weights[name], value) for name, value in model.state_dict().items())
        at_start = at_start or before
        assert (before - at_start) >= 300 * (epoch.number - 1)
    assert [each.number for each in run.history] == [1, 2, 3]


def by_hand(optimizer, run):
    for group in optimizer.param_groups:
        group["lr"] *= 0.5


def by_set_lr(optimizer, run):
    run.set_lr(0.1 * 0.5 ** len(run.history))


@pytest.mark.parametrize("change", [by_hand, by_set_lr])
def test_a_learning_rate_that_the_body_sets_is_followed(change):
    model, optimizer, train = parts()
    plain_model, plain_optimizer, _ = parts()

    def halve(_):
        for group in plain_optimizer.param_groups:
            group["lr"] *= 0.5

    losses = plainly(plain_model, plain_optimizer, train, after_epoch=halve)
    run = run_of(model, optimizer, train)
    for epoch in run.epochs(EPOCHS):
        assert epoch.loss == pytest.approx(losses[epoch.number - 1], rel=1e-6)
        change(optimizer, run)
    same(model, plain_model)


def test_a_scheduler_that_the_body_steps_is_followed():
    model, optimizer, train = parts(lambda p: torch.optim.AdamW(p, lr=0.01))
    plain_model, plain_optimizer, _ = parts(lambda p: torch.optim.AdamW(p, lr=0.01))
    schedule, plain_schedule = (torch.optim.lr_scheduler.ExponentialLR(each, 0.7) for each in (optimizer, plain_optimizer))
    plainly(plain_model, plain_optimizer, train, after_epoch=lambda _: plain_schedule.step())
    for _ in run_of(model, optimizer, train).epochs(EPOCHS):
        schedule.step()
    same(model, plain_model)


def test_a_function_of_the_step_is_a_schedule():
    model, optimizer, train = parts()
    plain_model, plain_optimizer, _ = parts()
    steps = itertools.count(1)

    def rate(step):
        return 0.1 * min(1, (step + 1) / 7) / (1 + step / 10)

    def set_rate():
        plain_optimizer.param_groups[0]["lr"] = rate(next(steps))

    plain_optimizer.param_groups[0]["lr"] = rate(0)
    plainly(plain_model, plain_optimizer, train, after_step=set_rate)
    for _ in run_of(model, optimizer, train, schedule=rate, schedule_every="step").epochs(EPOCHS):
        pass
    same(model, plain_model)
    assert optimizer.param_groups[0]["lr"] == 0.1  # the script's own


def test_state_reaches_the_loss_with_the_next_step():
    def loss_with(penalty):
        return lambda model, batch: cases.cross_entropy(model, batch) + penalty * model[0].weight.square().sum()

    model, optimizer, train = parts()
    plain_model, plain_optimizer, _ = parts()
    penalty = [0.0]
    plainly(plain_model, plain_optimizer, train, loss=lambda *both: loss_with(penalty[0])(*both),
            after_epoch=lambda epoch: penalty.__setitem__(0, 0.01 * (epoch + 1)))

    def loss(model, batch, state, step, epoch):
        assert 1 <= step <= 20 and epoch == (step - 1) // 5 + 1
        return loss_with(state["penalty"])(model, batch)

    run = run_of(model, optimizer, train, loss=loss, state={"penalty": 0.0})
    for epoch in run.epochs(EPOCHS):
        run.state["penalty"] = 0.01 * epoch.number
    same(model, plain_model)


def test_samples_that_the_body_makes():
    model, optimizer, train = parts()
    plain_model, plain_optimizer, _ = parts()

    def made(epoch):
        return cases.classes(300, 20 + epoch).tensors

    samples, plain_samples = motley.HeadTensors(*made(0)), torch.utils.data.TensorDataset(*made(0))
    losses = plainly(plain_model, plain_optimizer, plain_samples,
                     after_epoch=lambda epoch: setattr(plain_samples, "tensors", made(epoch + 1)))
    for epoch in run_of(model, optimizer, samples).epochs(EPOCHS):
        assert epoch.loss == pytest.approx(losses[epoch.number - 1], rel=1e-6)
        samples.replace(*made(epoch.number))
    same(model, plain_model)


def test_on_step_sees_the_weights_of_its_step():
    model, optimizer, train = parts()
    plain_model, plain_optimizer, _ = parts()
    expected, found = [], []
    plainly(plain_model, plain_optimizer, train, after_step=lambda: expected.append(plain_model[2].weight.detach().clone()), epochs=2)
    run = run_of(model, optimizer, train, on_step=lambda model, step: found.append((step.number, model[2].weight.detach().clone())))
    for _ in run.epochs(2):
        pass
    assert [number for number, _ in found] == list(range(1, 11))
    torch.testing.assert_close(torch.stack([weight for _, weight in found]), torch.stack(expected), rtol=1e-5, atol=1e-6)


def consistent(model, batch, teacher):
    x, y = batch
    with torch.no_grad():
        target = teacher(x)
    return cases.cross_entropy(model, batch) + 0.5 * functional.mse_loss(model(x), target)


def test_an_average_of_the_weights_teaches_and_is_evaluated_and_saved():
    model, optimizer, train = parts()
    plain_model, plain_optimizer, _ = parts()
    teacher = copy.deepcopy(plain_model)

    def average():
        with torch.no_grad():
            for mean, weight in zip(teacher.parameters(), plain_model.parameters(), strict=True):
                mean.mul_(0.9).add_(weight, alpha=0.1)

    plainly(plain_model, plain_optimizer, train, loss=lambda *both: consistent(*both, teacher), after_step=average)
    test = cases.classes(100, 9)
    run = run_of(model, optimizer, train, loss=consistent, ema=0.9, test=DataLoader(test, 100))
    for epoch in run.epochs(EPOCHS):
        pass
    same(model, plain_model)
    run.save("average.safetensors", ema=True)
    saved = load_file("average.safetensors")
    assert set(saved) == set(teacher.state_dict())
    for name, value in teacher.state_dict().items():
        torch.testing.assert_close(saved[name], value, rtol=1e-5, atol=1e-6)
    expected = consistent(teacher, torch.utils.data.default_collate(list(test)), teacher).item()
    assert epoch.test_loss == pytest.approx(expected, rel=1e-5)


def test_bodies_come_as_often_as_was_asked_for():
    model, optimizer, train = parts()
    test = DataLoader(cases.classes(100, 9), 50)
    run = run_of(model, optimizer, train, evaluate_every=3, test=test)
    assert [(each.step, each.test_loss is not None) for each in run.steps(11)] == [(3, True), (6, True), (9, True), (11, True)]


def test_the_best_weights_are_kept_and_waiting_for_better_ones_ends():
    model, optimizer, train = parts()
    test = DataLoader(cases.classes(100, 9), 50)
    run = run_of(model, optimizer, train, test=test, keep_best="test_loss", patience=2)
    losses, weights = [], []
    for epoch in run.epochs(10):
        losses.append(epoch.test_loss)
        weights.append(copy.deepcopy(model.state_dict()))
        if epoch.number == 2:
            run.set_lr(50.0)  # from here on it gets worse
    best = losses.index(min(losses))
    assert len(losses) == best + 3 < 10
    assert all(torch.equal(value, weights[best][name]) for name, value in model.state_dict().items())


def test_an_optimizer_with_parameters_of_the_loss():
    class Weighted(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(0.3))

        def forward(self, model, batch):
            return cases.cross_entropy(model, batch) * torch.exp(-self.scale) + self.scale

    def made():
        model, _, train = parts()
        criterion = Weighted()
        return model, criterion, torch.optim.SGD([*model.parameters(), *criterion.parameters()], lr=0.1), train

    plain_model, plain_criterion, plain_optimizer, train = made()
    plainly(plain_model, plain_optimizer, train, loss=plain_criterion)
    model, criterion, optimizer, _ = made()
    for _ in run_of(model, optimizer, train, loss=criterion).epochs(EPOCHS):
        pass
    same(model, plain_model)
    assert criterion.scale.item() == pytest.approx(plain_criterion.scale.item(), rel=1e-5) != 0.3
    model, criterion, optimizer, _ = made()
    log_scale = criterion.scale
    for _ in run_of((model, log_scale), optimizer, train,
                    loss=lambda both, batch: cases.cross_entropy(both[0], batch) * torch.exp(-both[1]) + both[1]).epochs(EPOCHS):
        pass
    same(model, plain_model)
    model, criterion, optimizer, _ = made()
    with pytest.raises(motley.Error, match="1 parameter that the model does not have"):
        list(run_of(model, optimizer, train, loss=lambda model, batch: criterion(model, batch)).epochs(1))


def test_what_refers_to_the_model_gets_its_gradients():
    """A bound method kept by a layer, hooks, and the model in the loss itself."""
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.ModuleDict({"a": torch.nn.Linear(12, 16), "b": torch.nn.Linear(16, 5)})
            inner = self.inner
            self.mlpf = lambda x: inner["b"](torch.tanh(inner["a"](x)))

        def forward(self, x):
            return self.mlpf(x)

    def made():
        torch.manual_seed(1)
        model = Block()
        model.inner["a"].weight.register_hook(lambda gradient: gradient * 0.5)
        return model, torch.optim.SGD(model.parameters(), lr=0.1), lambda _, batch: functional.cross_entropy(model(batch[0]), batch[1])

    train = cases.classes(300, 2)
    plain_model, plain_optimizer, plain_loss = made()
    plainly(plain_model, plain_optimizer, train, loss=plain_loss)
    model, optimizer, loss = made()
    for _ in run_of(model, optimizer, train, loss=loss).epochs(EPOCHS):
        pass
    same(model, plain_model)


def test_scores_are_sums():
    def ran(score):
        model, optimizer, train = parts()
        return list(run_of(model, optimizer, train, test=DataLoader(cases.classes(100, 9), 50), score=score).epochs(1))

    def right(model, batch):
        return (model(batch[0]).argmax(1) == batch[1]).float()

    assert 0 <= ran(lambda model, batch: {"accuracy": right(model, batch).sum()})[0].accuracy <= 1
    with pytest.raises(motley.Error, match="output of 8 samples is .*: a mean over the samples, expected a sum"):
        ran(lambda model, batch: {"output": model(batch[0]).mean()})
    with pytest.raises(motley.Error, match="which is no sum over the samples"):
        ran(lambda model, batch: {"largest": model(batch[0]).max() + 1})


def test_samples_of_the_head_are_read_where_they_are():
    samples = motley.HeadTensors(torch.zeros(60, 12), torch.zeros(60, dtype=torch.int64))
    model, optimizer, _ = parts()
    with pytest.raises(motley.Error, match="needs num_workers=0"):
        motley.Run(model, cases.cross_entropy, DataLoader(samples, 30, num_workers=1), optimizer)
