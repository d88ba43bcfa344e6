"""The order of samples as a sampler says: listed once an epoch on the head, and sent to all machines.

There the run's own order is the plain one (train.shuffle = false), and a position of it is a place in the list. A list travels with the
state that the loss gets (_state.py), and lies in the run's directory, where `motley audit --order` finds it.
"""

import array
import os
import pathlib
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import torch

from motley import _core
from motley._errors import Error

KEY = "\0order"  # of the state
REPEATS = "\0repeats"  # likewise: nothing is trained, and any epoch does for the next
DIRECTORY = "orders"  # of the run
PACKED_BYTES_MAX = 12 << 20  # of the lists that travel at a time
SALT = 3  # so that a sampler draws nothing that a sample draws


class Orders:
    """make(seed): the numbers of an epoch's samples, anew each time, by whoever has the script, and the sizes of its batches where these
    are the sampler's. `samples`: of the data set."""

    def __init__(self, make: Callable[[int], tuple[list[int], list[int] | None]], samples: int, name: str, seed: int):
        self._make, self._samples, self._name, self._seed = make, samples, name, seed
        self._next = 0  # epoch to be listed
        self._made: dict[int, array.array[int]] = {}  # on the head
        self._unwritten: list[int] = []
        self._taken: dict[int, array.array[int]] = {}  # in whatever computes
        self._repeats = False
        self.size = 0
        self.sizes: list[list[int]] = []  # of batches, by epoch; empty: the loader's batch
        self._cut, self._batch = 0, 0  # epoch whose batches nobody was told, and that of the steps before
        self.size = len(self._list(0))

    @property
    def steps(self) -> int | None:
        """Of an epoch, where the sampler makes the batches."""
        return len(self.sizes[0]) if self.sizes else None

    def first(self) -> list[int]:
        """Samples of the first epoch that is still known, each once."""
        return sorted(set(self._made[min(self._made)])) if self._made else []

    def changes(self) -> list[tuple[int, int]]:
        """(step, samples of it and of those behind it), where that is another batch than of the step before, in the epochs that were listed
        since this was asked. The last step of an epoch has what is left in any case."""
        found = list[tuple[int, int]]()
        for epoch in range(self._cut, len(self.sizes)):
            sizes = self.sizes[epoch]
            self._batch = self._batch or sizes[0]
            for number, size in enumerate(sizes):
                if size > self._batch or size < self._batch and number + 1 < len(sizes):
                    found.append((epoch * len(sizes) + number, size))
                    self._batch = size
        self._cut = len(self.sizes)
        return found

    def state(self, first: int, last: int) -> dict[str, Any]:
        """What travels for the epochs [first, last). Errors: the sampler gives another number of samples than at first; too many."""
        for epoch in range(self._next, last):
            self._list(epoch)
        for epoch in [epoch for epoch in self._made if epoch < first and epoch not in self._unwritten]:
            del self._made[epoch]
        packed = {str(epoch): pack(self._made[epoch]) for epoch in range(first, last)}
        if (size := sum(map(len, packed.values()))) > PACKED_BYTES_MAX:
            raise Error(f"{self._name}: the order that its sampler gives for {last - first} epochs of {self.size} samples has {size >> 20} "
                        f"MiB, and at most {PACKED_BYTES_MAX >> 20} MiB travel at a time", "fewer steps between two bodies "
                        "(evaluate_every=), run.epochs() instead of run.leases(), or a smaller epoch")
        return {KEY: packed} if packed else {}

    def take(self, state: Mapping[str, Any]) -> None:
        """What came. Errors: anything but lists of samples that there are."""
        given, self._repeats = state.get(KEY, {}), bool(state.get(REPEATS))
        try:
            found = {int(epoch): unpack(packed, self.size, self._samples) for epoch, packed in given.items()}
        except (ValueError, TypeError, AttributeError, zlib.error):
            raise Error(f"{self._name}: the order that the head sent is no list of {self.size} samples of {self._samples}",
                        "the same script and data on both machines", "protocol") from None
        if found:
            self._taken = {**{epoch: listed for epoch, listed in self._taken.items() if epoch >= min(found) - 1}, **found}

    def at(self, epoch: int, positions: list[int]) -> list[int] | None:
        """The samples at these positions; None: the order of that epoch has not come."""
        listed = self._taken.get(max(self._taken) if self._repeats and self._taken else epoch)
        return None if listed is None else [listed[position] for position in positions]

    def write(self, directory: str) -> None:
        """Into a run's directory, what is not there. Errors: other orders are, of before the run was interrupted."""
        place = pathlib.Path(directory, DIRECTORY)
        place.mkdir(exist_ok=True)
        for epoch in self._unwritten:
            path, text = place / f"{epoch}.txt", "".join(f"{number}\n" for number in self._made[epoch])
            if not path.exists():
                fresh = path.with_suffix(".new")
                fresh.write_text(text, encoding="ascii")
                os.replace(fresh, path)
            elif path.read_text(encoding="ascii") != text:
                raise Error(f"{self._name}: its sampler gives another order of epoch {epoch + 1} than before the run was interrupted: it "
                            "draws from a generator that nobody seeds, or the body of the epochs changes it",
                            "torch.Generator().manual_seed(0) as its generator; what the body changes cannot be resumed", "mismatch")
        self._unwritten.clear()

    def list_again(self, directory: str) -> None:
        """What was listed before the run was interrupted."""
        while pathlib.Path(directory, DIRECTORY, f"{self._next}.txt").exists():
            self._list(self._next)

    def _list(self, epoch: int) -> "array.array[int]":
        numbers, sizes = self._make(_core.mixed_seed(self._seed, epoch, SALT))
        listed = array.array("q", numbers)
        if self.size and len(listed) != self.size:
            raise Error(f"{self._name}: its sampler gives {len(listed)} samples in epoch {epoch + 1}, and gave {self.size} in the first",
                        "a sampler that gives as many in every epoch")
        if sizes is not None:
            if self.sizes and len(sizes) != len(self.sizes[0]):
                raise Error(f"{self._name}: its sampler gives {len(sizes)} batches in epoch {epoch + 1}, and gave {len(self.sizes[0])} in "
                            "the first", "a sampler that gives as many in every epoch")
            self.sizes.append(sizes)
        self._made[epoch], self._next = listed, epoch + 1
        self._unwritten.append(epoch)
        return listed


def pack(numbers: "array.array[int]") -> torch.Tensor:
    """uint8 [N]: the numbers byte by byte, those that are zero in all of them left out, compressed."""
    whole = torch.tensor(numbers, dtype=torch.int64)
    width = max(1, (int(whole.max()).bit_length() + 7) // 8)
    planes = whole.view(torch.uint8).reshape(len(numbers), 8)[:, :width].t().contiguous()
    return torch.frombuffer(bytearray([width]) + bytearray(zlib.compress(bytes(planes.numpy()), 1)), dtype=torch.uint8)


def unpack(packed: torch.Tensor, size: int, samples: int) -> "array.array[int]":
    """Raises ValueError and the like where these are not `size` numbers below `samples`."""
    text = bytes(packed.numpy())
    width = text[0] if text else 0
    if not 1 <= width <= 7:
        raise ValueError
    reader = zlib.decompressobj()
    planes = reader.decompress(text[1:], size * width + 1)
    if len(planes) != size * width or not reader.eof or reader.unused_data:
        raise ValueError
    whole = torch.zeros(size, 8, dtype=torch.uint8)
    whole[:, :width] = torch.frombuffer(bytearray(planes), dtype=torch.uint8).reshape(width, size).t()
    numbers = whole.reshape(-1).view(torch.int64)
    if int(numbers.max()) >= samples:
        raise ValueError
    found = array.array("q")
    found.frombytes(bytes(numbers.view(torch.uint8).numpy()))
    return found
