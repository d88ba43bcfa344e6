"""What machines compare of their data sets before they work together."""

import math

import numpy
import pytest
import torch
from torch.utils import data
from torch.utils.data import TensorDataset

import cases
from conftest import SCRIPTS
from motley import _core, _errors
from motley._samples import _contents, _data, _whole
from numbered import SIZE, Numbered, source

SCRIPT = str(SCRIPTS / "samples.py")


def test_equal_sets_have_equal_fingerprints_that_fit():
    first, second = (source(cases.classes(SIZE, 2)) for _ in range(2))
    assert first.fingerprint() == second.fingerprint() and first.contents() == second.contents()
    assert first.fingerprint().startswith("300 samples of (float32 [12], int64 []); contents: ")
    contents, whole = first.fingerprint().split("contents: ")[1].split("; whole: ")
    assert len({item.split(":")[0] for item in contents.split(" ")}) == 32
    assert [word.split(":")[0] for word in whole.split(" ")] == ["tensors[0]=float32[300x12],1,1", "tensors[1]=int64[300],1,1"]
    made = source(Numbered())
    assert len(made.fingerprint().split("contents: ")[1].split(" ")) == 48 and "whole" not in made.fingerprint()
    worst = [{f"key {i}": [1e-300, -1e300, i] for i in range(200)}] * SIZE
    assert len(source(worst).fingerprint().encode()) < 4096
    assert len(source(Held(worst)).fingerprint().encode()) < 4096


class Held(data.Dataset):
    """Samples that are there already, beside as many arrays as are compared, and a cache that fills."""

    def __init__(self, samples):
        self.samples = samples
        for number in range(_whole.ARRAYS_MAX):
            setattr(self, f"{'x' * 40}{number}", -1e300 * torch.rand(len(samples), 2, 2, dtype=torch.float64))
        self.cache = numpy.zeros(len(samples))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        self.cache[index] += 1
        return self.samples[index]


class Digits(data.Dataset):
    """As torchvision keeps them."""

    def __init__(self, size=SIZE):
        generator = torch.Generator().manual_seed(1)
        self.data = torch.randint(0, 256, (size, 4, 4), dtype=torch.uint8, generator=generator)
        self.targets = torch.randint(0, 10, (size,), generator=generator).tolist()
        self.seen = numpy.zeros(size)  # a cache

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        self.seen[index] = 1
        return self.data[index].float() / 255, self.targets[index]


def whole(dataset):
    watched = _whole.Watched(dataset, [3, 5])
    dataset[3], dataset[5]
    return {word.split("=")[0]: word.split("=")[1].split(":") for word in watched.words().split(" ")}


def only_block(before, after):
    """As src/wire/fingerprint.cpp finds it."""
    moved, numbered = ((int(a, 16) - int(b, 16)) % _whole.PRIME for a, b in zip(before[1:3], after[1:3]))
    return numbered * pow(moved, -1, _whole.PRIME) % _whole.PRIME - 1


def test_one_sample_that_changes_shows_with_its_number():
    before = whole(Digits())
    assert list(before) == ["data", "targets"], "what reading changes is no data"
    for number in (0, 217, SIZE - 1):
        other = Digits()
        other.data[number, 1, 2] ^= 1
        other.targets[number] += 1
        after = whole(other)
        assert only_block(before["data"], after["data"]) == only_block(before["targets"], after["targets"]) == number
    part = data.Subset(data.Subset(Digits(), range(100, 300)), range(50, 150))
    other = Digits()
    other.data[217] += 1
    assert only_block(whole(part)["data"], whole(data.Subset(data.Subset(other, range(100, 300)), range(50, 150)))["data"]) == 67


def test_rounding_of_all_numbers_is_told_from_a_sample_that_is_another():
    x = torch.randn(5000, 20, generator=torch.Generator().manual_seed(1))

    def moved(other):
        figures = [[int(figure) for figure in whole(TensorDataset(each))["tensors[0]"][3].split(",")] for each in (x, other)]
        return max(abs(a - b) for a, b in zip(*figures))

    root = math.isqrt(len(x)) + 1
    assert moved(x * (1 + 1e-6 * torch.randn(x.shape))) <= 20 * root
    assert moved((x.double() * 3 - 3).div(3).add(1).float()) <= 20 * root
    changed = x.clone()
    changed[4321] = x[17]
    assert moved(changed) > 20 * root
    changed = x.clone()
    changed[4321, 5] += 1
    assert moved(changed) > 10 + root, "where one block differs"


def test_of_what_is_too_large_blocks_at_equal_distances_are_compared(monkeypatch):
    monkeypatch.setattr(_whole, "BLOCKS_MAX", 100)
    monkeypatch.setattr(_whole, "SMALL_BYTES_MAX", 0)
    monkeypatch.setattr(_whole, "BYTES_MAX", SIZE * 16 // 4)
    before = whole(TensorDataset(Digits().data))["tensors[0]"]
    assert before[0] == "uint8[300x4x4],3,12"
    for number, shows in ((24, True), (26, True), (27, False), (35, False), (36, True)):
        other = Digits()
        other.data[number] += 1
        after = whole(TensorDataset(other.data))["tensors[0]"]
        assert (before != after) is shows and (not shows or only_block(before, after) == number // 12)


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
    made, again = source(Numbered(wrong="draws")), source(Numbered(wrong="draws"))
    assert made.fingerprint() == again.fingerprint()
    assert made.draws == ("numpy", "torch")


def test_samples_that_cannot_be_compared_are_named():
    with pytest.raises(_errors.Error, match="sample 7 cannot be read: OSError: no such file: 7"):
        source(Numbered(30, "raises")).fingerprint()
    with pytest.raises(_errors.Error, match="another one each time it is read"):
        source(Numbered(30, "own generator")).fingerprint()


def test_a_set_that_changes_is_noticed_within_a_round():
    x = torch.zeros(SIZE, 4)
    made = source(TensorDataset(x))
    made.fingerprint()
    assert [made.sampled_again() for _ in range(100)] == [None] * 100
    changed = _core.sample_order(_data.CONTENTS_KEY, 0, SIZE, 0, 48)[20]
    x[changed] += 1
    assert changed in [made.sampled_again(0) for _ in range(48)]
    assert made.sampled_again(1000) == changed


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


def test_a_set_with_one_other_number_is_refused_by_the_number_of_its_sample(motley):
    head, other = start(motley, "one_other")
    refused = head.wait_event("worker", change="refused")
    assert "as many, but sample 217 alone differs, in the values of tensors[0]" in refused["reason"], refused
    assert other.end() == 1, other.story()
    head.kill()


def test_the_last_bits_of_numbers_may_differ(motley):
    head, other = start(motley, "last_bits")
    assert head.end() == 0 and other.end() == 0, head.story() + other.story()
