"""samples.py WHAT [HERE]: a run over samples that WHAT chooses, on the machine HERE; its epochs as JSON on standard error."""

import json
import os
import sys

import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, SubsetRandomSampler, TensorDataset, random_split

import cases
import motley

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
        sys.stderr.write(f"epoch {json.dumps({'number': epoch.number, 'test_loss': epoch.test_loss, **epoch.scores})}\n")
