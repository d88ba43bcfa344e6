"""Small data sets and samplers, and the sources of their loaders."""

import numpy
import torch
from torch.utils import data
from torch.utils.data import DataLoader

from motley._samples import _data

SIZE = 300
TRAIN = "train_loader"


def source(dataset, name=TRAIN, batch=64, **options):
    return _data.BatchSource(DataLoader(dataset, **with_batch(options, batch)), name)


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


class Own(data.Sampler):
    def __init__(self, numbers):
        self.numbers = numbers

    def __iter__(self):
        return iter(self.numbers)


class Batches(data.Sampler):
    """Gives these batches, and in every further epoch those behind them."""

    def __init__(self, *epochs):
        self.epochs = list(epochs)

    def __iter__(self):
        return iter(self.epochs.pop(0) if len(self.epochs) > 1 else self.epochs[0])


def used(made):
    return made.fetch(list(range(made.size))).tolist()
