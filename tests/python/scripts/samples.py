"""samples.py WHAT [HERE]: a run over samples that WHAT chooses, on the machine HERE; its epochs as JSON on standard error."""

import functools
import json
import os
import sys

import torch
from torch.utils.data import (BatchSampler, DataLoader, IterableDataset, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler,
                              TensorDataset, WeightedRandomSampler, random_split)

import cases
import motley

HARDEST = list(range(299, 171, -1))
EPOCHS, BATCH = 2, 64  # 300 samples: a remainder of 44


def unseeded_split(data, test, here):
    """Every machine draws its own split."""
    torch.seed()
    train, held_out = random_split(data, [250, 50])
    return DataLoader(train, BATCH, shuffle=True), DataLoader(held_out, 64)


def other_test(data, test, here):
    order = list(range(len(test)))
    return DataLoader(data, BATCH, shuffle=True), DataLoader(torch.utils.data.Subset(test, order[::-1] if here == "other" else order), 64)


def last_bits(data, test, here):
    """Arithmetic of another machine."""
    if here == "other":
        data = TensorDataset(data.tensors[0] * (1 + 2e-6), data.tensors[1])
    return DataLoader(data, BATCH, shuffle=True), DataLoader(test, 64)


def dropped(data, test, here):
    loader = DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), BATCH, drop_last=True), num_workers=2 if here else 0)
    return loader, DataLoader(test, 64, sampler=[1, 5, 2, 60, 61])


def in_order(data, test, here):
    return DataLoader(data, BATCH), DataLoader(test, batch_sampler=BatchSampler(SequentialSampler(test), 64, drop_last=True))


def chosen(data, test, here):
    return DataLoader(data, BATCH, sampler=SubsetRandomSampler(list(range(0, 300, 2)))), DataLoader(test, 64)


def one_other(data, test, here):
    """One number of one sample of 300 is another there."""
    if here == "other":
        data.tensors[0][217, 3] += 0.5
    return DataLoader(data, BATCH, shuffle=True), DataLoader(test, 64)


def weighted(data, test, here):
    sampler = WeightedRandomSampler([1.0 + number % 5 for number in range(300)], 200, generator=torch.Generator().manual_seed(4))
    return DataLoader(data, BATCH, sampler=sampler, drop_last=bool(here == "whole"), num_workers=2 if here == "processes" else 0), \
        DataLoader(test, 64)


class Buckets(Sampler):
    """Batches of samples that are alike, in another order each time."""

    def __init__(self, size, batch):
        self.size, self.batch, self.generator = size, batch, torch.Generator().manual_seed(6)

    def __iter__(self):
        alike = [list(range(first, min(first + self.batch, self.size))) for first in range(0, self.size, self.batch)]
        order = torch.randperm(len(alike) - 1, generator=self.generator).tolist()
        return iter([alike[number] for number in order] + alike[-1:])


def buckets(data, test, here):
    return DataLoader(data, batch_sampler=Buckets(300, BATCH)), DataLoader(test, 64)


class Uneven(Sampler):
    """As many batches each time, of other sizes."""

    def __init__(self):
        self.generator = torch.Generator().manual_seed(7)

    def __iter__(self):
        sizes = torch.tensor([100, 31, 65, 1, 70, 33])[torch.randperm(6, generator=self.generator)].tolist()
        return iter([batch.tolist() for batch in torch.randperm(300, generator=self.generator).split(sizes)])


def uneven(data, test, here):
    return DataLoader(data, batch_sampler=Uneven(), num_workers=2 if here == "processes" else 0), DataLoader(test, 64)


class Hardest(Sampler):
    """What the body of an epoch chooses."""

    def __init__(self):
        self.numbers = list(range(128))

    def __iter__(self):
        return iter(self.numbers)


def curriculum(data, test, here):
    return DataLoader(data, BATCH, sampler=Hardest()), DataLoader(test, 64)


class Lines(IterableDataset):
    """Some of the samples, which can only be read forwards."""

    def __init__(self, data, first, last):
        self.data, self.first, self.last = data, first, last

    def __len__(self):
        return self.last - self.first

    def __iter__(self):
        return (self.data[number] for number in range(self.first, self.last))


ENDS = (0, 90, 100, 180, 240, 300)


def stream(data, test, here):
    return DataLoader(Lines(data, 0, 300), BATCH), DataLoader(Lines(test, 0, len(test)), 64)


def skipping(data, first):
    """A source that can skip."""
    return iter(Lines(data, 100 + first, 180))


def shards(data, test, here):
    sources = [Lines(data, first, last) for first, last in zip(ENDS, ENDS[1:])]
    sources[2] = functools.partial(skipping, data)
    return DataLoader(motley.Shards(sources, [90, 10, 80, 60, 60]), BATCH, shuffle=True, num_workers=2 if here == "processes" else 0), \
        DataLoader(test, 64)


def short(data, test, here):
    return DataLoader(motley.Shards([Lines(data, 0, 200), Lines(data, 200, 299)], [200, 100]), BATCH), DataLoader(test, 64)


def make(what, here=""):
    return globals()[what](cases.classes(cases.SIZE, 2), cases.classes(cases.TEST, 3), here)


if __name__ == "__main__":
    what = sys.argv[1]
    here = next((os.path.basename(word) for word in sys.argv[2:] if not word.startswith("-")), "")
    train, test = make(what, here)
    torch.manual_seed(8)
    model = cases.mlp()
    run = motley.Run(model, cases.cross_entropy, train, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), test=test,
                     score=cases.score, seed=cases.SEED)
    for epoch in run.epochs(EPOCHS):
        if what == "curriculum":
            train.sampler.numbers = HARDEST
        sys.stderr.write(f"epoch {json.dumps({'number': epoch.number, 'test_loss': epoch.test_loss, **epoch.scores})}\n")
