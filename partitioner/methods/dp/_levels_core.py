"""The cost of the transfers over the ends of a segment, and sums over ideals, compiled."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit, overwrite
from partitioner.methods.dp.lattice import relocate


@njit(cache=True)
def cut_costs(parent, added, net_start, net_of, pins, cost):  # type: ignore[no-untyped-def]
    """Return the cost of the nets that have pins inside and outside each ideal, shape (I,)."""
    total = np.zeros(len(parent), np.float64)
    inside = np.zeros(len(pins), np.int64)
    place = 0
    for ideal in range(1, len(parent)):
        relocate(parent, added, net_start, net_of, inside, place, ideal)
        place = ideal
        for net in range(len(pins)):
            if 0 < inside[net] < pins[net]:
                total[ideal] += cost[net]
    return total


@njit(cache=True)
def segment_costs(members, low, highs, pin_start, pin, source, enter, leave):  # type: ignore[no-untyped-def]
    """Return the cost of the nets that enter or leave a segment, each once, for each of the `highs`.

    A segment holds the supernodes of one of the `highs` that `low` does not hold; `enter` and `leave`,
    shape (E,), are the costs of nets that cross its ends.
    """
    total = np.zeros(len(highs), np.float64)
    for i in range(len(highs)):
        for net in range(len(source)):
            inside = 0
            for at in range(pin_start[net], pin_start[net + 1]):
                inside += members[highs[i], pin[at]] and not members[low, pin[at]]
            if inside > 0 and (members[low, source[net]] or not members[highs[i], source[net]]):
                total[i] += enter[net]
            elif inside > 0 and inside < pin_start[net + 1] - pin_start[net]:
                total[i] += leave[net]
    return total


@njit(cache=True)
def end_costs(share, pin_start, pin, source, enter, leave):  # type: ignore[no-untyped-def]
    """Return the cost of the nets across the ends of a segment, at a supernode whose stage pays it, (n,).

    That supernode is the maker of a net that leaves, and the last reader of a net that enters.
    """
    cost = np.zeros(len(share), np.float64)
    for net in range(len(source)):
        reader, outside = -1, False
        for at in range(pin_start[net], pin_start[net + 1]):
            if share[pin[at]]:
                reader = max(reader, pin[at])
            else:
                outside = True
        if reader >= 0 and not share[source[net]]:
            cost[reader] += enter[net]
        elif reader >= 0 and outside:
            cost[source[net]] += leave[net]
    return cost


@njit(cache=True)
def members_of(parent, added, n):  # type: ignore[no-untyped-def]
    """Return the supernodes of every ideal, shape (I, n)."""
    inside = np.zeros((len(parent), n), np.bool_)
    for ideal in range(1, len(parent)):
        overwrite(inside[ideal], inside[parent[ideal]])
        inside[ideal, added[ideal]] = True
    return inside


@njit(cache=True)
def sums_of(parent, added, mark):  # type: ignore[no-untyped-def]
    """Return the sum of the marks of the supernodes of every ideal, shape (I,)."""
    total = np.zeros(len(parent), np.uint64)
    for ideal in range(1, len(parent)):
        total[ideal] = total[parent[ideal]] + mark[added[ideal]]
    return total
