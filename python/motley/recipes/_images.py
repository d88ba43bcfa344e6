"""Fashion-MNIST and MNIST, or files of that form: 28 x 28 grey pixels and ten classes, as tensors of bytes."""

import argparse
import gzip
import os

import motley
import torch
from motley.recipes import _arguments
from torch.utils.data import TensorDataset

PLACES = {
    "fashion-mnist": ("https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
                      "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"),
    "mnist": ("https://ossci-datasets.s3.amazonaws.com/mnist/",),
}
SHA256 = {
    "fashion-mnist": {"train-images-idx3": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                      "train-labels-idx1": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                      "t10k-images-idx3": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                      "t10k-labels-idx1": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"},
    "mnist": {"train-images-idx3": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
              "train-labels-idx1": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
              "t10k-images-idx3": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
              "t10k-labels-idx1": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"},
}
INSTALLED = "/usr/share/datasets"  # of Debian's packages
SIDE, CLASSES = 28, 10
SAMPLES_MAX = 1 << 20  # of a file that comes from elsewhere


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", metavar="DIR", help="the four IDX files, packed by gzip or not (default: fetched once)")
    parser.add_argument("--samples", type=_arguments.SAMPLES, help="the first so many alone, of each of both sets (default: all)")
    parser.add_argument("--epochs", type=_arguments.EPOCHS, default=3)
    parser.add_argument("--batch-size", type=_arguments.BATCH, default=256)
    parser.add_argument("--lr", type=_arguments.rate, default=2e-3)
    parser.add_argument("--seed", type=_arguments.SEED, default=1)


def load(name: str, folder: str | None, samples: int | None) -> tuple[TensorDataset, TensorDataset]:
    """To train and to test on: bytes [1, 28, 28], each with its class."""
    here = None if folder is None else motley.files(folder)
    train, test = (TensorDataset(read(find(name, f"{part}-images-idx3", here), 3)[:samples].unsqueeze(1),
                                 read(find(name, f"{part}-labels-idx1", here), 1)[:samples].long()) for part in ("train", "t10k"))
    return train, test


def find(name: str, file: str, folder: str | None) -> str:
    """The path of a file: in the folder, installed, or fetched."""
    if folder is not None:
        spellings = [os.path.join(folder, f"{part}-ubyte{end}") for part in (file, file.replace("-idx", ".idx")) for end in ("", ".gz")]
        found = [each for each in spellings if os.path.isfile(each)]
        if not found:
            raise motley.Error(f"{folder}: expected {file}-ubyte or {file}-ubyte.gz in it, found neither", "--data DIR")
        return found[0]
    installed = os.path.join(INSTALLED, name, f"{file}-ubyte.gz")
    if os.path.isfile(installed):
        return motley.files(installed)
    *others, last = (f"{place}{file}-ubyte.gz" for place in PLACES[name])
    for address in others:
        try:
            return motley.files(address, sha256=SHA256[name][file])
        except motley.Error as error:
            if error.code != "network":
                raise
    return motley.files(last, sha256=SHA256[name][file])


def read(path: str, dimensions: int) -> torch.Tensor:
    """uint8 of an IDX file. Errors: it is none, or has other sizes than these sets."""
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        head = file.read(4 + 4 * dimensions)
        count = int.from_bytes(head[4:8], "big")
        sides = b"".join(SIDE.to_bytes(4, "big") for _ in range(dimensions - 1))
        if head[:4] != bytes([0, 0, 8, dimensions]) or head[8:] != sides or not 0 < count <= SAMPLES_MAX:
            raise motley.Error(f"{path}: expected an IDX file of images of 28 x 28 bytes, or of their classes", "look at what it is")
        content = bytearray(file.read(count * SIDE ** (dimensions - 1)))
    if len(content) != count * SIDE ** (dimensions - 1):
        raise motley.Error(f"{path} ends before its {count} samples do", "fetch it again")
    return torch.frombuffer(content, dtype=torch.uint8).view(count, *[SIDE] * (dimensions - 1))
