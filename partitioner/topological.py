"""Nodes in an order in which each comes after those that it depends on."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from partitioner.graph import Graph, Ints


def topological(graph: Graph) -> Ints:
    """The nodes in the order of the file as far as edges allow.

    Returns
    -------
    Ints
        Positions of nodes; fewer than there are if the edges make a cycle: those that do not come after it.
    """
    if (graph.edges[:, 0] < graph.edges[:, 1]).all():
        return np.arange(len(graph), dtype=np.int64)
    after: list[list[int]] = [[] for _ in range(len(graph))]
    for u, v in graph.edges.tolist():
        after[u].append(v)
    missing = np.bincount(graph.edges[:, 1], minlength=len(graph)).tolist()
    ready = [v for v, count in enumerate(missing) if not count]
    order = []
    while ready:
        order.append(heapq.heappop(ready))
        for v in after[order[-1]]:
            missing[v] -= 1
            if not missing[v]:
                heapq.heappush(ready, v)
    return np.array(order, dtype=np.int64)
