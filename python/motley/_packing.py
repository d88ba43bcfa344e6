"""Samples on their way between processes: many small tensors as one large one, which then crosses without being copied."""

from typing import Any

import torch

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
