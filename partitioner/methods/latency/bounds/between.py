"""The least time between two subgraphs on either side of a block, through nodes of neither."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit
from partitioner.problem.arrays import Floats

Bits = NDArray[np.uint64]


def times_between(
    ideals: Bits,
    free: Floats,
    paid: Floats,
    edges: list[tuple[int, int]],
    nets: list[tuple[int, list[int], float]],
) -> Floats:
    """Return the longest path through the nodes of ideal j that are not in ideal i, shape (s, s).

    The nodes of a path run alone, or in subgraphs other than the two on either side. The end of a node is
    the least over all such choices of its predecessors, so that the bound holds for every layout.

    Parameters
    ----------
    ideals
        Shape (s,): sets of inner nodes as bits.
    free, paid
        Shape (n,): time of each inner node when it runs alone, and in a subgraph.
    edges
        The block's edges; inner nodes are 1 to n, the separators 0 and n + 1.
    nets
        Source, readers and cost of the nets that are paid where an edge is cut; empty if transfers are not
        added to processing.
    """
    n, times = len(free), np.full((len(ideals), len(ideals)), np.inf)
    _between(ideals, _after(n, edges), free, paid, _edge_costs(n, edges, nets), times)
    return times


def _edge_costs(n: int, edges: list[tuple[int, int]], nets: list[tuple[int, list[int], float]]) -> Floats:
    """Return the cost of cutting each edge for either side, -1 without an edge, shape (n + 2, n + 2)."""
    cost = np.full((n + 2, n + 2), -1.0)
    for u, v in edges:
        cost[u, v] = 0.0
    for source, readers, amount in nets:
        for v in readers:
            cost[source, v] += amount if cost[source, v] >= 0 else 0.0
    return cost


def _after(n: int, edges: list[tuple[int, int]]) -> Bits:
    """Return the inner successors of each inner node, as bits, shape (n,)."""
    after = np.zeros(n, dtype=np.uint64)
    for u, v in edges:
        if u > 0 and v <= n:
            after[u - 1] |= np.uint64(1 << (v - 1))
    return after


@njit(cache=True, nogil=True)
def _between(ideals: Bits, after: Bits, free: Floats, paid: Floats, cost: Floats, result: Floats) -> None:
    count, n = len(ideals), len(free)
    one = np.uint64(1)
    alone, shared, last = np.zeros(n), np.zeros(n), np.zeros(n)
    for i in range(count):
        for v in range(n):
            if ideals[i] >> numba.uint64(v) & one:
                last[v] = -1.0
                continue
            alone[v], shared[v] = _reached(ideals[i], v, alone, shared, free, paid, cost)
            most = 0.0
            for w in range(v + 1, n + 1):
                most = max(most, cost[v + 1, w + 1])
            last[v] = min(alone[v], shared[v] + most)
        order = np.argsort(-last)
        for j in range(count):
            if ideals[i] & ~ideals[j] == 0:
                middle = ideals[j] & ~ideals[i]
                result[i, j] = 0.0
                for v in order:
                    if middle >> numba.uint64(v) & one and after[v] & middle == 0:
                        result[i, j] = last[v]
                        break


@njit(cache=True, nogil=True, inline="always")
def _reached(ideal, v, alone, shared, free, paid, cost):  # type: ignore[no-untyped-def]
    """Return the earliest end of node v after the ideal: alone, and in a subgraph that began outside."""
    by_itself, in_subgraph = 0.0, max(cost[0, v + 1], 0.0)
    for u in range(v):
        moved = cost[u + 1, v + 1]
        if moved < 0:
            continue
        if ideal >> numba.uint64(u) & numba.uint64(1):
            in_subgraph = max(in_subgraph, moved)
        else:
            by_itself = max(by_itself, min(alone[u], shared[u] + moved))
            in_subgraph = max(in_subgraph, min(shared[u], alone[u] + moved))
    return by_itself + free[v], in_subgraph + paid[v]
