"""What a machine whose samples come bit by bit says of them to the head."""

import types

import pytest
import torch

from motley import Error, _core
from motley._content import _stock
from motley._samples import _data

SIZE, BATCH = 1000, 10


class Samples:
    def __init__(self):
        self.here, self.asked = set(), []

    def is_here(self, index):
        self.asked.append(index)
        return index in self.here


def recipe(samples, size=SIZE):
    return types.SimpleNamespace(size=size, samples=size, batch_size=BATCH, loader=types.SimpleNamespace(dataset=samples),
                                 says_what_is_here=hasattr(samples, "is_here"), numbers_at=lambda epoch, positions: positions,
                                 number=lambda index: 1000 + index)


class Machine:
    """A watch, without its thread, over samples in the order of their numbers; sample i of the run is number 1000 + i of the data set."""

    def __init__(self, monkeypatch):
        self.place, self.told = None, []
        self.lacks_tests = []
        core = types.SimpleNamespace(tell=self.tell, place=lambda: self.place)
        monkeypatch.setattr(_core, "SampleStock", lambda: core, raising=False)
        self.samples = Samples()
        self.watch = _stock.Watch(recipe(self.samples))

    def tell(self, *what):
        self.told.append(what[:4])
        self.lacks_tests.append(what[4])

    def come(self, first, end):
        self.samples.here.update(range(1000 + first, 1000 + end))

    def at(self, step, epoch=0, shuffles=False):
        """What is said when the run is at that step."""
        self.place = 7, shuffles, epoch, step * BATCH, BATCH
        self.watch.look()
        return self.told[-1]


@pytest.fixture
def machine(monkeypatch):
    return Machine(monkeypatch)


def test_at_first_it_has_nothing(machine):
    assert machine.told == [(0, 0, 0, False)]
    assert not machine.watch.look() and machine.told == [(0, 0, 0, False)]
    assert machine.samples.asked == [1000], "what is asked for comes"


def test_who_has_all_says_so_at_once(machine):
    machine.come(0, SIZE)
    assert machine.watch.look() and machine.told[-1] == (0, 0, 0, True)


def test_before_the_first_step_it_begins_with_the_first_sample(machine):
    machine.come(0, 25)
    machine.place = 7, False, 0, 0, 0
    machine.watch.look()
    assert machine.told[-1] == (0, 0, 25, False)


def test_what_it_has_grows_from_behind_the_open_step_on(machine):
    assert machine.at(3) == (0, 50, 0, False)  # the open one, and one more
    assert machine.samples.asked[-BATCH:] == list(range(1050, 1060)), "the whole step comes together"
    machine.come(50, 65)
    assert machine.at(3) == (0, 50, 15, False)
    machine.come(65, 300)
    assert machine.at(6) == (0, 50, 250, False)
    told = len(machine.told)
    machine.at(7)
    assert len(machine.told) == told, "nothing has changed"


def test_where_the_run_is_faster_it_looks_further_ahead(machine):
    assert [machine.at(step)[1] // BATCH for step in (0, 2, 6, 14, 30)] == [2, 6, 14, 30, 62]
    machine.come(620, SIZE)
    assert machine.at(40) == (0, 620, SIZE - 620, False)
    assert machine.samples.asked[-1] == 1000, "then what is missing of the others"


def test_a_new_epoch_is_another_order(machine):
    machine.at(3)
    machine.come(0, SIZE // 2)
    assert machine.at(0, epoch=1) == (1, 10, SIZE // 2 - 10, False)
    order = _core.sample_order(7, 2, SIZE, BATCH, 1, True)
    machine.samples.here.clear()
    machine.at(0, epoch=2, shuffles=True)
    assert 1000 + order[0] in machine.samples.asked


def test_a_run_that_begins_again_further_back_is_followed(machine):
    machine.come(900, SIZE - 1)
    assert machine.at(90) == (0, 920, SIZE - 921, False)
    assert machine.at(0) == (0, 10, 0, False)


def test_at_the_end_of_an_epoch_it_has_all_that_came(machine):
    machine.come(500, SIZE)
    assert machine.at(70) == (0, 720, SIZE - 720, False)
    machine.come(0, 500)
    assert machine.at(70) == (0, 0, 0, True)


def test_an_order_that_is_not_known_yet(machine):
    machine.watch._train.numbers_at = lambda epoch, positions: None
    assert machine.at(3) == (0, 50, 0, False)


def test_test_samples_are_said_apart(machine):
    tests = Samples()
    watch = _stock.Watch(recipe(machine.samples), recipe(tests, 20))
    machine.place = 7, False, 0, 0, BATCH
    machine.come(0, 2 * BATCH)
    watch.look()
    assert machine.lacks_tests[-1] and not tests.asked, "train samples come first"
    machine.come(0, 100)
    watch.look()
    assert machine.lacks_tests[-1] and tests.asked == [1000]
    tests.here.update(range(1000, 1020))
    watch.look()
    assert machine.told[-1] == (0, 0, 100, False) and not machine.lacks_tests[-1]


def test_train_samples_that_say_nothing_are_all_there(machine):
    tests = Samples()
    watch = _stock.Watch(recipe(object()), recipe(tests, 20))
    assert machine.told[-1] == (0, 0, 0, True) and machine.lacks_tests[-1]
    assert not watch.look()
    tests.here.update(range(1000, 1020))
    assert watch.look() and not machine.lacks_tests[-1]


def test_the_next_run_begins_anew(machine):
    launch = types.SimpleNamespace(keep_stock=lambda stock: None)
    with _stock.told(launch, types.SimpleNamespace(says_what_is_here=False), None):
        pass
    assert len(machine.told) == 1
    with _stock.told(launch, machine.watch._train, None):
        pass
    assert machine.told[-1] == (0, 0, 0, True) and (0, 0, 0, False) in machine.told


def test_what_fails_is_for_who_reads_to_say(machine):
    def fails(index):
        raise Error("the disk is full")

    machine.samples.is_here = fails
    machine.watch.run()
    assert machine.told == [(0, 0, 0, False)]


def test_the_samples_that_are_compared_are_asked_for_together():
    """Whoever reads one of them waits for its block."""
    import torch
    from torch.utils.data import DataLoader

    from motley._samples import _data

    class Far(Samples, torch.utils.data.Dataset):
        def __len__(self):
            return SIZE

        def __getitem__(self, index):
            self.read.append((index, len(self.asked)))
            return torch.tensor([float(index)])

    data = Far()
    data.read = []
    recipe = _data.Recipe(DataLoader(data, 8), "train_loader")
    recipe.contents()
    assert sorted(data.asked) == sorted(recipe.some(_data.COMPARED))
    assert {asked for _, asked in data.read} == {_data.COMPARED}


class Numbers(torch.utils.data.Dataset):
    """Sample i is i; which ones were read and asked for is kept."""

    def __init__(self):
        self.read, self.asked = [], []

    def __len__(self):
        return SIZE

    def __getitem__(self, index):
        self.read.append(index)
        return torch.tensor(float(index))

    def is_here(self, index):
        self.asked.append(index)
        return False


def test_a_calibration_computes_the_samples_that_were_compared():
    numbers = Numbers()
    recipe = _data.Recipe(torch.utils.data.DataLoader(numbers, BATCH, shuffle=True), "train_loader")
    recipe.fingerprint()
    compared, read = recipe.some(_data.COMPARED), len(numbers.read)
    measures = types.SimpleNamespace(kind="train", contributes=False, probes=False)
    assert recipe.of_task(measures, 40, 20) == [*compared[40:], *compared[:12]]
    assert len(numbers.read) == read, "it was known"
    trains = types.SimpleNamespace(kind="train", contributes=True, probes=False, epoch=0, indices=lambda at, count: [at] * count)
    assert recipe.of_task(trains, 5, 2) == [5, 5]
