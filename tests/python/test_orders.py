"""Orders that are a sampler's own: listed once an epoch, sent to all machines; and streams, which are read by shards."""

import array
import itertools
import pickle
import subprocess
import zlib

import pytest
import torch
from torch.utils import data
from torch.utils.data import DataLoader

import cases
import plain
import samples
from conftest import COMMAND, SCRIPTS, train
from motley import _errors
from motley._samples import _data, _orders, _shards
from numbered import SIZE, TRAIN, Batches, Numbered, Own, source, used

SCRIPT = str(SCRIPTS / "samples.py")


def listed(made, first, last):
    """The orders of these epochs, as a worker gets them."""
    made.orders.take(made.orders.state(first, last))
    return [made.numbers_at(epoch, list(range(made.size))) for epoch in range(first, last)]


def test_samplers_with_an_order_of_their_own_are_listed_once_an_epoch():
    def seeded(seed):
        return torch.Generator().manual_seed(seed)

    weights = [1.0 + number % 5 for number in range(SIZE)]
    for options in (dict(sampler=data.WeightedRandomSampler(weights, 200, generator=seeded(1))),
                    dict(sampler=data.RandomSampler(range(SIZE), replacement=True, num_samples=1000, generator=seeded(2))),
                    dict(batch_sampler=data.BatchSampler(data.RandomSampler(range(SIZE), num_samples=100, generator=seeded(3)), 64, True))):
        made = source(Numbered(), **options)
        assert made.orders is not None and not made.shuffles and made.samples == SIZE
        found = listed(made, 0, 1) + listed(made, 1, 3)
        for sampler in options.values():
            sampler = getattr(sampler, "sampler", sampler)
            sampler.generator.manual_seed({200: 1, 1000: 2, 100: 3}[made.size])
            assert found == [list(sampler) for _ in range(3)]
    made = source(Numbered(), batch_sampler=Batches([[5, 3], [1, 2], [7]], [[1, 2], [7, -3], [5]]))
    assert (made.batch_size, made.size, made.steps_per_epoch, made.drops_last) == (2, 5, 3, False)
    assert listed(made, 0, 2) == [[5, 3, 1, 2, 7], [1, 2, 7, 297, 5]]


def test_a_sampler_without_a_generator_follows_from_the_seed_of_the_run():
    def orders(seed):
        torch.rand(3)
        loader = DataLoader(Numbered(), 64, sampler=data.WeightedRandomSampler([1.0] * SIZE, SIZE))
        return listed(_data.BatchSource(loader, TRAIN, seed), 0, 2)

    state = torch.get_rng_state()
    first, again, other = orders(1), orders(1), orders(2)
    assert first == again and first[0] != first[1] and first != other
    torch.set_rng_state(state)
    torch.rand(9)
    assert torch.equal(torch.get_rng_state(), torch.get_rng_state()) and source(Numbered()).orders is None


def test_a_sampler_that_gives_another_number_of_samples_is_named():
    made = source(Numbered(), batch_sampler=Batches([[1, 2], [3]], [[1, 2], [3, 4]]))
    with pytest.raises(_errors.Error, match="gives 4 samples in epoch 2, and gave 3 in the first"):
        made.orders.state(1, 2)
    made = source(Numbered(), batch_sampler=Batches([[1, 2], [3]], [[1], [2], [3]]))
    with pytest.raises(_errors.Error, match="gives 3 batches in epoch 2, and gave 2 in the first"):
        made.orders.state(1, 2)


def test_batches_of_unequal_size_are_told_step_by_step():
    def batches(*sizes):
        numbers = iter(range(sum(sizes)))
        return [list(itertools.islice(numbers, size)) for size in sizes]

    epochs = (4, 4, 2), (4, 4, 2), (2, 4, 4), (5, 4, 1), (4, 1, 5), (5, 5, 5)
    made = source(Numbered(), batch_sampler=Batches(*(batches(*sizes) for sizes in epochs[:5])))
    assert (made.batch_size, made.steps_per_epoch, made.batch_sizes, made.length(2)) == (4, 3, {4, 2}, ({"steps": 6}, 6))
    assert made.changes_of_batch() == []
    made.orders.state(1, 3)
    assert made.changes_of_batch() == [(6, 2), (7, 4)] and made.changes_of_batch() == []
    made.orders.state(3, 5)
    changes = [(6, 2), (7, 4), (9, 5), (10, 4), (13, 1), (14, 5)]
    assert made.changes_of_batch() == changes[2:]
    again, step = source(Numbered(), batch_sampler=Batches(*(batches(*sizes) for sizes in epochs[:5]))), 0
    again.orders.state(0, 5)
    assert again.changes_of_batch() == changes
    for sizes in epochs[:5]:  # as src/base/batch_plan.cpp does
        left = 10
        for size in sizes:
            batch = ([4] + [batch for first, batch in changes if first <= step])[-1]
            assert min(batch, left) == size
            left, step = left - size, step + 1


def test_orders_travel_in_few_bytes_and_nothing_else_is_taken():
    for numbers in ([0], [5, 3, 299], [1 << 40, 0], list(range(1000))):
        packed = _orders.pack(array.array("q", numbers))
        assert _orders.unpack(packed, len(numbers), (1 << 40) + 1).tolist() == numbers
        for size, samples in ((len(numbers) + 1, 1 << 41), (len(numbers), max(numbers))):
            with pytest.raises(ValueError):
                _orders.unpack(packed, size, samples)
        for cut in range(len(packed)):
            with pytest.raises((ValueError, zlib.error)):
                _orders.unpack(packed[:cut], len(numbers), 1 << 41)
    million = _orders.pack(array.array("q", torch.randperm(1_000_000).tolist()))
    assert len(million) < 3_000_000
    bomb = torch.tensor([1, *zlib.compress(bytes(1 << 20))], dtype=torch.uint8)
    made = source(Numbered(), sampler=Own([1, 2]))
    for sent in (bomb, torch.zeros(0, dtype=torch.uint8), torch.tensor([9, 9], dtype=torch.uint8), "x", None):
        with pytest.raises(_errors.Error, match="is no list of 2 samples of 300"):
            made.orders.take({_orders.KEY: {"0": sent}})
    with pytest.raises(_errors.Error, match="is no list"):
        made.orders.take({_orders.KEY: [1]})
    assert made.numbers_at(0, [0]) is None


def test_an_order_that_is_another_than_before_is_named(tmp_path):
    def made(*epochs):
        return source(Numbered(), batch_sampler=Batches(*epochs))

    first = made([[1, 2]], [[2, 1]], [[3, 4]])
    first.write_orders(tmp_path)
    first.orders.state(1, 3)
    first.write_orders(tmp_path)
    assert [(tmp_path / "orders" / f"{epoch}.txt").read_text() for epoch in range(3)] == ["1\n2\n", "2\n1\n", "3\n4\n"]
    again = made([[1, 2]], [[2, 1]], [[3, 4]], [[5, 6]])
    again.resume_orders(tmp_path)
    again.write_orders(tmp_path)
    assert listed(again, 1, 3) == [[2, 1], [3, 4]]  # from an older checkpoint than the orders that were written
    assert listed(again, 3, 4) == [[5, 6]]
    other = made([[1, 2]], [[9, 8]], [[3, 4]])
    other.resume_orders(tmp_path)
    with pytest.raises(_errors.Error, match="another order of epoch 2 than before"):
        other.write_orders(tmp_path)


# --- streams ---------------------------------------------------------------------------------------------------------------

class Counting(data.IterableDataset):
    def __init__(self, first, last, draws=False):
        self.first, self.last, self.draws, self.begun = first, last, draws, 0

    def __len__(self):
        return self.last - self.first

    def __iter__(self):
        self.begun += 1
        for number in range(self.first, self.last):
            yield number + (float(torch.rand(())) if self.draws else 0)


def test_samples_of_shards_are_read_forwards_and_some_again():
    sources = [Counting(0, 2000), lambda first: iter(range(2000 + first, 2010)), Counting(2010, 2100)]
    shards = _shards.Shards(sources, [2000, 10, 90], map=lambda number: -number)
    assert len(shards) == 2100
    for number in (0, 1500, 1500 - 400, 1999, 2005, 2003, 2009, 2099, 2010):
        assert shards[number] == -number
    assert [sources[0].begun, sources[2].begun] == [1, 1], "those that were passed over lately are still there"
    assert shards[3] == -3 and sources[0].begun == 2
    for batch, shuffled, back in ((10, False, 40), (100, True, 400), (10, True, 40)):
        shards.keep_for(batch, shuffled)
        begun = sources[0].begun
        shards[1500], shards[1500 - back + 1]
        assert sources[0].begun == begun + 1, "four steps are kept"
        shards[1500 - back]
        assert sources[0].begun == begun + 2
    many = _shards.Shards([Counting(100 * number, 100 * number + 100) for number in range(80)], [100] * 80)
    many.keep_for(800, True)
    assert many._kept == 4 * 111, "of each of the eight that are open an eighth of a batch, and what a lane may be longer"
    copied = pickle.loads(pickle.dumps(_shards.Shards([Counting(0, 5)], [5])))
    assert [copied[number] for number in range(5)] == list(range(5))
    with pytest.raises(IndexError):
        shards[2100]


@pytest.mark.parametrize("size, found", [(9, "10 or more"), (11, "10")])
def test_another_number_of_samples_than_was_said_is_an_error(size, found):
    def lines(first):
        return iter(range(first, 10))

    shards = _shards.Shards([lines], [size])
    shards[size - 3]
    for _ in range(2):  # also where somebody else is to compute it
        with pytest.raises(_errors.Error, match=f"expected {size} samples of source 0 .lines., as sizes says, found {found}"):
            shards[size - 2], shards[size - 1]
    with pytest.raises(_errors.Error, match=f"expected {size} samples of source 0 .list., as sizes says, found 10"):
        _shards.Shards([list(range(10))], [size])
    with pytest.raises(_errors.Error, match=f"expected {size} samples"):  # before the first step, where reading it takes little time
        _data.BatchSource(DataLoader(_shards.Shards([lines], [size]), 3), TRAIN).fingerprint()
    for sources, sizes in (([], []), ([[1]], [1, 2]), ([[1]], [0])):
        with pytest.raises(_errors.Error, match="expected a size"):
            _shards.Shards(sources, sizes)


@pytest.mark.parametrize("sizes, batch", [([90, 10, 80, 60, 60], 64), ([1], 4), ([7] * 30, 16), ([1000, 1, 1], 10), ([5, 5], 100)])
def test_every_batch_has_its_part_of_all_lanes(sizes, batch):
    shards = _shards.Shards([lambda first: iter(())] * len(sizes), sizes)
    order = shards.shuffled(3, batch)
    assert sorted(order) == list(range(sum(sizes))) and order == shards.shuffled(3, batch)
    for first, last in zip(shards.starts, shards.starts[1:]):
        mine = [number for number in order if first <= number < last]
        assert mine == list(range(first, last))
    if len(sizes) == 5:
        for first in range(0, 256, batch):
            assert sum(number < 90 for number in order[first : first + batch]) in (19, 20), "of 300 samples 90 are of the first shard"
    if len(sizes) > 4:
        assert order != shards.shuffled(4, batch)


def test_streams_that_machines_would_read_differently_are_refused():
    def said(loader):
        with pytest.raises(_errors.Error) as refused:
            _data.BatchSource(loader, TRAIN).fingerprint()
        return str(refused.value)

    class Once:
        def __init__(self):
            self.numbers = iter(range(100))

        def __iter__(self):
            return self.numbers

    with pytest.raises(_errors.Error, match="range_iterator, which can be read once"):
        _shards.Shards([range(9), iter(range(9))], [9, 9])
    assert "draws from torch" in said(DataLoader(Counting(0, 100, draws=True), 10))
    assert "does not begin anew" in said(DataLoader(_shards.Shards([Once()], [100]), 10))
    assert "without a length" in said(DataLoader(Endless(), 10))
    assert "from beginning to end" in said(DataLoader(_shards.Shards([range(9)], [9]), 3, sampler=data.SubsetRandomSampler([1, 2])))
    assert "expected a batch_size" in said(DataLoader(Counting(0, 100), batch_size=None))
    drawn = _data.BatchSource(DataLoader(_shards.Shards([range(90)], [90], map=lambda number: number + torch.rand(())), 10), TRAIN)
    drawn.fingerprint()
    assert drawn.draws == ("torch",) and drawn.read([80], [7]) == drawn.read([80], [7])
    test = _data.BatchSource(DataLoader(Counting(0, 100), 30), "test")
    assert used(test) == list(range(100)) and test.orders is None and test.steps_per_epoch == 4


class Endless(data.IterableDataset):
    def __iter__(self):
        return itertools.count()


# --- runs ------------------------------------------------------------------------------------------------------------------

def orders(motley, run="run"):
    """By epoch, as `motley audit` gives them."""
    told = [subprocess.run([str(COMMAND), "audit", run, "--order", str(epoch)], cwd=motley.directory, capture_output=True, text=True,
                           check=True) for epoch in range(samples.EPOCHS)]
    return [list(map(int, each.stdout.split())) for each in told]


@pytest.mark.parametrize("what, workers, processes", [("stream", 3, ""), ("shards", 1, ""), ("shards", 3, "processes")])
def test_streams_follow_the_plain_loop_and_give_every_sample_once(motley, what, workers, processes):
    program = train(motley, "samples.py", what, *[processes] * bool(processes), workers=workers)
    audit = motley.audit("run")
    assert (audit["samples"], audit["missing"], audit["duplicate"]) == (2 * 300, 0, 0)
    used = orders(motley)
    assert all(sorted(epoch) == list(range(300)) for epoch in used) and (used[0] == used[1]) is (what == "stream")
    for epoch in used:
        for first, last in zip(samples.ENDS, samples.ENDS[1:]):
            shard = [number for number in epoch if first <= number < last]
            assert shard == sorted(shard), "a shard is read forwards"
    assert plain.worst_loss(program.losses(), losses_in(used)) <= (1e-6 if workers == 1 else 1e-5)


def losses_in(order):
    """Of the plain loop."""
    torch.manual_seed(8)
    model, data_set = cases.mlp(), cases.classes(cases.SIZE, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for epoch in order:
        for first in range(0, len(epoch), samples.BATCH):
            optimizer.zero_grad()
            loss = cases.cross_entropy(model, data_set[epoch[first : first + samples.BATCH]])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@pytest.mark.parametrize("what, size, step", [("weighted", 200, 5), ("uneven", 300, 8)])
def test_the_audit_knows_the_samples_of_a_sampler_and_a_resumed_run_their_order(motley, what, size, step):
    whole = train(motley, "samples.py", what, run="whole")
    used = orders(motley, "whole")
    assert [len(epoch) for epoch in used] == [size, size] and used[0] != used[1]
    if what == "weighted":
        assert plain.worst_loss(whole.losses(), losses_in(used)) <= 1e-6
    here = ["--run", "broken", "--listen", "127.0.0.1:0", "--device", "cpu", "--threads", "1", "--set", "train.checkpoint_seconds=0.02"]
    head = motley.start("train", SCRIPT, *here, what)
    head.wait_step(step)
    head.kill()
    head.process.wait()
    resumed = motley.run("train", SCRIPT, "--resume", *here, what)
    assert resumed.process.returncode == 0, resumed.story()
    assert {**head.losses(), **resumed.losses()} == whole.losses() and orders(motley, "broken") == used
    motley.audit("broken")


@pytest.mark.parametrize("what", ["uneven", "shards"])
def test_another_machine_gets_the_orders(motley, what):
    """The head computes nothing."""
    alone = train(motley, "samples.py", what, run="alone")
    for name in ("head", "other"):
        (motley.directory / name).mkdir()
    here = ["--run", "run", "--listen", "127.0.0.1:0", "--device", "none", "--token-file", "token"]
    head = motley.start("train", SCRIPT, *here, what, "./head")
    other = motley.start("join", "--token-file", "token", SCRIPT, "--name", "other", "--threads", "1", what, "./other")
    assert head.end() == 0 and other.end() == 0, head.story() + other.story()
    assert orders(motley) == orders(motley, "alone")
    assert plain.worst_loss(head.losses(), list(alone.losses().values())) <= 1e-6
    motley.audit("run")


def test_a_plan_makes_more_steps_than_there_are_orders_for(motley):
    planned = motley.run("plan", SCRIPT, "--seconds", "2", "--device", "cpu", "--threads", "1", "uneven")
    assert planned.process.returncode == 0 and planned.named("plan"), planned.story()


def test_a_stream_that_gives_another_number_is_named(motley):
    error = motley.fails("train", SCRIPT, "--run", "run", "--listen", "127.0.0.1:0", "--device", "cpu", "--threads", "1", "short")
    assert "expected 100 samples of source 1" in error["message"] and "found 99" in error["message"], error
