"""The compiled recursions over listed stages: the least price of what a pipeline still needs."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit


@njit(cache=True, nogil=True)
def least_prices(stages, price, least):
    """Write the least price of the devices that complete a pipeline.

    Parameters
    ----------
    stages
        The list of stages.
    price
        Shape (K,): the price of a device of each kind.
    least
        Shape (I, G, G): by ideal, group of the last stage and group of the next one; it is written. Infinity
        if no listed stages complete a pipeline.
    """
    ideals, groups = least.shape[0], least.shape[1]
    last = ideals - 1
    least[:] = np.inf
    least[last] = 0.0
    for start in range(last - 1, -1, -1):
        froms = 1 if start == 0 else groups
        for e in range(stages.first[start], stages.first[start + 1]):
            k, ideal = stages.kind[e], stages.to[e]
            here, cost = stages.group[e], stages.copies[e] * price[k]
            for p in range(froms):
                best, bits, q = np.inf, stages.mask[e, p], 0
                while bits:
                    if bits & 1:
                        best = min(best, least[ideal, here, q])
                    bits >>= 1
                    q += 1
                if cost + best < least[start, p, here]:
                    least[start, p, here] = cost + best


@njit(cache=True, nogil=True)
def follow_prices(stages, price, least, chosen):
    """Write the stages of a cheapest pipeline to `chosen`; return how many there are."""
    last, groups = least.shape[0] - 1, least.shape[1]
    at, p, count = 0, 0, 0
    mask = np.int64((1 << groups) - 1)
    while at < last:
        goal, next_group = np.inf, 0
        for q in range(groups):
            if (mask >> q) & 1 and least[at, p, q] < goal:
                goal, next_group = least[at, p, q], q
        found = -1
        for e in range(stages.first[at], stages.first[at + 1]):
            k, ideal = stages.kind[e], stages.to[e]
            if stages.group[e] != next_group or found >= 0:
                continue
            best, bits, q = np.inf, stages.mask[e, p], 0
            while bits:
                if bits & 1:
                    best = min(best, least[ideal, next_group, q])
                bits >>= 1
                q += 1
            if stages.copies[e] * price[k] + best <= goal:
                found = e
        chosen[count] = found
        count += 1
        mask = stages.mask[found, p]
        at, p = stages.to[found], next_group
    return count
