"""Trains on images of bytes that lie in shards: lab_data_script.py BATCH STEPS WIDTH, under `motley`.

PLACE: their directory. WHOLE: not empty where the script is to wait for all of them; `lends`: for the samples that are compared first.
"""

import os
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

SIDE, CLASSES = 32, 10
IMAGE_BYTES = 3 * SIDE * SIDE


class Shards(Dataset):
    """Images one after the other in equal files, read while these come; a label is the image's first byte."""

    def __init__(self, files):
        self._files, self._names = files, [name for name in files.names if name.endswith(".bin")]
        self._each = files.size(self._names[0]) // IMAGE_BYTES
        self._open = {}

    def __len__(self):
        return len(self._names) * self._each

    def is_here(self, index):
        shard, row = divmod(index, self._each)
        return self._files.is_here(self._names[shard], row * IMAGE_BYTES, IMAGE_BYTES)

    def __getitem__(self, index):
        shard, row = divmod(index, self._each)
        if shard not in self._open:
            self._open[shard] = self._files.open(self._names[shard])
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
    from motley._samples import _data

    files = motley.files(os.environ["PLACE"], wait=False)
    if os.environ.get("WHOLE") == "lends":
        _data.Recipe(DataLoader(Shards(files), 1), "train").fingerprint()
    if os.environ.get("WHOLE"):
        os.fspath(files)
    batch, steps, width = map(int, sys.argv[1:])
    torch.manual_seed(1)
    model = network(width)
    data = Shards(files)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in motley.Run(model, loss, DataLoader(data, batch), optimizer, evaluate_every=steps).steps(steps):
        pass
