"""Groups that must share a device because of fusion, and clusters small enough for such groups."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.union import root
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks
from partitioner.workload.graph import Bools


def untied(tasks: Tasks, order: Ints, begins: Bools, memory: float) -> Bools:
    """Return where clusters begin, shape (n,), with more clusters so that tied groups fit on one device.

    The tasks of a cluster share a device, and so do the tasks of a group: a cluster ties the groups of its
    tasks together, a group the clusters of its tasks, and so on. Along the order a task joins the cluster of
    the task before it if their groups are already tied, or if the tied groups of both together take at most
    `memory` and may run on a common device; else a new cluster begins. Without groups of several tasks
    no cluster is cut.

    Parameters
    ----------
    tasks
        The tasks.
    order
        Shape (n,): a topological order.
    begins
        Shape (n,): whether a cluster begins at this place of the order.
    memory
        The largest memory of groups that are tied together.
    """
    allowed = np.ascontiguousarray(tasks.group_allowed.T)
    cut: Bools = _cut(tasks.group[order], begins, tasks.group_size.copy(), allowed, memory)
    return cut


@njit(cache=True, nogil=True)
def _cut(group: Ints, begins: Bools, size: Floats, allowed: Bools, memory: float) -> Bools:
    parent, cut = np.arange(len(size)), begins.copy()
    for p in range(1, len(group)):
        a, b = root(parent, group[p - 1]), root(parent, group[p])
        if begins[p] or a == b:
            continue
        if size[a] + size[b] <= memory and (allowed[a] & allowed[b]).any():
            parent[b] = a
            size[a] += size[b]
            allowed[a] &= allowed[b]
        else:
            cut[p] = True
    return cut
