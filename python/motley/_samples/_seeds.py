"""What a computation reads ahead of its samples, and the random numbers that these are made with."""

from motley import _core
from motley._samples import _ahead, _data


def seeds_of(recipe: _data.Recipe, trains: bool, task: _core.Task, version: int, first: int, count: int) -> list[int] | None:
    """One for each position [first, first + count), where samples are made with random numbers."""
    if not recipe.draws:
        return None
    return [_core.mixed_seed(task.seed, version if trains else 0, first + i) for i in range(count)]


def read_ahead(recipe: _data.Recipe, trains: bool) -> _ahead.Ahead:
    assert recipe.readers is not None

    def seeds(task: _core.Task, version: int, first: int, count: int) -> list[int] | None:
        return seeds_of(recipe, trains, task, version, first, count)

    return _ahead.Ahead(recipe.readers, seeds, trains, recipe.size, recipe.batch_size, recipe.shuffles, recipe.drops_last,
                        recipe.numbers_at, recipe.of_task)
