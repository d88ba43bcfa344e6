"""Samples on their way between processes: many small tensors as one large one, which then crosses without being copied."""

from typing import Any

import torch
from torch.utils.data import default_collate

try:
    import numpy
except ImportError:  # torch works without
    numpy = None  # type: ignore[assignment]

TENSORS, ARRAYS, COLUMNS, PLAIN = range(4)


def pack(samples: list[Any]) -> tuple[Any, ...]:
    """What unpack() makes the samples of again; at least one."""
    first = samples[0]
    if all(type(sample) is torch.Tensor and sample.dtype == first.dtype and sample.layout == torch.strided for sample in samples):
        return TENSORS, torch.cat([sample.detach().reshape(-1) for sample in samples]), [sample.shape for sample in samples]
    if numpy is not None and all(type(sample) is numpy.ndarray and sample.dtype == first.dtype for sample in samples):
        joined = numpy.concatenate([sample.reshape(-1) for sample in samples])
        shapes = [sample.shape for sample in samples]
        try:
            return ARRAYS, torch.from_numpy(joined), shapes
        except TypeError:  # torch has no such type
            return PLAIN, samples
    if (type(first) in (tuple, list) or hasattr(first, "_fields")) and first:
        if all(type(sample) is type(first) and len(sample) == len(first) for sample in samples):
            return COLUMNS, type(first), [pack(list(column)) for column in zip(*samples, strict=True)]
    if type(first) is dict and first and all(type(sample) is dict and list(sample) == list(first) for sample in samples):
        return COLUMNS, list(first), [pack([sample[key] for sample in samples]) for key in first]
    return PLAIN, samples


class Apart(Exception):
    """Samples that do not lie together."""


def collate(parts: list[tuple[tuple[Any, ...], int, int]], pinned: bool = False) -> Any:
    """What torch's default_collate makes of the samples [first, last) of each part, which is (packed, first, last): without taking them
    apart, each tensor copied once, into memory that is `pinned` if that is wanted. Raises Apart: they have to be."""
    packed = [part for part, _, _ in parts]
    kind = packed[0][0]
    if any(each[0] != kind for each in packed):
        raise Apart
    if kind == PLAIN:
        return default_collate([sample for each, first, last in parts for sample in each[1][first:last]])
    if kind == COLUMNS:
        whole, columns = packed[0][1], packed[0][2]
        if any(each[1] != whole or len(each[2]) != len(columns) for each in packed):
            raise Apart
        found = [collate([(each[2][i], first, last) for each, first, last in parts], pinned) for i in range(len(columns))]
        if isinstance(whole, list):
            return dict(zip(whole, found, strict=True))
        return found if whole in (tuple, list) else whole(*found)
    shape = packed[0][2][0]
    if shape.count(0) or any(other != shape for each in packed for other in each[2]):
        raise Apart
    pieces = [each[1].view(-1, *shape)[first:last] for each, first, last in parts]
    if not pinned:
        return torch.cat(pieces)
    rows = sum(len(piece) for piece in pieces)
    return torch.cat(pieces, out=torch.empty((rows, *shape), dtype=pieces[0].dtype, pin_memory=True))


def unpack(packed: tuple[Any, ...]) -> list[Any]:
    kind, *parts = packed
    if kind == PLAIN:
        return list(parts[0])
    if kind == COLUMNS:
        whole, columns = parts[0], [unpack(column) for column in parts[1]]
        rows = zip(*columns, strict=True)
        if isinstance(whole, list):
            return [dict(zip(whole, row, strict=True)) for row in rows]
        return [getattr(whole, "_make", whole)(row) for row in rows]
    joined, shapes = parts
    pieces = joined.split([shape.numel() if kind == TENSORS else int(numpy.prod(shape)) for shape in shapes])
    if kind == TENSORS:
        return [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]
    return [piece.numpy().reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]
