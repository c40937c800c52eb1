"""Sums over the lattice with which the walk prunes, compiled.

The kernels fill arrays that they are given, because returning an array calls Python code, in which an
exception of a signal handler is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from partitioner.base.compiled import njit

if TYPE_CHECKING:
    from partitioner.methods.dp.ideals import Ints32, Lattice
    from partitioner.problem.arrays import Floats, Ints


def remaining_weights(lattice: Lattice, weight: Floats) -> Floats:
    """Return the total weight of the supernodes outside each ideal, shape (I,)."""
    remaining = np.empty(len(lattice.parent))
    _fill_remaining(lattice, weight, remaining)
    return remaining


def weights_above(start: Ints, after: Ints, weight: Floats, linear: bool) -> Floats:
    """Return the total weight of each supernode and all its descendants, shape (n,).

    It is 0 in a linear lattice, where a walk never skips a supernode, so that it is not needed.
    """
    above = np.zeros(len(weight))
    if not linear:
        _add_above(start, after, weight, above)
    return above


def easiest_followers(lattice: Lattice, growth: Floats) -> Ints32:
    """Return the supernode of least growth among those that can follow each ideal, or -1, shape (K, I)."""
    easiest = np.full((len(growth), len(lattice.parent)), -1, np.int32)
    _find_easiest(lattice, growth, easiest)
    return easiest


@njit(cache=True, nogil=True)
def _fill_remaining(lattice, weight, remaining):  # type: ignore[no-untyped-def]
    remaining[0] = 0.0
    for each in weight:
        remaining[0] += each
    for ideal in range(1, len(remaining)):
        remaining[ideal] = remaining[lattice.parent[ideal]] - weight[lattice.added[ideal]]


@njit(cache=True, nogil=True)
def _add_above(start, after, weight, above):  # type: ignore[no-untyped-def]
    n = len(weight)
    seen, stack = np.empty(n, np.int64), np.empty(n, np.int64)
    seen[:] = -1
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


@njit(cache=True, nogil=True)
def _find_easiest(lattice, growth, easiest):  # type: ignore[no-untyped-def]
    for k in range(len(growth)):
        for ideal in range(len(lattice.parent)):
            least = np.inf
            for e in range(lattice.start[ideal], lattice.start[ideal + 1]):
                if growth[k, lattice.node[e]] < least:
                    least = growth[k, lattice.node[e]]
                    easiest[k, ideal] = lattice.node[e]
