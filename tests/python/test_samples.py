"""Which samples a run uses, and that they are the same everywhere: samplers, drop_last, and what is compared at join."""

import json
import math

import numpy
import pytest
import torch
from torch.utils import data
from torch.utils.data import DataLoader, TensorDataset

import cases
import plain
import samples
from conftest import SCRIPTS, train
from motley import _ahead, _contents, _core, _data, _errors
from sample_order import sample_order

SCRIPT = str(SCRIPTS / "samples.py")
SIZE = 300
TRAIN = "train_loader"


def recipe(dataset, name=TRAIN, batch=64, **options):
    return _data.Recipe(DataLoader(dataset, **with_batch(options, batch)), name)


def with_batch(options, batch=64):
    return options if options.keys() & {"batch_size", "batch_sampler"} else {"batch_size": batch, **options}


class Numbered(data.Dataset):
    """The sample is its number. What `wrong` names happens when one of them is read."""

    def __init__(self, size=SIZE, wrong=""):
        self.size, self.wrong, self.generator = size, wrong, numpy.random.default_rng(1)

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if self.wrong == "raises" and index == 7:
            raise OSError("no such file: 7")
        if self.wrong == "draws":
            return index + torch.rand(()) + float(numpy.random.rand())
        if self.wrong == "own generator":
            return index + self.generator.random()
        return index


# --- which samples ---------------------------------------------------------------------------------------------------------

def used(made):
    return made.fetch(list(range(made.size))).tolist()


def test_samplers_of_training_choose_samples_and_whether_they_are_shuffled():
    dataset = Numbered()
    for made, numbers, shuffles, drops in (
        (recipe(dataset, shuffle=True), range(SIZE), True, False),
        (recipe(dataset, drop_last=True), range(SIZE), False, True),
        (recipe(dataset, batch=60, drop_last=True), range(SIZE), False, False),  # nothing to drop
        (recipe(dataset, sampler=data.SubsetRandomSampler([9, 3, 5])), [9, 3, 5], True, False),
        (recipe(dataset, sampler=torch.tensor([9, 3, 5]).tolist()), [9, 3, 5], False, False),
        (recipe(dataset, sampler=data.RandomSampler(range(70))), range(70), True, False),
        (recipe(dataset, batch_sampler=data.BatchSampler(data.RandomSampler(dataset), 64, True)), range(SIZE), True, True),
        (recipe(dataset, batch_sampler=data.BatchSampler(data.SequentialSampler(dataset), 16, False)), range(SIZE), False, False),
    ):
        assert used(made) == list(numbers) and made.size == len(numbers)
        assert (made.shuffles, made.drops_last) == (shuffles, drops)
        assert made.check_order() == []
    assert recipe(dataset, batch_sampler=data.BatchSampler(data.RandomSampler(dataset), 16, False)).batch_size == 16


class Own(data.Sampler):
    def __init__(self, numbers):
        self.numbers = numbers

    def __iter__(self):
        return iter(self.numbers)


REFUSED = [
    (dict(sampler=data.WeightedRandomSampler([1.0] * SIZE, SIZE)), "WeightedRandomSampler", "weigh samples in the loss"),
    (dict(sampler=data.RandomSampler(range(SIZE), replacement=True)), "draws with replacement", "shuffle=True"),
    (dict(sampler=data.RandomSampler(range(SIZE), num_samples=50)), "takes 50 of 300", "SubsetRandomSampler"),
    (dict(sampler=data.DistributedSampler(range(SIZE), 2, 0)), "shares them out by itself", "global batch"),
    (dict(sampler=Own(range(SIZE))), "Own wants otherwise", "SubsetRandomSampler"),
    (dict(sampler=[1, SIZE]), "asks for sample 300 of 300", "look at"),
    (dict(sampler=["a"]), "something else than numbers", "by number"),
    (dict(sampler=[]), "gives no samples", "look at"),
    (dict(batch_sampler=[[1, 2], [3]]), "puts batches together by itself", "batch_size=N"),
    (dict(batch_size=None), "expected a batch_size", "global batch"),
]


@pytest.mark.parametrize("options, said, remedy", REFUSED, ids=[each[1] for each in REFUSED])
def test_samplers_that_want_another_training_are_refused(options, said, remedy):
    with pytest.raises(_errors.Error) as refused:
        _data.Recipe(DataLoader(Numbered(), **with_batch(options)), TRAIN)
    assert said in str(refused.value) and remedy in refused.value.hint


def test_an_epoch_without_a_batch_is_refused():
    with pytest.raises(_errors.Error, match="drop_last leaves nothing of 50 samples in batches of 64"):
        recipe(Numbered(50), drop_last=True).check_order()


def test_samplers_of_the_test_set_are_followed():
    dataset = Numbered()
    for made, numbers in (
        (recipe(dataset, "test"), range(SIZE)),
        (recipe(dataset, "test", shuffle=True), range(SIZE)),
        (recipe(dataset, "test", drop_last=True), range(256)),
        (recipe(dataset, "test", batch=60, drop_last=True, shuffle=True), range(SIZE)),
        (recipe(dataset, "test", sampler=data.SubsetRandomSampler([9, 3, 5])), [3, 5, 9]),
        (recipe(dataset, "test", sampler=Own([9, 3, 3, -1])), [3, 3, 9, 299]),
        (recipe(dataset, "test", batch_sampler=[[8, 2], [4]]), [2, 4, 8]),
        (recipe(dataset, "test", batch_sampler=data.BatchSampler(data.SequentialSampler(dataset), 64, True)), range(256)),
    ):
        assert used(made) == list(numbers)
    for options, said in ((dict(sampler=data.WeightedRandomSampler([1.0] * SIZE, SIZE)), "other samples each time"),
                          (dict(sampler=data.RandomSampler(range(SIZE), num_samples=50)), "other samples each time"),
                          (dict(shuffle=True, drop_last=True), "which ones would be chance"),
                          (dict(sampler=data.SubsetRandomSampler([1, 2, 3]), drop_last=True), "which ones would be chance")):
        with pytest.raises(_errors.Error, match=said):
            recipe(dataset, "test", **options)


def test_looking_at_samplers_draws_nothing():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    recipe(Numbered(), "test", sampler=data.SubsetRandomSampler([1, 2]))
    assert torch.equal(torch.get_rng_state(), before)


# --- what is compared ------------------------------------------------------------------------------------------------------

def test_equal_sets_have_equal_fingerprints_that_fit():
    first, second = (recipe(cases.classes(SIZE, 2)) for _ in range(2))
    assert first.fingerprint() == second.fingerprint() and first.contents() == second.contents()
    assert first.fingerprint().startswith("300 samples of (float32 [12], int64 []); contents: ")
    assert len({item.split(":")[0] for item in first.fingerprint().split("contents: ")[1].split(" ")}) == 48
    worst = [{f"key {i}": [1e-300, -1e300, i] for i in range(200)}] * SIZE
    assert len(recipe(worst).fingerprint().encode()) < 4096


def test_every_other_content_shows():
    x = torch.randn(40, generator=torch.Generator().manual_seed(1))
    item = {"x": x, "n": 3, "text": "a", "y": [0.5, 2.0], "image": numpy.arange(6, dtype="u1").reshape(2, 3)}
    same = _contents.Contents(item).text
    changes = [("n", 4), ("n", True), ("text", "b"), ("image", item["image"][::-1]), ("image", item["image"].astype("i2")), ("z", None),
               ("x", x.double()), ("x", x.reshape(4, 10)), ("x", x * 1.001), ("x", x.flip(0)), ("x", -x), ("y", [2.0, 0.5]),
               ("x", torch.where(x == x[3], math.nan, x))]
    others = [{**item, key: value} for key, value in changes]
    assert _contents.Contents({**item}).text == same
    for other in others:
        assert not close(same, _contents.Contents(other).text), other
    assert close(same, _contents.Contents({**item, "x": x * (1 + 1e-6 * torch.randn(40))}).text)


def close(a, b):
    """As src/wire/fingerprint.cpp does."""
    a, b = a.split(":"), b.split(":")
    figures = [[int(figure) for figure in text.split(",")] for text in (*a[1:], *b[1:])]
    return a[0] == b[0] and len(a) == len(b) and all(abs(one - other) <= 100 for one, other in zip(*figures))


def test_what_is_drawn_for_a_sample_is_seeded():
    made, again = recipe(Numbered(wrong="draws")), recipe(Numbered(wrong="draws"))
    assert made.fingerprint() == again.fingerprint()
    assert made.draws == ("numpy", "torch")


def test_samples_that_cannot_be_compared_are_named():
    with pytest.raises(_errors.Error, match="sample 7 cannot be read: OSError: no such file: 7"):
        recipe(Numbered(30, "raises")).fingerprint()
    with pytest.raises(_errors.Error, match="another one each time it is read"):
        recipe(Numbered(30, "own generator")).fingerprint()


def test_a_set_that_changes_is_noticed_within_a_round():
    x = torch.zeros(SIZE, 4)
    made = recipe(TensorDataset(x))
    made.fingerprint()
    assert [made.sampled_again() for _ in range(100)] == [None] * 100
    changed = _core.sample_order(_data.CONTENTS_KEY, 0, SIZE, 0, 48)[20]
    x[changed] += 1
    assert changed in [made.sampled_again(0) for _ in range(48)]
    assert made.sampled_again(1000) == changed


def test_what_is_read_ahead_follows_the_order_of_the_run():
    asked = []

    class Readers:
        most = 1000

        def read(self, numbers, seeds):
            asked.append(list(numbers))

    class Task:
        version, first, count, epoch, order_first, seed, from_end, contributes = 3, 0, 64, 0, 192, 5, False, True

        def indices(self, first, count):
            return list(range(192 + first, 192 + first + count))

    _ahead.Ahead(Readers(), lambda *_: None, True, SIZE, 64, shuffles=False, drops_last=True).expect(Task(), 64)
    assert sum(asked, []) == [*range(192, 256), *range(128)]  # what is left of the epoch is not used


# --- runs ------------------------------------------------------------------------------------------------------------------

def start(motley, what):
    for name in ("here", "other"):  # paths may differ between machines
        (motley.directory / name).mkdir()
    head = motley.start("train", SCRIPT, "--run", "run", "--listen", "127.0.0.1:0", "--device", "none", "--token-file", "token", what,
                        "./here")
    return head, motley.start("join", "--token-file", "token", SCRIPT, "--name", "other", "--threads", "1", what, "./other")


@pytest.mark.parametrize("what, said", [("unseeded_split", "training data"), ("other_test", "test data")])
def test_other_samples_of_the_same_number_are_refused(motley, what, said):
    head, other = start(motley, what)
    refused = head.wait_event("worker", change="refused")
    assert said in refused["reason"] and "as many, but other samples" in refused["reason"], refused
    assert other.end() == 1, other.story()
    assert "generator=torch.Generator().manual_seed(0)" in other.error()["try"], other.story()
    head.kill()


def test_the_last_bits_of_numbers_may_differ(motley):
    head, other = start(motley, "last_bits")
    assert head.end() == 0 and other.end() == 0, head.story() + other.story()


def loop(what, shuffle=True, drop_last=False):
    """Losses of the plain loop, and the loss on the samples of the test loader at its end."""
    loader, test = samples.make(what)
    made = _data.Recipe(loader, TRAIN)
    torch.manual_seed(8)
    model = cases.mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for epoch in range(samples.EPOCHS):
        order = sample_order(cases.SEED, epoch, made.size).tolist() if shuffle else list(range(made.size))
        end = made.size // samples.BATCH * samples.BATCH if drop_last else made.size
        for first in range(0, end, samples.BATCH):
            optimizer.zero_grad()
            loss = cases.cross_entropy(model, made.fetch(order[first : min(first + samples.BATCH, end)]))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    x, y = (torch.cat(parts) for parts in zip(*test))
    with torch.no_grad():
        return losses, cases.cross_entropy(model, (x, y)).item(), int((model(x).argmax(1) == y).sum()) / len(y)


@pytest.mark.parametrize("what, order, workers, processes", [
    ("dropped", dict(drop_last=True), 1, ""), ("dropped", dict(drop_last=True), 3, "processes"), ("in_order", dict(shuffle=False), 3, ""),
    ("chosen", {}, 1, "")])
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
    here = ["--run", "broken", "--listen", "127.0.0.1:0", "--device", "cpu", "--threads", "1"]
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
