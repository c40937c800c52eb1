"""The placers of Celeritas, which place operators or clusters of operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from partitioner.methods.list_scheduling.celeritas.adjusting import adjust, back_cost
from partitioner.methods.list_scheduling.celeritas.fill import fill
from partitioner.methods.list_scheduling.celeritas.fusion import ccr, fused
from partitioner.methods.list_scheduling.celeritas.orders import cpd_topo, dfs_topo
from partitioner.methods.list_scheduling.coarse import expanded, merged
from partitioner.methods.list_scheduling.engine import found
from partitioner.methods.list_scheduling.found import Found
from partitioner.methods.list_scheduling.method import as_method
from partitioner.methods.list_scheduling.task_arrays import (
    NOWHERE,
    PartialSchedule,
    TaskArrays,
    arrays_of,
    new_state,
)
from partitioner.methods.method import Settings
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks
from partitioner.workload.graph import Bools

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
