"""200 samples in samples.bin of PLACE, in its first block but for a few, which are in its last; MEDDLE: that one never comes here."""

import os
import sys
import threading

import torch
from torch.utils.data import DataLoader, Dataset

import motley
from motley import _core
from motley._content import _kept
from motley._samples import _data

SAMPLES, BATCH, BYTES, LAST = 200, 8, 16, 3 * (1 << 20)
COMPARED = set(_core.sample_order(_data.CONTENTS_KEY, 0, SAMPLES, 0, _data.COMPARED))
# Positions that nobody looks at before the training begins.
FAR = [position for position in range(SAMPLES // 2, SAMPLES) if position not in COMPARED][:3]


def place_of(index):
    return index * BYTES + (LAST if index in FAR else 0)


class Samples(Dataset):
    def __init__(self, files):
        self._files = files

    def __len__(self):
        return SAMPLES

    def is_here(self, index):
        return self._files.is_here("samples.bin", place_of(index), BYTES)

    def __getitem__(self, index):
        with self._files.open("samples.bin") as file:
            file.seek(place_of(index))
            return torch.frombuffer(bytearray(file.read(BYTES)), dtype=torch.float32)


def never_the_last():
    put = _kept.Set.put

    def some(kept, places, content):
        if places[0].offset == LAST:
            threading.Event().wait()
        put(kept, places, content)

    _kept.Set.put = some


if __name__ == "__main__":
    if os.environ.get("MEDDLE"):
        never_the_last()
    sys.stderr.write(f"far: {','.join(map(str, FAR))}\n")
    data = Samples(motley.files(os.environ["PLACE"], wait=False))
    torch.manual_seed(1)
    model = torch.nn.Linear(BYTES // 4, 1)
    run = motley.Run(model, lambda model, batch: (model(batch) ** 2).mean(), DataLoader(data, BATCH),
                     torch.optim.SGD(model.parameters(), lr=0.001))
    for _ in run.epochs(3):
        pass
