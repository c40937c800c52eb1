"""Kahn's topological order with a queue: the task that becomes ready first comes first."""

from __future__ import annotations

import numpy as np

from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks


def kahn_order(tasks: Tasks) -> Ints:
    """Return tasks without inputs in the order of the nodes, then consumers in the order of the edges.

    Returns
    -------
    Ints
        Shape (n,), a topological order.
    """
    missing = np.diff(tasks.before.start)
    sources = np.flatnonzero(missing == 0)
    order = sources[np.argsort(tasks.node[sources], kind="stable")].tolist()
    left, start, after = missing.tolist(), tasks.after.start.tolist(), tasks.after.items.tolist()
    for u in order:
        for v in after[start[u] : start[u + 1]]:
            left[v] -= 1
            if not left[v]:
                order.append(v)
    return np.array(order, dtype=np.int64)
