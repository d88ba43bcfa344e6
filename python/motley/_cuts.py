"""Where a task is cut into micro-batches: at whole groups, of `group` samples each; 1 where no layer acts on several."""

from motley import _core


class Refused(Exception):
    """Something that is not known to keep groups apart. The message, for people, says what; empty where they can do nothing about it."""


def limit_of(task: _core.Task, group: int) -> int:
    """How far to go. Groups are never cut, so that of a limit inside of one the whole groups are left."""
    limit = task.limit()
    if limit == task.count:
        return limit
    partial = task.count % group if task.from_end else 0
    return 0 if limit < partial else partial + (limit - partial) // group * group


def next_size(task: _core.Task, done: int, limit: int, group: int, most: int) -> int:
    """Of the next micro-batch, whole groups up to `most` samples. The odd part goes first: gradients leave during the last backward pass,
    and hide behind it the better the longer it is."""
    left = limit - done
    partial = task.count % group if task.from_end and done == 0 else 0  # the end of the task, which else comes last
    groups, whole = -(-left // group), max(1, most // group)
    taken = groups % whole if groups > whole and groups % whole else min(whole, groups)
    return partial + (taken - 1) * group if partial else min(taken * group, left)


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
