"""The steps of Baechi before and after a placer: groups are joined, operators fused and expanded again.

Baechi's co-placement: an operator is put on the device of its only consumer.

Baechi's operator fusion: edges inside groups are contracted unless that could make a cycle.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.methods.method import Settings
from partitioner.methods.placers.coarse import expanded, merged, numbered
from partitioner.methods.placers.found import Found, PlaceTasks, root
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks


def coplaced(tasks: Tasks) -> Tasks:
    """Return the tasks with larger groups: that of a task with a single consumer joins the consumer's.

    That is repeated until nothing changes: a chain becomes one group. A union that no empty device can hold,
    by its kind or its memory, is not made (the released code makes it, and may then find no placement). One
    pass over the edges, from the exits on, is enough, because a refused union would be refused again later.
    """
    parent, group = list(range(len(tasks.group_size))), tasks.group.tolist()
    size, allowed = tasks.group_size.copy(), tasks.group_allowed.copy()
    single = single_consumer(tasks)
    for u in np.flatnonzero(single >= 0)[::-1].tolist():
        a, b = root(parent, group[u]), root(parent, group[single[u]])
        both = allowed[:, a] & allowed[:, b]
        if a != b and (both & (size[a] + size[b] <= tasks.limit)).any():
            parent[a] = b
            size[b] += size[a]
            allowed[:, b] = both
    roots = np.array([root(parent, g) for g in group], dtype=np.int64)
    return replace(tasks, group=np.unique(roots, return_inverse=True)[1].astype(np.int64))


def single_consumer(tasks: Tasks) -> Ints:
    """Return the only consumer of each task, or -1 if it has none or several, shape (n,)."""
    last = np.full(tasks.n, -1)
    last[tasks.after.owners()] = tasks.after.items
    other = last[tasks.after.owners()] != tasks.after.items
    last[tasks.after.owners()[other]] = -1
    return last


def fused(tasks: Tasks) -> Ints:
    """Return the cluster of every task, numbered for :func:`merged`, shape (n,).

    In the order of the tasks and their edges, an edge inside a group is contracted unless its tail has
    another successor and its head another predecessor, as there may then be a second path between them. The
    clusters made so far count as single tasks. Times and memory of members add up; the released code
    computes the memory of outputs from the edges that remain, and so loses the memory of weights.
    """
    after, before = _neighbours(tasks)
    cluster = list(range(tasks.n))
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


def around(tasks: Tasks, settings: Settings, place: PlaceTasks) -> Found | None:
    """Return a placer's placement of tasks that are grouped and fused as the user's options say.

    Parameters
    ----------
    tasks
        The tasks.
    settings
        Used are `grouper` and `fuse` of its `placing`.
    place
        The placer.
    """
    if settings.placing.grouper == "coplace":
        tasks = coplaced(tasks)
    if not settings.placing.fuse:
        return place(tasks, settings)
    cluster = fused(tasks)
    found = place(merged(tasks, cluster), settings)
    return None if found is None else expanded(found, cluster, tasks)
