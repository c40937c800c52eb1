"""A sort of nearly sorted ranks, compiled: in the topological order of the tasks most ranks fall."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.problem.arrays import Floats, Ints


@njit(cache=True, nogil=True)
def descending(rank: Floats) -> Ints:
    """Return all tasks by descending rank, the lower number first among equals; sorted runs are merged."""
    order, spare = np.arange(len(rank)), np.empty(len(rank), dtype=np.int64)
    ends = np.append(np.flatnonzero(rank[1:] > rank[:-1]) + 1, len(rank))
    while len(ends) > 1:
        begin = 0
        for k in range(0, len(ends), 2):
            middle, end = ends[k], ends[min(k + 1, len(ends) - 1)]
            _merge(rank, order, spare, begin, middle, end)
            begin = end
        order, spare = spare, order
        ends = np.append(ends[1:-1:2], len(rank))
    return order


@njit(cache=True, nogil=True)
def _merge(rank: Floats, order: Ints, merged: Ints, begin: int, middle: int, end: int) -> None:
    """Merge the run from `begin` to `middle` with the next one."""
    i, j = begin, middle
    for at in range(begin, end):
        if j == end or (i < middle and rank[order[i]] >= rank[order[j]]):
            merged[at], i = order[i], i + 1
        else:
            merged[at], j = order[j], j + 1
