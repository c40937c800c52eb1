"""The placers of Celeritas, which place operators or clusters of operators.

Adjusting Placement: a task stays on the previous task's device unless another one is much earlier.

Placement on one device after another: each takes tasks in their order until its memory is full.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.method import Settings
from partitioner.methods.placers.coarse import expanded, merged
from partitioner.methods.placers.engine import ADJUST, FILL_UP, found, place_by_rule
from partitioner.methods.placers.found import Found, root
from partitioner.methods.placers.method import as_method
from partitioner.methods.placers.ranks import (
    bottom_level,
    largest_transfer,
    mean_time,
    mean_transfer,
    top_level,
)
from partitioner.methods.placers.task_arrays import (
    NOWHERE,
    PartialSchedule,
    TaskArrays,
    arrays_of,
    new_state,
)
from partitioner.problem.arrays import Floats, Ints, Rows, rows_of
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
    allowed = np.ascontiguousarray(tasks.group_allowed.T)
    groups = PlaceGroups(tasks.group[order], tasks.group_size, allowed)
    _best_breaks(PlaceReads(maker.start, maker.items, read, sent), groups, most, memory, before)
    return _begins(before)


class PlaceReads(NamedTuple):
    """What the places of an order read from one another.

    Parameters
    ----------
    start, maker, read
        Rows over places: the places whose tensors each reads, and the cost of each.
    sent
        Shape (n,): the cost of what each place sends, over all that read it.
    """

    start: Ints
    maker: Ints
    read: Floats
    sent: Floats


class PlaceGroups(NamedTuple):
    """The groups of the places of an order, whose tasks share a device.

    Parameters
    ----------
    of_place, size
        Shape (n,) and (groups,): the group of each place, and the memory of each group.
    allowed
        Shape (groups, D): the devices on which each may be.
    """

    of_place: Ints
    size: Floats
    allowed: Bools


def _begins(before: Ints) -> Bools:
    """Return whether each place is a breakpoint, shape (n,), by following `before` from the end."""
    begins = np.zeros(len(before) - 1, dtype=bool)
    k = len(begins)
    while k > 0:
        k = int(before[k])
        begins[k] = True
    return begins


@njit(cache=True, nogil=True)
def _best_breaks(reads: PlaceReads, groups: PlaceGroups, most: int, memory: float, before: Ints) -> None:
    """Write the best breakpoint before each place to `before`, shape (n + 1,)."""
    start, maker, read, sent = reads.start, reads.maker, reads.read, reads.sent
    group, group_size, allowed = groups.of_place, groups.size, groups.allowed
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
        kept, size, together = 0.0, 0.0, 0
        may[:] = True
        best[j] = np.inf
        for i in range(j - 1, low - 1, -1):
            g = group[i]
            if counted[g] != j:
                counted[g] = j
                size += group_size[g]
                together += 1
                somewhere = False  # whether a device is left that all their groups may run on
                for d in range(len(may)):
                    may[d] &= allowed[g, d]
                    somewhere |= may[d]
                if together > 1 and (size > memory or not somewhere):
                    low = i + 1  # longer clusters are not allowed behind place j either
                    break
            kept += inner[i]
            cost[i] += sent[j - 1] - kept
            if best[i] + cost[i] <= best[j] + slack:
                best[j], before[j] = min(best[j], best[i] + cost[i]), i
        for e in range(start[j - 1], start[j]):
            inner[maker[e]] = 0.0


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
    group, size = tasks.group[order].tolist(), tasks.group_size.tolist()
    allowed, parent, cut = tasks.group_allowed.T.copy(), list(range(len(size))), begins.copy()
    for p in range(1, len(group)):
        a, b = root(parent, group[p - 1]), root(parent, group[p])
        if begins[p] or a == b:
            continue
        both = allowed[a] & allowed[b]
        if both.any() and size[a] + size[b] <= memory:
            parent[b] = a
            size[a] += size[b]
            allowed[a] = both
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
    after, missing = tasks.after, np.diff(tasks.before.start)
    rising = np.lexsort((-after.items, urgency[after.items], after.owners()))
    consumers = Rows(after.start, after.items[rising]).lists()
    free = np.flatnonzero(missing == 0)
    stack = free[np.lexsort((-free, urgency[free]))].tolist()  # its top is the head of the queue
    left, order = missing.tolist(), []
    while stack:
        order.append(stack.pop())
        for w in consumers[order[-1]]:
            left[w] -= 1
            if not left[w]:
                stack.append(w)
    return np.array(order, dtype=np.int64)


def back_cost(tasks: Tasks) -> Floats:
    """Return the longest transfer to a consumer, between any two devices (Equation 8), shape (n,)."""
    back = np.zeros(tasks.n)
    np.maximum.at(back, tasks.after.owners(), largest_transfer(tasks)[tasks.after_tensor])
    return back


def adjust(arrays: TaskArrays, state: PartialSchedule, order: Ints, back: Floats) -> int:
    """Place the tasks one by one (Algorithm 2); for the first task the previous device is device 0.

    A task goes to the device of the task before, or to the earliest one if that is earlier by more than
    `back` (Equation 9). The earliest device is the one on which the task ends first. On equal devices that
    is the paper's EST; on unequal ones the paper's proof needs the end.

    Returns
    -------
    int
        The first task that fits nowhere; ``NOWHERE`` if all are placed.
    """
    return place_by_rule(arrays, state, order, ADJUST, back)


def fill(arrays: TaskArrays, state: PartialSchedule, order: Ints) -> int:
    """Place the tasks one by one (Sections 4.2.1 and 6.3).

    A device is full once a task that may run there does not fit; the tasks that follow go to the next
    device. A task that may not run on a device, or whose group is on another, does not make it full. When
    the last device is full, or no later device is allowed, a task goes to the device with the most memory
    left of those that it fits on, the lowest among equals.

    Returns
    -------
    int
        The first task that fits nowhere; ``NOWHERE`` if all are placed.
    """
    return place_by_rule(arrays, state, order, FILL_UP)


Rule = Callable[[Tasks, TaskArrays, PartialSchedule], int]


def place_dfs_topo(tasks: Tasks, settings: Settings) -> Found | None:
    """Place the tasks in DFS-TOPO order on one device after another (Section 4.2)."""
    state = new_state(tasks)
    ended = fill(arrays_of(tasks, settings.placing.reserve_memory), state, dfs_topo(tasks))
    return found(state) if ended == NOWHERE else None


def place_cpd_topo(tasks: Tasks, settings: Settings) -> Found | None:
    """Place the tasks in CPD-TOPO order on one device after another."""
    state = new_state(tasks)
    ended = _fill_along(tasks, arrays_of(tasks, settings.placing.reserve_memory), state)
    return found(state) if ended == NOWHERE else None


def place_order_place(tasks: Tasks, settings: Settings) -> Found | None:
    """Place fused clusters in CPD-TOPO order on one device after another: Order-Place (Section 5.2)."""
    return _placed_fused(tasks, settings, _fill_along)


def place_celeritas(tasks: Tasks, settings: Settings) -> Found | None:
    """Place fused clusters by Adjusting Placement: Celeritas (Algorithms 1 and 2)."""
    return _placed_fused(tasks, settings, _adjust_along)


def _fill_along(tasks: Tasks, arrays: TaskArrays, state: PartialSchedule) -> int:
    return fill(arrays, state, cpd_topo(tasks))


def _adjust_along(tasks: Tasks, arrays: TaskArrays, state: PartialSchedule) -> int:
    return adjust(arrays, state, cpd_topo(tasks), back_cost(tasks))


def _placed_fused(tasks: Tasks, settings: Settings, rule: Rule) -> Found | None:
    """Fuse the tasks and place the clusters; None if a task that is a cluster of its own fits nowhere.

    When a cluster fits nowhere, all clusters that fit nowhere at that time are taken apart, and the
    placement starts again. The paper puts such a cluster where most memory is left and exceeds the memory
    (its printed argmin contradicts its text); here the memory limits hold.
    """
    placing = settings.placing
    cluster = fused(tasks, placing.fusion_range, placing.fusion_memory)
    while True:
        coarse = merged(tasks, cluster)
        state = new_state(coarse)
        ended = rule(coarse, arrays_of(coarse, placing.reserve_memory), state)
        if ended == NOWHERE:
            figures = {"clusters": float(coarse.n), "ccr": ccr(tasks), "ccr_fused": ccr(coarse)}
            return replace(expanded(found(state), cluster, tasks), statistics=figures)
        finer = taken_apart(cluster, _lost(coarse, state, ended)[coarse.group][cluster])
        if finer.max() == cluster.max():
            return None
        cluster = finer


def _lost(coarse: Tasks, state: PartialSchedule, ended: int) -> Bools:
    """Return which groups fit nowhere, shape (groups,): that of cluster `ended`, and other unplaced ones."""
    roomy = coarse.group_allowed & (coarse.group_size <= state.room[:, None])
    lost: Bools = (state.home == NOWHERE) & ~roomy.any(axis=0)
    lost[coarse.group[ended]] = True
    return lost


def taken_apart(cluster: Ints, single: Bools) -> Ints:
    """Return the cluster of every task once some clusters are taken apart into single tasks, shape (n,).

    Parameters
    ----------
    cluster
        Shape (n,): the cluster of every task, numbered in a topological order.
    single
        Shape (n,): whether the task becomes a cluster of its own; all tasks of a cluster do, or none.
    """
    key = np.column_stack((cluster, np.where(single, np.arange(len(cluster)), -1)))
    return np.unique(key, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


solve_dfs_topo = as_method(place_dfs_topo)
solve_cpd_topo = as_method(place_cpd_topo)
solve_order_place = as_method(place_order_place)
solve_celeritas = as_method(place_celeritas)
