"""Which samples a run uses, and that they are the same everywhere: samplers, drop_last, and what is read ahead."""

import itertools
import json

import pytest
import torch
from torch.utils import data
from torch.utils.data import DataLoader

import cases
import plain
import samples
from conftest import SCRIPTS, train
from motley import _errors
from motley._samples import _ahead, _data
from numbered import SIZE, TRAIN, Numbered, Own, source, used, with_batch
from sample_order import sample_order

SCRIPT = str(SCRIPTS / "samples.py")

def test_samplers_of_training_choose_samples_and_whether_they_are_shuffled():
    dataset = Numbered()
    for made, numbers, shuffles, drops in (
        (source(dataset, shuffle=True), range(SIZE), True, False),
        (source(dataset, drop_last=True), range(SIZE), False, True),
        (source(dataset, batch=60, drop_last=True), range(SIZE), False, False),  # nothing to drop
        (source(dataset, sampler=data.SubsetRandomSampler([9, 3, 5])), [9, 3, 5], True, False),
        (source(dataset, sampler=torch.tensor([9, 3, 5]).tolist()), [9, 3, 5], False, False),
        (source(dataset, sampler=data.RandomSampler(range(70))), range(70), True, False),
        (source(dataset, batch_sampler=data.BatchSampler(data.RandomSampler(dataset), 64, True)), range(SIZE), True, True),
        (source(dataset, batch_sampler=data.BatchSampler(data.SequentialSampler(dataset), 16, False)), range(SIZE), False, False),
    ):
        assert used(made) == list(numbers) and made.size == len(numbers)
        assert (made.shuffles, made.drops_last) == (shuffles, drops)
        assert made.check_order() == []
    assert source(dataset, batch_sampler=data.BatchSampler(data.RandomSampler(dataset), 16, False)).batch_size == 16


REFUSED = [
    (dict(sampler=data.DistributedSampler(range(SIZE), 2, 0)), "shares them out by itself", "global batch"),
    (dict(sampler=Own([1, SIZE])), "asks for sample 300 of 300", "look at"),
    (dict(sampler=itertools.count()), "gives more than 19264 numbers", "comes to an end"),
    (dict(sampler=["a"]), "something else than numbers", "by number"),
    (dict(sampler=[]), "gives no samples", "look at"),
    (dict(sampler=Own([])), "gives no samples", "look at"),
    (dict(batch_sampler=[[1, 2], [], [4]]), "batch 2 of list has no samples", "every batch is a step"),
    (dict(batch_sampler=[]), "gives no samples", "look at"),
    (dict(batch_size=None), "expected a batch_size", "global batch"),
]


@pytest.mark.parametrize("options, said, remedy", REFUSED, ids=[each[1] for each in REFUSED])
def test_samplers_that_want_another_training_are_refused(options, said, remedy):
    with pytest.raises(_errors.Error) as refused:
        _data.BatchSource(DataLoader(Numbered(), **with_batch(options)), TRAIN)
    assert said in str(refused.value) and remedy in refused.value.hint


def test_an_epoch_without_a_batch_is_refused():
    with pytest.raises(_errors.Error, match="drop_last leaves nothing of 50 samples in batches of 64"):
        source(Numbered(50), drop_last=True).check_order()


def test_samplers_of_the_test_set_are_followed():
    dataset = Numbered()
    for made, numbers in (
        (source(dataset, "test"), range(SIZE)),
        (source(dataset, "test", shuffle=True), range(SIZE)),
        (source(dataset, "test", drop_last=True), range(256)),
        (source(dataset, "test", batch=60, drop_last=True, shuffle=True), range(SIZE)),
        (source(dataset, "test", sampler=data.SubsetRandomSampler([9, 3, 5])), [3, 5, 9]),
        (source(dataset, "test", sampler=Own([9, 3, 3, -1])), [3, 3, 9, 299]),
        (source(dataset, "test", batch_sampler=[[8, 2], [4]]), [2, 4, 8]),
        (source(dataset, "test", batch_sampler=data.BatchSampler(data.SequentialSampler(dataset), 64, True)), range(256)),
    ):
        assert used(made) == list(numbers)
    for options, said in ((dict(sampler=data.WeightedRandomSampler([1.0] * SIZE, SIZE)), "other samples each time"),
                          (dict(sampler=data.RandomSampler(range(SIZE), num_samples=50)), "other samples each time"),
                          (dict(shuffle=True, drop_last=True), "which ones would be chance"),
                          (dict(sampler=data.SubsetRandomSampler([1, 2, 3]), drop_last=True), "which ones would be chance")):
        with pytest.raises(_errors.Error, match=said):
            source(dataset, "test", **options)


def test_looking_at_samplers_draws_nothing():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    source(Numbered(), "test", sampler=data.SubsetRandomSampler([1, 2]))
    assert torch.equal(torch.get_rng_state(), before)


def test_what_is_read_ahead_follows_the_order_of_the_run():
    asked = []

    class Readers:
        most = 1000

        def read(self, numbers, seeds):
            asked.append(list(numbers))

    class Task:
        version, first, count, epoch, order_first, seed, from_end, contributes, probes = 3, 0, 64, 0, 192, 5, False, True, False

        def indices(self, first, count):
            return list(range(192 + first, 192 + first + count))

    _ahead.Ahead(Readers(), lambda *_: None, True, SIZE, 64, shuffles=False, drops_last=True).expect(Task(), 64)
    assert sum(asked, []) == [*range(192, 256), *range(128)]  # what is left of the epoch is not used


# --- runs ------------------------------------------------------------------------------------------------------------------

def loop(what, shuffle=True, drop_last=False):
    """Losses of the plain loop, and the loss on the samples of the test loader at its end."""
    loader, test = samples.make(what)
    made = _data.BatchSource(loader, TRAIN)
    torch.manual_seed(8)
    model = cases.mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    if made.orders is not None:  # the sampler's own: made anew, because its generator has moved
        loader = samples.make(what)[0]
    for epoch in range(samples.EPOCHS):
        if made.orders is not None:
            whole = list(loader.batch_sampler)
            order = list(itertools.chain.from_iterable(whole))
        else:
            order = sample_order(cases.SEED, epoch, made.size).tolist() if shuffle else list(range(made.size))
        end = made.size // samples.BATCH * samples.BATCH if drop_last else made.size
        batches = [order[first : min(first + samples.BATCH, end)] for first in range(0, end, samples.BATCH)]
        for batch in batches if made.orders is None else whole:
            optimizer.zero_grad()
            loss = cases.cross_entropy(model, made.fetch(batch))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if what == "curriculum":
            loader.sampler.numbers = samples.HARDEST
    x, y = (torch.cat(parts) for parts in zip(*test))
    with torch.no_grad():
        return losses, cases.cross_entropy(model, (x, y)).item(), int((model(x).argmax(1) == y).sum()) / len(y)


@pytest.mark.parametrize("what, order, workers, processes", [
    ("dropped", dict(drop_last=True), 1, ""), ("dropped", dict(drop_last=True), 3, "processes"), ("in_order", dict(shuffle=False), 3, ""),
    ("chosen", {}, 1, ""),
    ("weighted", {}, 1, ""), ("weighted", {}, 3, "processes"),
    ("buckets", {}, 3, ""), ("uneven", {}, 1, ""), ("uneven", {}, 3, "processes"), ("curriculum", {}, 3, "")])
def test_follows_the_plain_loop(motley, what, order, workers, processes):
    losses, test_loss, accuracy = loop(what, **order)
    options = [word for key, value in order.items() for word in ("--set", f"train.{key}={str(value).lower()}")]
    program = train(motley, "samples.py", what, *[processes] * bool(processes), workers=workers, options=options)
    assert list(program.losses()) == list(range(len(losses)))
    assert plain.worst_loss(program.losses(), losses) <= (1e-6 if workers == 1 else 1e-5)
    last = [json.loads(line.removeprefix("epoch ")) for line in program.text if line.startswith("epoch ")][-1]
    assert last["test_loss"] == pytest.approx(test_loss, rel=1e-4) and last["accuracy"] == pytest.approx(accuracy)
    audit = motley.audit("run")
    assert audit["samples"] == sum(event["samples"] for event in program.named("step")) and audit["epochs"] == samples.EPOCHS


def test_goes_on_in_the_same_order_and_in_no_other(motley):
    order = ["--set", "train.drop_last=true", "--set", "train.shuffle=false"]
    whole = train(motley, "samples.py", "in_order", options=order, run="whole")
    here = ["--run", "broken", "--listen", "127.0.0.1:0", "--device", "cpu", "--threads", "1", "--set", "train.checkpoint_seconds=0.02"]
    head = motley.start("train", SCRIPT, *here, *order, "in_order")
    head.wait_step(3)
    head.kill()
    head.process.wait()
    again = ["train", SCRIPT, "--resume", *here]
    error = motley.fails(*again, "--set", "train.drop_last=false", "--set", "train.shuffle=false", "in_order", status=1)
    assert "drop_last" in error["message"], error
    resumed = motley.run(*again, *order, "in_order")
    assert resumed.process.returncode == 0, resumed.story()
    assert {**head.losses(), **resumed.losses()} == whole.losses()
    motley.audit("broken")
