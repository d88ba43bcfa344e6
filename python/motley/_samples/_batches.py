"""Batches of several groups: as a collate function, which may pad or draw, makes them of each group alone, put together."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from motley._models._cuts import Refused, bounds


def collate(function: Callable[[list[Any]], Any], samples: list[Any], sizes: list[int],
            seeded: Callable[[int], contextlib.AbstractContextManager[None]]) -> Any:
    """The batch of all samples as the function makes it of each group alone. seeded(first): in this, that of the group that begins there.
    Raises Refused."""
    parts = []
    for first, last in bounds(sizes):
        with seeded(first):
            parts.append(function(samples[first:last]))
    return parts[0] if len(parts) == 1 else join(parts, sizes)


def join(parts: list[Any], sizes: list[int]) -> Any:
    """The batch of all groups from those of each. Raises Refused: they do not join."""
    if any(rows_of(part) not in (None, size) for part, size in zip(parts, sizes, strict=True)):
        raise Refused("collate_fn leaves samples out")
    return _joined(parts)


def rows_of(batch: Any) -> int | None:
    """The first dimension that all tensors of the batch have in common; None: they have none."""
    sizes = {tensor.shape[0] if tensor.dim() else -1 for tensor in _tensors(batch)}
    return sizes.pop() if len(sizes) == 1 and -1 not in sizes else None


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)
    elif hasattr(value, "values") and callable(value.values):
        for each in value.values():
            yield from _tensors(each)


def _joined(parts: list[Any]) -> Any:
    first = parts[0]
    if isinstance(first, torch.Tensor):
        if type(first) is torch.Tensor and first.dim() > 0 and first.layout == torch.strided:
            if all(isinstance(part, torch.Tensor) and part.shape[1:] == first.shape[1:] and part.dtype == first.dtype for part in parts):
                return torch.cat(parts)
            raise Refused("collate_fn makes the samples of each batch as long as its longest")
        raise Refused("")
    if isinstance(first, Mapping):
        if type(first) is dict and all(part.keys() == first.keys() for part in parts):
            return {key: _joined([part[key] for part in parts]) for key in first}
    elif isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(_joined(list(each)) for each in zip(*parts, strict=True)))
    elif type(first) in (list, tuple) and all(len(part) == len(first) for part in parts):
        return type(first)(_joined(list(each)) for each in zip(*parts, strict=True))
    raise Refused("")
