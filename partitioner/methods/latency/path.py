"""The simplest lower bound on the latency: the longest path in best times."""

from __future__ import annotations

import numpy as np

from partitioner.problem.arrays import Floats
from partitioner.problem.variants import NodesProblem


def best_times(problem: NodesProblem) -> Floats:
    """Return the least time of each node on kinds where its group may run and fits, or infinity, (n,)."""
    groups = int(problem.group.max(initial=-1)) + 1
    time = np.full(problem.n, np.inf)
    for k in np.flatnonzero(problem.count).tolist():
        barred = np.bincount(problem.group, ~problem.allowed[k], groups) > 0
        barred |= np.bincount(problem.group, problem.size, groups) > problem.memory[k]
        time = np.minimum(time, np.where(barred[problem.group], np.inf, problem.time[k].sum(axis=0)))
    return time


def heads(problem: NodesProblem) -> Floats:
    """Return the longest path in best times that ends with each node, shape (n,)."""
    head: list[float] = best_times(problem).tolist()
    for v in range(problem.n):
        before = problem.predecessors.row(v).tolist()
        head[v] += max((head[u] for u in before), default=0.0)
    return np.array(head)


def longest_path(problem: NodesProblem) -> float:
    """Return the longest path in best times, a lower bound; infinity if a node may run nowhere."""
    return float(heads(problem).max(initial=0.0))
