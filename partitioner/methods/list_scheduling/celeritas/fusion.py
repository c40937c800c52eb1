"""Optimal Operation Fusion: runs of tasks in the order of CPD-TOPO become clusters."""

from __future__ import annotations

import numpy as np

from partitioner.methods.list_scheduling.celeritas.breakpoints import breakpoints
from partitioner.methods.list_scheduling.celeritas.orders import cpd_topo
from partitioner.methods.list_scheduling.celeritas.ties import untied
from partitioner.methods.list_scheduling.ranks import mean_time, mean_transfer
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks


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
