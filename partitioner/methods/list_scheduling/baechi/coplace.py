"""Baechi's co-placement: an operator is put on the device of its only consumer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.methods.list_scheduling.union import root
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks


def coplaced(tasks: Tasks) -> Tasks:
    """Return the tasks with larger groups: that of a task with a single consumer joins the consumer's.

    That is repeated until nothing changes: a chain becomes one group. A union that no empty device can hold,
    by its kind or its memory, is not made (the released code makes it, and may then find no placement). One
    pass over the edges, from the exits on, is enough, because a refused union would be refused again later.
    """
    parent = np.arange(len(tasks.group_size))
    size, allowed = tasks.group_size.copy(), tasks.group_allowed.copy()
    single = single_consumer(tasks)
    for u in np.flatnonzero(single >= 0)[::-1].tolist():
        a, b = root(parent, tasks.group[u]), root(parent, tasks.group[single[u]])
        both = allowed[:, a] & allowed[:, b]
        if a != b and (both & (size[a] + size[b] <= tasks.limit)).any():
            parent[a] = b
            size[b] += size[a]
            allowed[:, b] = both
    roots = np.array([root(parent, g) for g in tasks.group.tolist()], dtype=np.int64)
    return replace(tasks, group=np.unique(roots, return_inverse=True)[1].astype(np.int64))


def single_consumer(tasks: Tasks) -> Ints:
    """Return the only consumer of each task, or -1 if it has none or several, shape (n,)."""
    last = np.full(tasks.n, -1)
    last[tasks.after.owners()] = tasks.after.items
    other = last[tasks.after.owners()] != tasks.after.items
    last[tasks.after.owners()[other]] = -1
    return last
