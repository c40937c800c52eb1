"""Random tasks, made once for all tests of Celeritas."""

from __future__ import annotations

from functools import cache

import pytest

from partitioner.problem.tasks import Tasks
from tests.methods.placers.small_tasks import some_tasks


def few_and_many(*chunks: int) -> pytest.MarkDecorator:
    """Give a test the first seed and the number of cases: 100 quick ones, and slowly 500 of each chunk."""
    slow = (pytest.param(500 * chunk, 500, marks=pytest.mark.slow) for chunk in chunks)
    return pytest.mark.parametrize(("first", "count"), [(500 * chunks[0], 100), *slow])


@cache
def drawn(first: int, count: int) -> list[tuple[int, Tasks]]:
    """Seeds and the tasks made with them."""
    return list(some_tasks(first, count))
