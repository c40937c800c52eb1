"""Baechi's co-placement: an operator stays with its only consumer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.methods.list_scheduling.union import root
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks


def coplaced(tasks: Tasks) -> Tasks:
    """The tasks with larger groups: a task with exactly one consumer joins its group to the consumer's.

    That is repeated until nothing changes: on a chain it ends in one group. A union that no empty device
    takes, by its kind or its memory, is not made (the released code makes it, and may then find no
    placement); the edges are looked at from the exits on, in one pass, as a union that was refused would be
    refused later, too.
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
    """Shape (n,): the only consumer of each task, or -1 if it has none or several."""
    last = np.full(tasks.n, -1)
    last[tasks.after.owners()] = tasks.after.items
    other = last[tasks.after.owners()] != tasks.after.items
    last[tasks.after.owners()[other]] = -1
    return last
