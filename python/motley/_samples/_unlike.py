"""Samples unlike most: with the lowest, the highest or the rarest number of an array, or one that is no number. What a loss leaves out or
weighs otherwise (ignore_index, masks, weights of classes), it often finds in few samples, and such as are taken from anywhere lack them."""

from collections.abc import Iterator

import torch

from motley._samples import _whole

BYTES_MAX = 16 << 20  # of an array that is looked through


def unlike(arrays: list[_whole.Array], among: list[int] | None, seen: list[int]) -> list[int]:
    """Numbers of samples, those of whole numbers first. `among`: numbers of those that train; None: all. `seen`: whose values are known."""
    found: dict[int, None] = {}
    tables = [table for array in arrays if (table := _table(array)) is not None]
    for table in sorted(tables, key=lambda table: (table.is_floating_point(), table.shape[1] > 1)):
        rows = range(len(table)) if among is None else among
        found.update(dict.fromkeys(rows[row] for row in _rows(table if among is None else table[among], table[seen])))
    return list(found)


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
