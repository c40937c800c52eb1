"""Optimal Operation Fusion: runs of tasks in the order of CPD-TOPO become clusters.

Kernighan's optimal breakpoints: where to cut a linear order into clusters.

Groups that must share a device because of fusion, and clusters small enough for such groups.
"""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.celeritas.orders import cpd_topo
from partitioner.methods.list_scheduling.ranks import mean_time, mean_transfer
from partitioner.methods.list_scheduling.union import root
from partitioner.problem.arrays import Floats, Ints, rows_of
from partitioner.problem.tasks import Tasks
from partitioner.workload.graph import Bools

ROUNDING = 1e-13  # of the cost of all edges


def breakpoints(tasks: Tasks, order: Ints, most: int, memory: float) -> Bools:
    """Return where clusters begin, so that the edges between them cost least (Algorithm 1, Optimal_BP).

    With S(0) = 0 and cost(i, j) the cost of the edges from places i to j - 1 to place j and behind, the
    best cut of the first j places costs S(j) = min over i of S(i) + cost(i, j) (Equation 6). In Equation 5
    the lower index of the last sum is i: cost(i, j) = cost(i, j - 1) + the cost of what place j - 1 sends
    - the cost of what it reads from places i to j - 2. That takes O(n most + edges) steps. Of clusters of
    equal cost the longest one is chosen.

    Parameters
    ----------
    tasks
        The tasks.
    order
        Shape (n,): a topological order.
    most
        R, the largest number of tasks in a cluster.
    memory
        M, the largest memory of a cluster. A task counts with the memory of its whole group, which shares a
        device, and some device must be allowed for all groups of a cluster. Neither rule separates tasks
        of a single group.

    Returns
    -------
    Bools
        Shape (n,): whether a cluster begins at this place of the order.
    """
    place = np.argsort(order)
    cost = mean_transfer(tasks)
    reader = place[tasks.before.owners()]
    maker = rows_of(reader, place[tasks.before.items], tasks.n)
    read = cost[tasks.before_tensor][np.argsort(reader, kind="stable")]
    sent = np.bincount(maker.items, read, tasks.n).astype(np.float64)
    before = np.zeros(tasks.n + 1, dtype=np.int64)
    _best_breaks(
        maker.start,
        maker.items,
        read,
        sent,
        tasks.group[order],
        tasks.group_size,
        np.ascontiguousarray(tasks.group_allowed.T),
        most,
        memory,
        before,
    )
    return _begins(before)


def _begins(before: Ints) -> Bools:
    """Return whether each place is a breakpoint, shape (n,), by following `before` from the end."""
    begins = np.zeros(len(before) - 1, dtype=bool)
    k = len(begins)
    while k > 0:
        k = int(before[k])
        begins[k] = True
    return begins


@njit(cache=True, nogil=True)
def _best_breaks(
    start: Ints,
    maker: Ints,
    read: Floats,
    sent: Floats,
    group: Ints,
    group_size: Floats,
    allowed: Bools,
    most: int,
    memory: float,
    before: Ints,
) -> None:
    """Write the best breakpoint before each place to `before`, shape (n + 1,)."""
    n = len(group)
    best = np.zeros(n + 1)
    cost, inner = np.zeros(n), np.zeros(n)
    counted, may = np.full(len(group_size), -1), np.ones(allowed.shape[1], dtype=np.bool_)
    slack = ROUNDING * read.sum()
    low = 0
    for j in range(1, n + 1):
        low = max(low, j - most)
        for e in range(start[j - 1], start[j]):
            inner[maker[e]] += read[e]
        kept, size, groups = 0.0, 0.0, 0
        may[:] = True
        best[j] = np.inf
        for i in range(j - 1, low - 1, -1):
            g = group[i]
            if counted[g] != j:
                counted[g] = j
                size += group_size[g]
                groups += 1
                somewhere = _narrowed(may, allowed, g)
                if groups > 1 and (size > memory or not somewhere):
                    low = i + 1  # longer clusters are not allowed behind place j either
                    break
            kept += inner[i]
            cost[i] += sent[j - 1] - kept
            if best[i] + cost[i] <= best[j] + slack:
                best[j], before[j] = min(best[j], best[i] + cost[i]), i
        for e in range(start[j - 1], start[j]):
            inner[maker[e]] = 0.0


@njit(cache=True, nogil=True, inline="always")
def _narrowed(may: Bools, allowed: Bools, g: int) -> bool:
    """Keep in `may` only devices that are allowed for group `g`; return whether one is left."""
    somewhere = False
    for d in range(len(may)):
        may[d] &= allowed[g, d]
        somewhere |= may[d]
    return somewhere


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


def fused(tasks: Tasks, most: int, fraction: float) -> Ints:
    """Return the cluster of every task, numbered in a topological order (Section 5.1.3), shape (n,).

    Parameters
    ----------
    tasks
        The tasks.
    most
        R, the largest number of tasks in a cluster.
    fraction
        M, the largest memory of a cluster, as a fraction of the smallest device's memory, or of the memory of
        all tasks if that is less, so that there are several clusters.
    """
    order = cpd_topo(tasks)
    memory = fraction * min(float(tasks.limit.min()), float(tasks.size.sum()))
    begins = untied(tasks, order, breakpoints(tasks, order, most, memory), memory)
    cluster = np.empty(tasks.n, dtype=np.int64)
    cluster[order] = np.cumsum(begins) - 1
    return cluster


def ccr(tasks: Tasks) -> float:
    """Return the ratio of communication to computation: all transfers over all times (Equation 1).

    Times are means over devices, transfers over pairs of devices. The ratio is 0 if no task takes time.
    """
    work = float(mean_time(tasks).sum())
    return float(mean_transfer(tasks)[tasks.after_tensor].sum()) / work if work else 0.0
