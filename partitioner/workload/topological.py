"""A topological order of nodes: each comes after the nodes that it depends on."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray


def topological(edges: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the topological order of the nodes in which the lowest position that is ready comes next.

    Parameters
    ----------
    edges
        Shape (E, 2): the positions of producer and consumer.
    count
        How many nodes there are.

    Returns
    -------
    NDArray[np.int64]
        Positions of nodes. Nodes on a cycle, and nodes that depend on one, are left out.
    """
    if (edges[:, 0] < edges[:, 1]).all():
        return np.arange(count, dtype=np.int64)
    after: list[list[int]] = [[] for _ in range(count)]
    for u, v in edges.tolist():
        after[u].append(v)
    missing = np.bincount(edges[:, 1], minlength=count).tolist()
    ready = [v for v, waits in enumerate(missing) if not waits]
    order = []
    while ready:
        order.append(heapq.heappop(ready))
        for v in after[order[-1]]:
            missing[v] -= 1
            if not missing[v]:
                heapq.heappush(ready, v)
    return np.array(order, dtype=np.int64)


def all_before(edges: NDArray[np.int64], chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which of the chosen nodes depend on chosen nodes alone, shape (n,).

    Parameters
    ----------
    edges
        Shape (E, 2): the positions of producer and consumer, without cycles.
    chosen
        Shape (n,): whether each node is chosen.

    Examples
    --------
    >>> all_before(np.array([[0, 1], [1, 2], [3, 2]]), np.array([True, True, True, False])).tolist()
    [True, True, False, False]
    """
    before: list[list[int]] = [[] for _ in chosen]
    for source, target in edges.tolist():
        before[target].append(source)
    found = chosen.copy()
    for node in topological(edges, len(chosen)).tolist():
        found[node] &= all(found[source] for source in before[node])
    return found
