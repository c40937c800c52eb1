"""Compiled: prices of kinds of devices that rise where the cheapest assignment overloads a kind."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import math

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.bounds.relaxation import HUGE

STEEPEST = 4.0  # times the mean load, above which a load raises its price no faster


@njit(cache=True, nogil=True)
def improve_prices(price, best, work, count, present, steps):
    """Raise prices of kinds that the cheapest assignment overloads, lower others; `best` gets the best ones.

    Parameters
    ----------
    price, best
        Shape (R, K): the first prices of each set; they are changed.
    work, count, present
        Shapes (K, n), (K,) and (R, K): times, infinity where a kind may not run a supernode; devices of each
        kind; and whether the kind is in the set.
    steps
        The step of each round.
    """
    kinds, n = work.shape
    load = np.empty(kinds)
    for row in range(len(price)):
        value = -1.0
        for e in range(len(steps)):
            need, speed, mean, members = 0.0, 0.0, 0.0, 0
            for k in range(kinds):
                load[k] = 0.0
            for v in range(n):
                least, chosen = np.inf, -1
                for k in range(kinds):
                    if present[row, k] and work[k, v] * price[row, k] < least:
                        least, chosen = work[k, v] * price[row, k], k
                if chosen >= 0:
                    need += least
                    load[chosen] += work[chosen, v]
            for k in range(kinds):
                if present[row, k] and count[k] > 0:
                    speed += price[row, k] * count[k]
                    load[k] /= count[k]
                    mean += load[k]
                    members += 1
            if speed <= 0.0 or mean <= 0.0:
                break
            if need > value * speed:
                value = need / speed
                for k in range(kinds):
                    best[row, k] = price[row, k]
            for k in range(kinds):
                excess = min(load[k] * members / mean, STEEPEST) - 1.0
                if present[row, k]:
                    price[row, k] *= math.exp(steps[e] * excess)


@njit(cache=True, nogil=True)
def fill_weights(price, memory_price, work, size, present, weight):
    """Write the least cost of each supernode on any kind of each set, infinity if none may run it."""
    kinds, n = work.shape
    for row in range(len(price)):
        for v in range(n):
            least = np.inf
            for k in range(kinds):
                if present[row, k] and work[k, v] < np.inf:
                    cost = min(work[k, v] * price[row, k], HUGE) + memory_price[row, k] * size[v]
                    least = min(least, cost)
            weight[row, v] = least
