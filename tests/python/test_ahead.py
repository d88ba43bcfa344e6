"""Samples that processes of the loader read before they are asked for."""

import collections
import os
import select
from concurrent.futures import Future

import numpy
import pytest
import torch
from torch.utils.data import DataLoader, default_collate

import cases
import plain
from conftest import SCRIPTS, train
from program import PATIENCE_S
from motley import _core, _errors
from motley._samples import _ahead, _data, _packing

SEED, SIZE, BATCH = 5, 300, 96


class Task:
    kind, contributes, probes, from_end, seed = "train", True, False, False, SEED

    def __init__(self, version, first, count, epoch, order_first):
        self.version, self.first, self.count, self.epoch, self.order_first = version, first, count, epoch, order_first

    def indices(self, first, count):
        return _core.sample_order(SEED, self.epoch, SIZE, self.order_first + self.first + first, count)


class Readers:
    """Reads at once what is let in; the rest can be called back."""

    most = 4 * BATCH

    def __init__(self):
        self.asked, self.waiting, self.open = [], [], True

    def read(self, numbers, seeds):
        self.asked.append(list(numbers))
        future = Future()
        if self.open:
            future.set_running_or_notify_cancel()
            future.set_result(_packing.pack(list(zip(numbers, seeds))))
        else:
            self.waiting.append((future, numbers, seeds))
        return future

    def result(self, future):
        for waiting, numbers, seeds in self.waiting:
            if waiting is future:
                future.set_running_or_notify_cancel()
                future.set_result(_packing.pack(list(zip(numbers, seeds))))
        return future.result(0)


def make(batch=BATCH):
    def seeds(task, version, first, count):
        return [(version, first + i) for i in range(count)]

    readers = Readers()
    return readers, _ahead.Ahead(readers, seeds, True, SIZE, batch)


def passes(batch=BATCH):
    version = 0
    for epoch in range(3):
        for start in range(0, SIZE, batch):
            yield version, epoch, start, min(batch, SIZE - start)
            version += 1


def compute(ahead, task, limit=None, sizes=(20,)):
    """Takes the task's samples by micro-batches; what it got must be what the task says."""
    limit, done = limit or task.count, 0
    while done < limit:
        ahead.expect(task, limit)
        size = min(sizes[done % len(sizes)], limit - done)
        at = task.count - done - size if task.from_end else done
        expected = [(number, (task.version, task.first + at + i)) for i, number in enumerate(task.indices(at, size))]
        assert ahead.take(task, at, size) == expected
        done += size


@pytest.mark.parametrize("from_end", [False, True])
def test_what_comes_next_is_read_before_and_once(from_end):
    readers, ahead = make()
    for version, epoch, start, count in passes():
        task = Task(version, 0, count, epoch, start)
        task.from_end = from_end
        ahead.expect(task, count)
        asked = len(readers.asked)
        compute(ahead, task)
        # Of this pass and the two that follow all was asked for by its beginning; what it frees goes to none but those.
        assert len(readers.asked) == asked
    read = collections.Counter(number for numbers in readers.asked for number in numbers)
    assert sum(read.values()) == 3 * SIZE + 2 * BATCH
    assert all(3 <= times <= 5 for times in read.values())


def test_no_more_is_held_than_the_loader_would():
    readers, ahead = make()
    readers.most = BATCH
    for version, epoch, start, count in passes():
        ahead.expect(Task(version, 0, count, epoch, start), count)
        assert sum(len(reading.piece.numbers) for reading in ahead._readings.values()) <= BATCH + _ahead.BLOCK
        compute(ahead, Task(version, 0, count, epoch, start))


def test_another_share_and_another_batch_cost_reading_alone():
    readers, ahead = make()
    for version, epoch, start, count in passes():
        first = (version * 7) % max(1, count - 30)
        compute(ahead, Task(version, first, min(25, count - first), epoch, start), sizes=(8, 3, 20))
        compute(ahead, Task(version, 0, min(count, 40), epoch, start), limit=min(count, 33))
    readers, ahead = make()
    for version, epoch, start, count in passes(40):
        compute(ahead, Task(version, 0, count, epoch, start))
    assert len(readers.asked) <= 2 * 3 * -(-SIZE // 40) + 10


def test_what_is_needed_now_comes_before_what_was_guessed():
    readers, ahead = make()
    readers.open = False
    ahead.expect(Task(0, 0, 64, 0, 0), 64)
    guessed = readers.asked[2:]
    assert len(guessed) == 4
    ahead.expect(Task(0, 64, 32, 0, 0), 32)  # of another's share
    assert readers.asked[len(guessed) + 2] == Task(0, 64, 32, 0, 0).indices(0, 32)
    assert readers.asked[len(guessed) + 3 :] == guessed
    compute(ahead, Task(0, 64, 32, 0, 0))
    compute(ahead, Task(0, 0, 64, 0, 0))


def test_samples_of_every_kind_cross_as_they_are():
    Pair = collections.namedtuple("Pair", "x y")
    kinds = [
        [torch.rand(3, 2), torch.rand(2, 2)[:, :1], torch.rand(())],
        [torch.zeros(0), torch.ones(2, dtype=torch.int64)],  # of two types
        [numpy.ones((2, 3), "f4"), numpy.zeros((1, 3), "f4")],
        [numpy.array(["a"]), numpy.array(["b"])],
        [(torch.ones(2), 1), (torch.zeros(3), 2)],
        [{"x": [1.5, "a"], "y": None}, {"x": [2.5, "b"], "y": None}],
        [{"x": 1}, {"y": 1}],
        [Pair(torch.ones(1), 2), Pair(torch.zeros(1), 3)],
        [(), ()],
    ]
    for samples in kinds:
        found = _packing.unpack(_packing.pack(samples))
        assert _data._same(found, samples) and [type(sample) for sample in found] == [type(sample) for sample in samples]
        assert str(found) == str(samples)


Pair = collections.namedtuple("Pair", "x y")
COLLATED = {
    "tensors": lambda i: torch.full((2, 3), i, dtype=torch.uint8),
    "scalars": lambda i: torch.tensor(float(i)),
    "arrays": lambda i: numpy.full((2, 3), i, "f4"),
    "numbers": lambda i: i,
    "words": lambda i: str(i),
    "tuples": lambda i: (torch.full((2,), i), i),
    "lists": lambda i: [torch.full((2,), i), [i, numpy.ones(2) * i]],
    "pairs": lambda i: Pair(torch.full((2,), i), (i, float(i))),
    "mappings": lambda i: {"x": torch.full((2,), i), "y": {"z": i}},
}


@pytest.mark.parametrize("name", COLLATED)
def test_samples_are_collated_where_they_lie(name):
    samples = [COLLATED[name](i) for i in range(10)]
    parts = [(_packing.pack(samples[:4]), 1, 4), (_packing.pack(samples[4:9]), 0, 5), (_packing.pack(samples[9:]), 0, 1)]
    expected = default_collate(samples[1:])
    found = _packing.collate(parts)
    assert _data._same(found, expected) and str(found) == str(expected) and type(found) is type(expected)


@pytest.mark.parametrize("samples", [[torch.ones(2), torch.ones(3)], [torch.zeros(2, 0), torch.zeros(2, 0)],
                                     [(torch.ones(2), 1), (torch.ones(3), 1)]])
def test_what_does_not_lie_together_is_taken_apart(samples):
    with pytest.raises(_packing.Apart):
        _packing.collate([(_packing.pack(samples), 0, 2)])
    with pytest.raises(_packing.Apart):
        _packing.collate([(_packing.pack(samples[:1]), 0, 1), (_packing.pack([1, 2]), 0, 1)])


@pytest.mark.parametrize("name", ["augmented", "tokens", "normed"])
def test_processes_read_the_same(motley, name):
    here = train(motley, "train_case.py", name, run="here")
    there = train(motley, "train_case.py", name, 2, run="there")
    assert there.losses() == here.losses()
    several = train(motley, "train_case.py", name, 2, run="several", workers=3)
    assert plain.worst_loss(several.losses(), list(here.losses().values())) <= 1e-5


def test_the_processes_do_the_reading(motley, tmp_path):
    program = train(motley, "train_case.py", "counted", 2)
    case = cases.make("counted")
    by_process = collections.defaultdict(list)
    for line in (tmp_path / "read").read_text().splitlines():
        parent, process, index = map(int, line.split())
        by_process[parent, process].append(index)
    mine = {key: read for key, read in by_process.items() if key[1] == program.process.pid}
    others = [read for key, read in by_process.items() if key[0] == program.process.pid]
    # One may have read all before the other has begun.
    assert len(others) in (1, 2) and len(mine) + len(others) == len(by_process)
    # The script's own are the look for rare labels, which takes each once, the trial of the loss, what is compared with other machines, and
    # one micro-batch that is looked at again.
    own = {0, *_core.sample_order(_data.CONTENTS_KEY, 0, cases.SIZE, 0, _data.COMPARED)}
    once = [index for read in mine.values() for index in read if index not in own]
    assert len(once) <= cases.SIZE + 2 * case.batch < case.epochs * cases.SIZE
    times = collections.Counter(index for read in others for index in read)
    assert all(case.epochs <= times[index] <= case.epochs + 2 for index in range(cases.SIZE))


def test_they_end_with_a_run_that_was_killed(motley, tmp_path):
    options = ["--run", "run", "--listen", "127.0.0.1:0", "--device", "cpu", "--threads", "1", "--set", "train.epochs=100000"]
    program = motley.start("train", str(SCRIPTS / "train_case.py"), *options, "counted", "2")
    program.wait_step(3)
    lines = [line.split() for line in (tmp_path / "read").read_text().splitlines()]
    others = {int(process) for parent, process, _ in lines if int(parent) == program.pid}
    handles = [os.pidfd_open(process) for process in others]
    program.kill()
    for handle in handles:
        assert select.select([handle], [], [], PATIENCE_S)[0], "still there"
        os.close(handle)


def test_an_exception_of_a_data_set_shows_where_it_came_from(motley):
    program = motley.run("train", str(SCRIPTS / "wrong.py"), "--run", "run", "--listen", "127.0.0.1:0", "--device", "cpu", "--threads", "1",
                         "unreadable")
    assert program.process.returncode == 2, program.story()
    said = "\n".join(program.text)
    assert "OSError: no such file: 251" in said and "wrong.py" in said and "in __getitem__" in said
    assert "no such file: 251" in program.error()["message"]


class Ends(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 5:
            os._exit(3)
        return index


def test_a_process_that_ends_is_named():
    loader = DataLoader(Ends(), 8, num_workers=1)
    source = _data.BatchSource(loader, "train_loader")
    with source.reading():
        assert _packing.unpack(source.readers.result(source.readers.read([1, 2], None))) == [1, 2]
        with pytest.raises(_errors.Error, match="train_loader: a process that reads samples has ended"):
            source.readers.result(source.readers.read([5], None))
