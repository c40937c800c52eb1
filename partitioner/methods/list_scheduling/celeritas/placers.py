"""The placers of Celeritas, which place operators or clusters of operators.

Adjusting Placement: a task stays on the previous task's device unless another one is much earlier.

Placement on one device after another: each takes tasks in their order until its memory is full.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.celeritas.fusion import ccr, fused
from partitioner.methods.list_scheduling.celeritas.orders import cpd_topo, dfs_topo
from partitioner.methods.list_scheduling.coarse import expanded, merged
from partitioner.methods.list_scheduling.engine import found
from partitioner.methods.list_scheduling.found import Found
from partitioner.methods.list_scheduling.method import as_method
from partitioner.methods.list_scheduling.ranks import largest_transfer
from partitioner.methods.list_scheduling.task_arrays import (
    FIRST,
    NOWHERE,
    PartialSchedule,
    TaskArrays,
    arrays_of,
    book,
    earliest_start,
    fits,
    new_state,
)
from partitioner.methods.method import Settings
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks
from partitioner.workload.graph import Bools


def back_cost(tasks: Tasks) -> Floats:
    """Return the longest transfer to a consumer, between any two devices (Equation 8), shape (n,)."""
    back = np.zeros(tasks.n)
    np.maximum.at(back, tasks.after.owners(), largest_transfer(tasks)[tasks.after_tensor])
    return back


@njit(cache=True, nogil=True)
def adjust(arrays: TaskArrays, state: PartialSchedule, order: Ints, back: Floats) -> int:
    """Place the tasks one by one (Algorithm 2); for the first task the previous device is device 0.

    Returns
    -------
    int
        The first task that fits nowhere; ``NOWHERE`` if all are placed.
    """
    previous = FIRST
    for v in order:
        previous = _adjusted(arrays, state, v, previous, back[v])
        if previous == NOWHERE:
            return int(v)
        book(arrays, state, v, previous)
    return NOWHERE


@njit(cache=True, nogil=True)
def _adjusted(arrays: TaskArrays, state: PartialSchedule, v: int, previous: int, back: float) -> int:
    """Return the previous device, or the earliest one if that is earlier by more than `back` (Equation 9).

    The earliest device is the one on which the task ends first. On equal devices that is the paper's EST;
    on unequal ones the paper's proof needs the end.
    """
    earliest, start, end = NOWHERE, np.inf, np.inf
    stay = np.inf
    for d in range(len(state.room)):
        if not fits(arrays, state, v, d):
            continue
        begin = earliest_start(arrays, state, v, d)
        if d == previous:
            stay = begin
        if begin + arrays.time[d, v] < end:
            earliest, start, end = d, begin, begin + arrays.time[d, v]
    if stay == np.inf:
        return earliest
    later = (stay - start) + (arrays.time[previous, v] - arrays.time[earliest, v])
    return earliest if later > back else previous


@njit(cache=True, nogil=True)
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
    current = FIRST
    for v in order:
        d, current = _next(arrays, state, v, current)
        if d == NOWHERE:
            return int(v)
        book(arrays, state, v, d)
    return NOWHERE


@njit(cache=True, nogil=True)
def _next(arrays: TaskArrays, state: PartialSchedule, v: int, current: int) -> tuple[int, int]:
    """Return the device of a task, and the first one that is not full."""
    g = arrays.group[v]
    if state.home[g] == NOWHERE:
        for d in range(current, len(state.room)):
            if fits(arrays, state, v, d):
                return d, current
            if d == current and arrays.group_allowed[d, g]:
                current += 1
    return _roomiest(arrays, state, v), current


@njit(cache=True, nogil=True)
def _roomiest(arrays: TaskArrays, state: PartialSchedule, v: int) -> int:
    """Return the device with the most memory left of those that the task fits on, or ``NOWHERE``."""
    chosen = NOWHERE
    for d in range(len(state.room)):
        if fits(arrays, state, v, d) and (chosen == NOWHERE or state.room[d] > state.room[chosen]):
            chosen = d
    return chosen


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
    return int(fill(arrays, state, cpd_topo(tasks)))


def _adjust_along(tasks: Tasks, arrays: TaskArrays, state: PartialSchedule) -> int:
    return int(adjust(arrays, state, cpd_topo(tasks), back_cost(tasks)))


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
