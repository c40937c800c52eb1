"""Optimal Operation Fusion: neighbours in the order of CPD-TOPO become clusters."""

from __future__ import annotations

import numpy as np

from partitioner.methods.list_scheduling.celeritas.breakpoints import breakpoints
from partitioner.methods.list_scheduling.celeritas.orders import cpd_topo
from partitioner.methods.list_scheduling.celeritas.ties import untied
from partitioner.methods.list_scheduling.ranks import mean_time, mean_transfer
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks


def fused(tasks: Tasks, most: int, fraction: float) -> Ints:
    """Shape (n,): the cluster of every task, numbered in a topological order (Section 5.1.3).

    Parameters
    ----------
    tasks
        The tasks.
    most
        R, the most tasks of a cluster.
    fraction
        M, the memory that a cluster may take, as a fraction of the smallest device's; a device that could
        hold all tasks counts as one that just holds them, so that there are clusters to distribute.
    """
    order = cpd_topo(tasks)
    memory = fraction * min(float(tasks.limit.min()), float(tasks.size.sum()))
    begins = untied(tasks, order, breakpoints(tasks, order, most, memory), memory)
    cluster = np.empty(tasks.n, dtype=np.int64)
    cluster[order] = np.cumsum(begins) - 1
    return cluster


def ccr(tasks: Tasks) -> float:
    """The ratio of communication to computing: all edges' transfers over all times (Equation 1).

    Times and transfers are means over devices and their pairs; 0 if nothing takes time.
    """
    work = float(mean_time(tasks).sum())
    return float(mean_transfer(tasks)[tasks.after_tensor].sum()) / work if work else 0.0
