"""Trains on images of bytes that lie in shards: lab_data_script.py BATCH STEPS WIDTH, under `motley`.

PLACE: their directory.
"""

import os
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

SIDE, CLASSES = 32, 10
IMAGE_BYTES = 3 * SIDE * SIDE


class Shards(Dataset):
    """Images one after the other in equal files; a label is the image's first byte."""

    def __init__(self, place):
        self._paths = sorted(pathlib.Path(place).glob("*.bin"))
        self._each = self._paths[0].stat().st_size // IMAGE_BYTES
        self._open = {}

    def __len__(self):
        return len(self._paths) * self._each

    def __getitem__(self, index):
        shard, row = divmod(index, self._each)
        if shard not in self._open:
            self._open[shard] = open(self._paths[shard], "rb")
        file = self._open[shard]
        file.seek(row * IMAGE_BYTES)
        image = torch.frombuffer(bytearray(file.read(IMAGE_BYTES)), dtype=torch.uint8)
        return image.view(3, SIDE, SIDE).float() / 255, int(image[0]) % CLASSES


def network(width):
    """Much to compute and little to send."""
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.ReLU(),
                         nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(),
                         nn.Linear(32 * width, 128), nn.ReLU(), nn.Linear(128, CLASSES))


def loss(model, batch):
    images, labels = batch
    return functional.cross_entropy(model(images), labels)


if __name__ == "__main__":
    import motley

    place = motley.files(os.environ["PLACE"])
    batch, steps, width = map(int, sys.argv[1:])
    torch.manual_seed(1)
    model = network(width)
    data = Shards(place)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in motley.Run(model, loss, DataLoader(data, batch), optimizer, evaluate_every=steps).steps(steps):
        pass
