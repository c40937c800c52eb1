"""The topological orders of Celeritas: depth first, and depth first along the critical path."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.ranks import bottom_level, mean_time, mean_transfer, top_level
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks


def dfs_topo(tasks: Tasks) -> Ints:
    """Return DFS-TOPO (Section 4.2.2): tasks that become ready go to the head of the queue; shape (n,).

    The queue starts with the tasks without producers. Among these, and among the tasks that become ready at
    once, the lowest number comes first.
    """
    return _depth_first(tasks, np.zeros(tasks.n))


def cpd_topo(tasks: Tasks) -> Ints:
    """Return CPD-TOPO (Algorithm 1): DFS-TOPO in which the task on the longest path is first; shape (n,).

    Among equals the lowest number comes first.
    """
    return _depth_first(tasks, critical_path(tasks))


def critical_path(tasks: Tasks) -> Floats:
    """Return cpath, the longest path through each task (Equations 2 and 3), shape (n,).

    Times are means over the devices that may run a task, transfers means over the pairs of devices.
    """
    time, transfer = mean_time(tasks), mean_transfer(tasks)
    return np.asarray(top_level(tasks, time, transfer) + bottom_level(tasks, time, transfer))


def _depth_first(tasks: Tasks, urgency: Floats) -> Ints:
    """Return the order in which tasks that become ready go to the queue's head, the most urgent first."""
    after, missing = tasks.after.items, np.diff(tasks.before.start)
    rising = np.lexsort((-after, urgency[after], tasks.after.owners()))
    free = np.flatnonzero(missing == 0)
    entries = free[np.lexsort((-free, urgency[free]))]
    order: Ints = _walk(tasks.after.start, after[rising], missing, entries)
    return order


@njit(cache=True, nogil=True)
def _walk(start: Ints, after: Ints, missing: Ints, entries: Ints) -> Ints:
    """Return the order of a queue that is a stack; the head of the queue is the top of the stack."""
    order, stack = np.empty_like(missing), np.empty_like(missing)
    depth = len(entries)
    stack[:depth] = entries
    for place in range(len(missing)):
        depth -= 1
        v = stack[depth]
        order[place] = v
        for e in range(start[v], start[v + 1]):
            missing[after[e]] -= 1
            if missing[after[e]] == 0:
                stack[depth] = after[e]
                depth += 1
    return order
