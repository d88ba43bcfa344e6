"""Trains on the samples in samples.bin of PLACE (a variable of the environment), wherever motley.files() has them.

Where MEDDLE is `dies` it ends after five blocks that were fetched, where it is `breaks` the connection is dropped then, where it is
`stops` no more blocks come. PLACE may also be that file by itself.
"""

import os
import sys
import threading

import torch
from torch.utils.data import DataLoader, TensorDataset

import motley
from motley._content import _kept, _local

FEATURES = 4


def meddle(word):
    put, done, fetches = _kept.Set.put, [], []
    opened = _local._Fetch._opened

    def noted(fetch):
        fetches[:] = [fetch]
        return opened(fetch)

    def counted(kept, places, content):
        put(kept, places, content)
        done.append(content)
        if len(done) == 5:
            if word == "dies":
                os._exit(9)
            if word == "stops":
                threading.Event().wait()
            fetches[0]._link.dial()

    _kept.Set.put, _local._Fetch._opened = counted, noted


if __name__ == "__main__":
    if word := os.environ.get("MEDDLE"):
        meddle(word)
    place = motley.files(os.environ["PLACE"])
    sys.stderr.write(f"the files are at {place}\n")
    path = os.path.join(place, "samples.bin") if os.path.isdir(place) else place
    with open(path, "rb") as file:
        samples = torch.frombuffer(bytearray(file.read(4 * FEATURES * 64)), dtype=torch.float32).reshape(-1, FEATURES)
    torch.manual_seed(1)
    model = torch.nn.Linear(FEATURES, 1)
    run = motley.Run(model, lambda model, batch: (model(batch[0]) ** 2).mean(), DataLoader(TensorDataset(samples), 8, shuffle=True),
                     torch.optim.SGD(model.parameters(), lr=0.01))
    for _ in run.epochs(3):
        pass
