"""Compiled sums over the lattice that the walk prunes with."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit


@njit(cache=True)
def remaining_weights(lattice, weight):  # type: ignore[no-untyped-def]
    """Shape (I,): total weight of the supernodes outside each ideal."""
    remaining = np.empty(len(lattice.parent), np.float64)
    remaining[0] = weight.sum()
    for ideal in range(1, len(remaining)):
        remaining[ideal] = remaining[lattice.parent[ideal]] - weight[lattice.added[ideal]]
    return remaining


@njit(cache=True)
def weights_above(start, after, weight, linear):  # type: ignore[no-untyped-def]
    """Shape (n,): total weight of each supernode and all its descendants; 0 in a linear lattice.

    There nothing is ever passed over, so that nobody asks.
    """
    n = len(weight)
    above = np.zeros(n, np.float64)
    if linear:
        return above
    seen = np.full(n, -1, np.int64)
    stack = np.empty(n, np.int64)
    for root in range(n):
        stack[0], depth = root, 1
        seen[root] = root
        while depth > 0:
            depth -= 1
            v = stack[depth]
            above[root] += weight[v]
            for e in range(start[v], start[v + 1]):
                if seen[after[e]] != root:
                    seen[after[e]] = root
                    stack[depth] = after[e]
                    depth += 1
    return above


@njit(cache=True)
def easiest_followers(lattice, growth):  # type: ignore[no-untyped-def]
    """Shape (K, I): of the supernodes that can follow each ideal, the one of least growth, or -1."""
    easiest = np.full((len(growth), len(lattice.parent)), -1, np.int32)
    for k in range(len(growth)):
        for ideal in range(len(lattice.parent)):
            least = np.inf
            for e in range(lattice.start[ideal], lattice.start[ideal + 1]):
                if growth[k, lattice.node[e]] < least:
                    least = growth[k, lattice.node[e]]
                    easiest[k, ideal] = lattice.node[e]
    return easiest
