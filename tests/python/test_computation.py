"""A worker's arithmetic by itself, driven as the core drives it."""

import copy
import math
import types

import pytest
import torch
from torch.utils.data import DataLoader

import cases
import conftest
from driving import run
from motley import _state
from motley._computing import _compiled, _computation, _outflow, _work
from motley._models import _arriving, _model, _parts
from motley._optimizers import _optimizer
from motley._samples import _data
from motley._trials import _inspect


class Task:
    """What the core gives: weights in, samples by number, chunks out."""

    kind, contributes, probes, version, seed, micro_batch, resident, kept = "train", True, False, 3, 1, 32, False, False
    epoch, state, state_number, order_first = 0, b"", 0, 0

    def __init__(self, computation, flat, count, limits=(), from_end=False):
        self.computation, self.flat, self.count, self.first = computation, flat, count, 0
        self.limits, self.begun, self.finals, self.done = list(limits) or [count], None, [], []
        self.from_end, self.refuse_claims, self.fetched, self.claimed = from_end, 0, [], 0
        self.pieces = self.here = [(0, len(flat))]
        self.loaded, self.abandoned_at, self.abandoned = [], math.inf, False
        self.when_final = {}

    def bring(self, first, last):
        if not self.loaded:
            self.fetched_before, self.claimed_before = list(self.fetched), self.claimed
        came = [piece for piece in self.missing() if piece in self.here or (piece[0] < last and first < piece[1])]
        for begin, end in came:
            if end > self.abandoned_at:
                self.abandoned = True
                return []
            self.loaded.append((begin, end))
            self.computation.weights[begin:end] = self.flat[begin:end]
        return came

    def missing(self):
        return [piece for piece in self.pieces if piece not in self.loaded]

    def indices(self, first, count):
        self.fetched.append((first, count))
        return list(range(first, first + count))

    def limit(self):
        return self.limits.pop(0) if len(self.limits) > 1 else self.limits[0]

    def claim(self, count):
        self.claimed = count
        self.refuse_claims -= 1
        return self.refuse_claims < 0

    def at(self, done, count):
        return self.count - done - count if self.from_end else done

    def begin(self, count, weight, loss_sum):
        self.begun = (count, weight, loss_sum)

    def final(self, placement):
        assert self.begun
        self.finals.append(placement)
        _, first, count = self.computation._work.layout.placements[placement]
        self.when_final[placement] = self.computation.gradients[first : first + count].clone()

    def progress(self, done):
        self.done.append(done)

    def finish(self):
        assert self.begun
        self.gradients = self.computation.gradients.clone()


def make(name, staged=False):
    case = cases.make(name)
    collate = cases.pad if name == "tokens" else None
    train, test = (_data.BatchSource(DataLoader(part, case.batch, collate_fn=collate), "loader") for part in (case.train, case.test))
    read = _optimizer.ReadOptimizer(case.optimizer)
    parts = _parts.together(case.model, case.loss, case.score)
    work = _work.make_work(parts, train, test, read, "fp32", b"", {"step": 1, "epoch": 1, "state": {}}, None, check=True)
    flat = _model.flatten(work.layout, work.names)
    return work, _computation.ModelComputation(work, parts, conftest.device if staged else "cpu", 1, staged=staged), flat


@pytest.mark.parametrize("name", ["groups", "tokens", "normed", "dropout"])
def test_a_device_behind_copies_gives_the_same(name):
    if name == "dropout" and conftest.device != "cpu":
        pytest.skip("a card draws other numbers than a processor")
    results = []
    for staged in (False, True):
        work, computation, flat = make(name, staged)
        task = Task(computation, flat, 100)
        outcome = run(computation, task)
        assert len(outcome) == 4, outcome
        results.append((outcome, task.begun, task.gradients, task.done))
    (outcome, begun, gradients, done), other = results
    assert other[1] == pytest.approx(begun, rel=1e-6)
    torch.testing.assert_close(other[2], gradients, **({} if conftest.device == "cpu" else {"rtol": 1e-5, "atol": 1e-4}))
    assert other[3] == done and done[-1] == 100


@pytest.mark.parametrize(("name", "staged"), [("epochs", False), ("epochs", True), ("normed", True)])
def test_chunks_are_announced_while_the_last_backward_pass_runs(monkeypatch, name, staged):
    """Each once, when the host has it."""
    monkeypatch.setattr(_outflow, "TOGETHER", 1)
    work, computation, flat = make(name, staged)
    task = Task(computation, flat, 96)
    run(computation, task)
    placements = work.layout.placements
    assert sorted(task.finals) == list(range(len(placements)))
    for place, (_, first, count) in enumerate(placements):
        assert torch.equal(task.when_final[place], task.gradients[first : first + count])


def test_a_gradient_that_nobody_wants_any_more_is_not_announced(monkeypatch):
    monkeypatch.setattr(_outflow, "TOGETHER", 1)
    work, computation, flat = make("epochs", staged=True)
    task = Task(computation, flat, 64)
    computation.check_gradients = lambda count: (_ for _ in ()).throw(RuntimeError("no"))
    assert run(computation, task)[0] == "input"
    assert not computation._outflow._going
    computation.check_gradients = lambda count: None
    again = Task(computation, flat, 64)
    assert run(computation, again)[0] == 64 and len(again.finals) == len(work.layout.placements)


def test_the_first_batch_is_read_while_weights_are_on_their_way():
    found = []
    for limits in ([96], [96, 40]):
        work, computation, flat = make("epochs")
        task = Task(computation, flat, 96, limits=limits)
        assert run(computation, task)[0] == limits[-1]
        assert task.fetched_before == [(0, 32)] and task.claimed_before == 0
        found.append((task.fetched, task.gradients))
    assert found[0][0] == [(0, 32), (32, 32), (64, 32)]
    assert found[1][0] == [(0, 32), (0, 8), (8, 32)]  # fewer were wanted when the weights came
    whole = Task(computation, flat, 40)
    run(computation, whole)
    torch.testing.assert_close(found[1][1], whole.gradients)


class ArrivingTask(Task):
    """Of the weights nothing is there until it is waited for, one tensor after the other."""

    def __init__(self, computation, flat, count, **others):
        super().__init__(computation, flat, count, **others)
        places = computation._work.layout.placements
        starts = [place[1] for place in places]
        self.pieces, self.here = list(zip(starts, [*starts[1:], len(flat)], strict=True)), []


def with_whole_weights(name, count, staged=False):
    _, computation, flat = make(name, staged)
    task = Task(computation, flat, count)
    return run(computation, task), task


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("name", ["groups", "tokens", "normed", "dropout", "epochs"])
def test_the_forward_pass_waits_for_each_weight_when_it_reads_it(name, staged):
    work, computation, flat = make(name, staged)
    task = ArrivingTask(computation, flat, 100)
    claimed = []
    bring = task.bring
    task.bring = lambda *which: claimed.append(task.claimed) or bring(*which)
    outcome = run(computation, task)
    expected, whole = with_whole_weights(name, 100, staged)
    assert outcome == expected and task.begun == whole.begun and task.done == whole.done
    assert torch.equal(task.gradients, whole.gradients)
    assert not task.missing() and computation.begins_early
    assert claimed[0] == 0 and claimed[-1] > 0  # the first before anything was claimed, the last in the forward pass


def test_what_is_abandoned_in_the_forward_pass_gives_nothing():
    _, computation, flat = make("epochs")
    task = ArrivingTask(computation, flat, 96)
    task.abandoned_at = task.pieces[2][0]
    assert run(computation, task) == (0, 0.0, 0.0, []) and task.claimed > 0 and task.begun is None
    again = ArrivingTask(computation, flat, 96)
    assert run(computation, again)[0] == 96


@pytest.mark.parametrize("fails", [False, True])
def test_weights_that_are_read_unseen_are_waited_for(fails, capfd):
    _, computation, flat = make("epochs")
    parts = computation._work.parts
    seen, bias = parts.loss, dict(parts.root.named_parameters())["2.bias"].detach().numpy()

    def loss(model, batch):
        if fails:
            assert not math.isnan(bias[0])
        scale = float(bias[0])
        return seen(model, batch) * scale

    parts.loss = loss
    task = ArrivingTask(computation, flat, 96)
    outcome = run(computation, task)
    assert not computation.begins_early and "unseen by torch's operators" in capfd.readouterr().err
    whole = Task(computation, flat, 96)
    assert run(computation, whole) == outcome and torch.equal(whole.gradients, task.gradients)


def test_a_loss_that_is_no_number_is_nobodys_fault(capfd):
    _, computation, flat = make("epochs")
    task = ArrivingTask(computation, torch.full_like(flat, math.nan), 96)
    assert math.isnan(run(computation, task)[2])
    assert computation.begins_early and not capfd.readouterr().err


def test_compiled_models_wait_for_all_weights(monkeypatch):
    _, computation, flat = make("epochs")
    monkeypatch.setattr(_compiled, "uses", lambda things: True)
    task = ArrivingTask(computation, flat, 96)
    assert run(computation, task)[0] == 96 and task.loaded == task.pieces and task.claimed_before == 0


class ResidentTask(Task):
    """With the weights that are on the device."""

    resident = True

    def bring(self, *_):
        pytest.fail("weights are on the device")

    def missing(self):
        return []

    def finish(self):
        pytest.fail("the gradient stays on the device")


def numbers(lr, weight_decay=0.0, keep=1.0, momentum=0.0, fresh=1.0, beta2=0.0, correction=1.0, eps=0.0, nesterov=False):
    return lr, weight_decay, keep, momentum, fresh, beta2, 1 - beta2, correction, eps, nesterov


def nesterov(step):
    return numbers(-0.05, 0.01, momentum=0.9, nesterov=True)


def adamw(step):
    correction = math.sqrt(1 - 0.999**step)
    return numbers(-1e-2 / (1 - 0.9**step), keep=1 - 1e-2 * 0.1, fresh=1 - 0.9, beta2=0.999, correction=correction, eps=1e-8)


RESIDENT = {"sgd": (lambda p: torch.optim.SGD(p, 0.05), lambda step: numbers(-0.05), "sgd", []),
            "nesterov": (lambda p: torch.optim.SGD(p, 0.05, 0.9, nesterov=True, weight_decay=0.01), nesterov, "sgd", ["momentum_buffer"]),
            "adamw": (lambda p: torch.optim.AdamW(p, 1e-2, weight_decay=0.1), adamw, "adam", ["exp_avg", "exp_avg_sq"])}


@pytest.mark.parametrize("how", RESIDENT)
@pytest.mark.parametrize("name", ["epochs", "normed"])
def test_steps_on_the_device_are_those_of_torch(name, how):
    if (name, how) == ("normed", "adamw") and conftest.device != "cpu":
        pytest.skip("what is normalised right behind it has no gradient but rounding, of which Adam makes steps")
    make_optimizer, step_numbers, kind, states = RESIDENT[how]
    work, computation, flat = make(name, staged=True)
    assert computation.device_optimizer and not make(name)[1].device_optimizer
    plain = copy.deepcopy(cases.make(name).model).train()
    optimizer = make_optimizer(plain.parameters())
    batch = cases.make(name).train[:32]
    computation.weights.copy_(flat)
    computation.device_optimizer.settle(kind)
    computation.gradients.zero_()
    for state in states:
        computation.device_optimizer.set_state(state)
    for step in range(1, 4):
        assert run(computation, ResidentTask(computation, flat, 32))[:3] == (32, 32.0, 0.0)
        loss_sum, norm = computation.device_optimizer.reduce(32.0, 32)
        optimizer.zero_grad()
        value = work.parts.loss(plain, batch)
        value.backward()
        assert loss_sum == pytest.approx(32 * value.item(), rel=1e-5)
        assert norm == pytest.approx(torch.nn.utils.clip_grad_norm_(plain.parameters(), 0.5).item(), rel=1e-5)
        computation.device_optimizer.update([step_numbers(step)] * 3, min(1.0, 0.5 / (norm + 1e-6)))
        optimizer.step()
    computation.device_optimizer.get_weights(False)
    found = {named.name: values for named, values in _model.pieces(work.layout, work.names, computation.weights)}
    tensors = plain.state_dict()
    for tensor, values in found.items():
        torch.testing.assert_close(values, tensors[tensor], rtol=1e-5, atol=1e-6, msg=lambda text, tensor=tensor: f"{tensor}: {text}")
    for state in states:
        computation.device_optimizer.get_state(state, False)
        assert computation.gradients.any()
    computation.device_optimizer.leave()
    whole = Task(computation, flat, 96)
    run(computation, whole)
    assert torch.equal(whole.gradients, with_whole_weights(name, 96, True)[1].gradients)


@pytest.mark.parametrize("name", ["groups", "dropout"])
def test_either_end_gives_the_same(name):
    found = []
    for from_end in (False, True):
        work, computation, flat = make(name)
        task = Task(computation, flat, 100, from_end=from_end)
        assert len(run(computation, task)) == 4
        found.append((task.begun, task.gradients))
    assert found[1][0] == pytest.approx(found[0][0], rel=1e-6)
    torch.testing.assert_close(found[1][1], found[0][1], rtol=1e-4, atol=1e-5)


def test_a_task_may_be_computed_from_its_end():
    work, computation, flat = make("epochs")
    task = Task(computation, flat, 96, limits=[96, 40], from_end=True)
    task.refuse_claims = 1
    assert run(computation, task)[0] == 40
    assert task.fetched == [(64, 32), (88, 8), (56, 32)]  # the first was read before the weights came
    whole = Task(computation, flat, 96)
    whole.at = lambda done, count: 56 + done
    whole.limits = [40]
    run(computation, whole)
    torch.testing.assert_close(task.gradients, whole.gradients)


def test_out_of_memory_is_told_from_other_failures(capsys):
    work, computation, flat = make("epochs")
    work.parts.loss = lambda model, batch: (_ for _ in ()).throw(torch.OutOfMemoryError("CUDA out of memory"))
    assert run(computation, Task(computation, flat, 8))[0] == "memory"
    work.parts.loss = lambda model, batch: 1 / 0
    kind, text, _ = run(computation, Task(computation, flat, 8))
    assert kind == "input" and "ZeroDivisionError" in text and "test_computation.py" in text
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert "again" in run(computation, Task(computation, flat, 8))[1]


def test_inspection_leaves_the_model_as_it_was():
    case = cases.make("dropout")
    case.model.norm1.eval()
    before = copy.deepcopy(case.model.state_dict())
    drawn = torch.get_rng_state()
    source = _data.BatchSource(DataLoader(case.train, case.batch), "loader")
    found = _inspect.inspect(lambda batch: case.loss(case.model, batch), case.model, source, "fp32", True, {"loss": case.loss})
    assert found.draws and found.mixes
    assert found.changing == {f"norm2.{name}": 1 for name in ("running_mean", "running_var", "num_batches_tracked")}
    assert all(torch.equal(before[name], value) for name, value in case.model.state_dict().items())
    assert torch.equal(drawn, torch.get_rng_state())
    assert [module.training for module in (case.model, case.model.norm1, case.model.norm2)] == [True, False, True]
    assert all(p.grad is None for p in case.model.parameters())


def test_passes_that_are_tried_before_any_state_has_come_get_the_scripts_own():
    state = _state.Decoded(first=_state.encode({"w": 2.0}))
    assert state.of(types.SimpleNamespace(state_number=0, state=b"")) == {"w": 2.0}
    assert state.of(types.SimpleNamespace(state_number=1, state=_state.encode({"w": 3.0}))) == {"w": 3.0}
