"""Trains on the samples in samples.bin of PLACE (a variable of the environment), wherever motley.files() has them.

Where MEDDLE is `dies` it ends after five blocks that were fetched, where it is `breaks` the connection is dropped then, where it is
`stops` no more blocks come, where it is `others` none come before another machine is a source, too, and where it is `origin` before the
address of the files is, or is given up. Where PARTLY is not empty the samples are read while the files come, and if it is `all` the script
waits for all of them then. PLACE may also be that file by itself.
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


def wait_for_others():
    fill = _local._Fetch.fill

    def with_others(fetch, kept, missing):
        link = fetch._opened()
        link.find_sources(kept.hash)
        while link.window(1) == 1:
            link.next(1.0)
        fill(fetch, kept, missing)

    _local._Fetch.fill = with_others


def wait_for_the_origin():
    begin = _local._Fetch._begin_origin

    def begun(fetch, link, size):
        begin(fetch, link, size)
        while link.window(1) == 1 and (event := link.next(1.0) or ("",))[0] != "dropped":
            pass
        if link.window(1) == 1:
            sys.stderr.write(f"{event[1]}\n")

    _local._Fetch._begin_origin = begun


if __name__ == "__main__":
    if word := os.environ.get("MEDDLE"):
        {"others": wait_for_others, "origin": wait_for_the_origin}.get(word, lambda: meddle(word))()
    partly = os.environ.get("PARTLY", "")
    files = motley.files(os.environ["PLACE"], wait=False) if partly else None
    place = motley.files(os.environ["PLACE"]) if files is None else os.fspath(files) if partly == "all" else "?"
    sys.stderr.write(f"the files are at {place}\n")
    path = os.path.join(place, "samples.bin") if os.path.isdir(place) else place
    with files.open("samples.bin") if files is not None else open(path, "rb") as file:
        samples = torch.frombuffer(bytearray(file.read(4 * FEATURES * 64)), dtype=torch.float32).reshape(-1, FEATURES)
    torch.manual_seed(1)
    model = torch.nn.Linear(FEATURES, 1)
    run = motley.Run(model, lambda model, batch: (model(batch[0]) ** 2).mean(), DataLoader(TensorDataset(samples), 8, shuffle=True),
                     torch.optim.SGD(model.parameters(), lr=0.01))
    for _ in run.epochs(3):
        pass
