"""Random tasks, made once for all tests of Celeritas."""

from __future__ import annotations

from functools import cache

import pytest

from partitioner.problem.tasks import Tasks
from tests.methods.list_scheduling.small_tasks import some_tasks

CHUNKS = [0, *(pytest.param(chunk, marks=pytest.mark.slow) for chunk in range(1, 8))]


@cache
def drawn(chunk: int) -> list[tuple[int, Tasks]]:
    """500 seeds and the tasks made with them."""
    return list(some_tasks(500 * chunk, 500))
