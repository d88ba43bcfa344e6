"""Samples unlike most: with the lowest, the highest or the rarest number of an array, or one that is no number. What a loss leaves out or
weighs otherwise (ignore_index, masks, weights of classes), it often finds in few samples, and such as are taken from anywhere lack them.

Arrays are looked through. Where none of them has labels, samples are read, for a while."""

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from motley._samples import _whole

BYTES_MAX = 16 << 20  # of an array that are looked through
LOOK_S, SAMPLES_MAX = 0.2, 4096  # of samples that are read
NUMBERS_MAX, ITEMS_MAX, DEPTH_MAX = 4096, 16, 4  # of a part of such a sample


def unlike(arrays: list[_whole.Array], among: list[int] | None, seen: list[int], read: Callable[[int], Any] | None,
           others: Callable[[], list[int]]) -> list[int]:
    """Numbers of samples, those of whole numbers first. `among`: numbers of those that train; None: all. `seen`: whose values are known.
    read(number): a sample; None: that is not to be done. others(): numbers of such as may be read, in the order in which they are."""
    tables = [table for array in arrays if (table := _table(array)) is not None]
    found: dict[int, None] = {}
    for table in sorted(tables, key=_rank):
        rows = range(len(table)) if among is None else among
        found.update(dict.fromkeys(rows[row] for row in _rows(table if among is None else table[among], table[seen])))
    if read is not None and not any(_rank(table) == LABELS for table in tables):
        found.update(dict.fromkeys(_read(read, seen, others())))
    return list(found)


LABELS = (False, False)


def _rank(table: torch.Tensor) -> tuple[bool, bool]:
    return table.is_floating_point(), table.shape[1] > 1


def _read(read: Callable[[int], Any], seen: list[int], others: list[int]) -> Iterator[int]:
    """Of those that there is time for."""
    until = time.perf_counter() + LOOK_S
    found = list[dict[Any, tuple[float, ...]]]()
    numbers = [*seen, *others[:SAMPLES_MAX]]
    for number in numbers:
        if time.perf_counter() > until:
            break
        try:
            found.append(dict(_values(read(number), ())))
        except Exception:  # whoever needs that sample hears of it
            break
    if len(found) <= len(seen):
        return
    tables = []
    for part, first in found[0].items():
        column = [values.get(part, ()) for values in found]
        if all(len(value) == len(first) for value in column):
            whole = all(type(number) is int for value in column for number in value)
            tables.append(torch.tensor(column, dtype=torch.int64 if whole else torch.float32))
    for table in sorted(tables, key=_rank):
        yield from (numbers[row] for row in _rows(table, table[: len(seen)]))


def _values(sample: Any, part: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], tuple[float, ...]]]:
    """By part of the sample: its number, or the lowest and the highest of its numbers."""
    if isinstance(sample, (bool, int, float)):
        yield part, (float(sample) if isinstance(sample, float) or abs(sample) >= 1 << 63 else int(sample),)
    elif hasattr(sample, "dtype"):
        yield from _of_array(sample, part)
    elif isinstance(sample, (list, tuple)) and sample and all(type(each) is int for each in sample[:NUMBERS_MAX]):
        yield part, (min(sample[:NUMBERS_MAX]), max(sample[:NUMBERS_MAX]))
    elif isinstance(sample, (list, tuple, Mapping)) and len(part) < DEPTH_MAX:
        named = sample.items() if isinstance(sample, Mapping) else enumerate(sample)
        for name, each in itertools.islice(named, ITEMS_MAX):
            yield from _values(each, (*part, name))


def _of_array(array: Any, part: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], tuple[float, ...]]]:
    try:
        numbers = torch.as_tensor(array)
    except TypeError:  # text, or a type that torch does not have
        return
    if 0 < numbers.numel() <= NUMBERS_MAX and not numbers.is_complex():
        lowest, highest = numbers.aminmax() if numbers.dtype != torch.bool else (numbers.all().int(), numbers.any().int())
        yield part, (lowest.item(),) if numbers.numel() == 1 else (lowest.item(), highest.item())


def _table(array: _whole.Array) -> torch.Tensor | None:
    """[samples, numbers of each]; None: too large, or no numbers."""
    if not 0 < array.rows.nbytes <= BYTES_MAX:
        return None
    rows = array.at(slice(None))
    try:
        table = rows if isinstance(rows, torch.Tensor) else torch.from_numpy(rows.copy())
    except TypeError:  # text, or a type that torch does not have
        return None
    if table.is_complex():
        return None
    return (table.to(torch.float32) if table.is_floating_point() else table.to(torch.int64)).reshape(len(table), -1)


def _rows(table: torch.Tensor, seen: torch.Tensor) -> Iterator[int]:
    """Of a table: a row for each number that is sought and not among those `seen`."""
    if table.is_floating_point():
        finite = table.isfinite()
        if not bool(finite.all()) and bool(seen.isfinite().all()):
            yield int((~finite).sum(1).argmax())
        numbers = table[finite]
    else:
        numbers = table.reshape(-1)
    if not numbers.numel():
        return
    sought = [numbers.min(), numbers.max()]
    if table.shape[1] == 1 and not table.is_floating_point():
        values, counts = numbers.unique(return_counts=True)
        sought.insert(0, values[counts.argmin()])
    for number in sought:
        if not bool((seen == number).any()):
            yield int((table == number).sum(1).argmax())
