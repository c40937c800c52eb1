"""Random tasks, made once for all tests of Celeritas."""

from __future__ import annotations

from functools import cache

from partitioner.preprocess.tasks import Tasks
from tests.methods.list_scheduling.small_tasks import some_tasks

CHUNKS = range(4)


@cache
def drawn(chunk: int) -> list[tuple[int, Tasks]]:
    """500 seeds and the tasks made with them."""
    return list(some_tasks(500 * chunk, 500))
