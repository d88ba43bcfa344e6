"""What a computation reads ahead of its samples, and the random numbers that these are made with."""

from motley import _core
from motley._samples import _ahead, _data


def seeds_of(source: _data.BatchSource, trains: bool, task: _core.Task, version: int, first: int, count: int) -> list[int] | None:
    """One for each position [first, first + count), where samples are made with random numbers."""
    if not source.draws:
        return None
    return [_core.mixed_seed(task.seed, version if trains else 0, first + i) for i in range(count)]


def read_ahead(source: _data.BatchSource, trains: bool) -> _ahead.Ahead:
    assert source.readers is not None

    def seeds(task: _core.Task, version: int, first: int, count: int) -> list[int] | None:
        return seeds_of(source, trains, task, version, first, count)

    return _ahead.Ahead(source.readers, seeds, trains, source.size, source.batch_size, source.shuffles, source.drops_last,
                        source.numbers_at, source.of_task)
