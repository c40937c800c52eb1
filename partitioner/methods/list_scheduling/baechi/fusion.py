"""Baechi's operator fusion: edges inside groups are contracted unless that could make a cycle."""

from __future__ import annotations

import numpy as np

from partitioner.methods.list_scheduling.coarse import numbered
from partitioner.methods.list_scheduling.union import root
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks


def fused(tasks: Tasks) -> Ints:
    """Return the cluster of every task, numbered for :func:`merged`, shape (n,).

    In the order of the tasks and their edges, an edge inside a group is contracted unless its tail has
    another successor and its head another predecessor, as there may then be a second path between them. The
    clusters made so far count as single tasks. Times and memory of members add up; the released code
    computes the memory of outputs from the edges that remain, and so loses the memory of weights.
    """
    after, before = _neighbours(tasks)
    cluster = np.arange(tasks.n)
    for u, v in zip(tasks.after.owners().tolist(), tasks.after.items.tolist(), strict=True):
        a, b = root(cluster, u), root(cluster, v)
        if a == b or tasks.group[u] != tasks.group[v] or (len(after[a]) > 1 and len(before[b]) > 1):
            continue
        _contract(after, before, a, b)
        cluster[b] = a
    return numbered(tasks, np.array([root(cluster, v) for v in range(tasks.n)], dtype=np.int64))


def _neighbours(tasks: Tasks) -> tuple[list[set[int]], list[set[int]]]:
    """Return the successors and the predecessors of every task."""
    after: list[set[int]] = [set(tasks.after.row(v).tolist()) for v in range(tasks.n)]
    before: list[set[int]] = [set(tasks.before.row(v).tolist()) for v in range(tasks.n)]
    return after, before


def _contract(after: list[set[int]], before: list[set[int]], a: int, b: int) -> None:
    """Merge cluster `b`, a successor of cluster `a`, into `a`."""
    after[a].discard(b)
    before[b].discard(a)
    for w in after[b]:
        before[w].discard(b)
        before[w].add(a)
    for w in before[b]:
        after[w].discard(b)
        after[w].add(a)
    after[a] |= after[b]
    before[a] |= before[b]
