"""The groups of a micro-batch, of `group` samples each; 1 where no layer acts on several."""

from motley import _core


class Refused(Exception):
    """Something that is not known to keep groups apart. The message, for people, says what; empty where they can do nothing about it."""


def sizes_of(size: int, group: int) -> list[int]:
    """Of the groups of a micro-batch, which is one where no layer acts on several."""
    return [min(group, size - at) for at in range(0, size, group)] if group > 1 else [size]


def bounds(sizes: list[int]) -> list[tuple[int, int]]:
    """(first, last) of each."""
    found, at = [], 0
    for size in sizes:
        found.append((at, at + size))
        at += size
    return found


def seed_of(task: _core.Task, at: int, salt: int = 0) -> int:
    """Of what is drawn for the group that begins there."""
    return _core.mixed_seed(task.seed + salt, task.version if task.kind == "train" else 0, task.first + at)
