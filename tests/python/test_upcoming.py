"""The first batch of the next step is made while the device computes this one; and where it turns out another, that one is."""

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

import cases
import test_computation
from driving import run
from motley._computing import _computation, _work
from motley._models import _model, _parts
from motley._optimizers import _optimizer
from motley._samples import _data


class StepTask(test_computation.ResidentTask):
    """A whole step from `order_first` on."""

    def __init__(self, computation, flat, count, version, order_first):
        super().__init__(computation, flat, count)
        self.version, self.order_first = version, order_first

    def indices(self, first, count):
        return super().indices(self.order_first + first, count)


class Other(Dataset):
    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return self.data[index]


def recipe_of(kind=TensorDataset, processes=0):
    data = cases.make("epochs").train
    loader = DataLoader(TensorDataset(*data[:]) if kind is TensorDataset else kind(data), 64, num_workers=processes)
    return _data.BatchSource(loader, "loader")


def make(train=None):
    case = cases.make("epochs")
    train = train or recipe_of()
    parts = _parts.together(case.model, case.loss)
    read = _optimizer.ReadOptimizer(case.optimizer)
    work = _work.make_work(parts, train, None, read, "fp32", b"", {"step": 1, "epoch": 1, "state": {}}, None, check=False)
    flat = _model.flatten(work.layout, work.names)
    computation = _computation.ModelComputation(work, parts, "cpu", 1, staged=True)
    computation.weights.copy_(flat)
    computation.device_optimizer.settle("sgd")
    return computation, flat


@pytest.fixture
def reads(monkeypatch):
    found, read = [], _data.BatchSource.read
    monkeypatch.setattr(_data.BatchSource, "read", lambda self, numbers, seeds: found.append(numbers) or read(self, numbers, seeds))
    return found


def step(computation, flat, count, version, order_first):
    task = StepTask(computation, flat, count, version, order_first)
    outcome = run(computation, task)
    assert outcome[0] == count, outcome
    return outcome, computation.bound.device_gradients.clone()


def test_the_next_step_begins_with_what_was_made(reads):
    computation, flat = make()
    reads.clear()
    step(computation, flat, 64, 0, 0)
    made = reads[-1]
    assert made == list(range(64, 96)) and reads.count(made) == 1  # a micro-batch of 32
    found = step(computation, flat, 64, 1, 64)
    assert reads.count(made) == 1
    fresh, flat = make()
    assert found[0] == step(fresh, flat, 64, 1, 64)[0]
    assert torch.equal(found[1], computation.bound.device_gradients)


@pytest.mark.parametrize(("count", "version", "order_first"), [(64, 1, 128), (64, 2, 64), (24, 1, 64)])
def test_another_step_reads_its_own(reads, count, version, order_first):
    computation, flat = make()
    step(computation, flat, 64, 0, 0)
    found = step(computation, flat, count, version, order_first)
    fresh, flat = make()
    assert found[0] == step(fresh, flat, count, version, order_first)[0]


def test_nothing_is_made_of_samples_that_may_change_nor_of_the_next_epoch(reads):
    computation, flat = make(recipe_of(Other))
    reads.clear()
    step(computation, flat, 64, 0, 0)
    assert reads == [list(range(32)), list(range(32, 64))]
    computation, flat = make()
    size = len(cases.make("epochs").train)
    reads.clear()
    step(computation, flat, 64, 0, size - 64)
    assert reads == [list(range(size - 64, size - 32)), list(range(size - 32, size))]


def test_processes_read_no_sample_twice():
    train = recipe_of(Other, processes=1)
    with train.reading():
        computation, flat = make(train)
        ahead = computation._ahead["loader"]
        begun, begin = [], ahead._begin
        ahead._begin = lambda task, piece: begun.append(piece.block) or begin(task, piece)
        for number in range(3):
            step(computation, flat, 64, number, 64 * number)
    assert len(begun) == len(set(begun)) and {(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)} <= set(begun)


def test_a_batch_that_was_read_early_is_not_waited_for_twice():
    """The next one is begun with the passes of this one, and nobody waits for it before the step after."""
    train = recipe_of(Other, processes=1)
    with train.reading():
        computation, flat = make(train)
        waits, wait = [], computation._next.wait
        computation._next.wait = lambda: waits.append(computation._next._making is not None) or wait()
        for number in range(3):
            step(computation, flat, 32, number, 32 * number)
    assert waits == [False, True, True]
