"""The heaviest set that one device can hold: a Lagrangian bound, then exact labels (numba).

A label stands for a path to a state: its load, its weight, and the previous label. It is dropped if
every continuation exceeds the threshold, if its weight plus a bound on the rest is below the target, or
if another label at its state has no larger load and no smaller weight.
"""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.problem.arrays import Floats, Ints

FULL, NOTHING = -2, -1


@njit(cache=True, nogil=True)
def priced(start: Ints, after: Ints, load: Floats, weight: Floats, price: float, best: Floats) -> float:
    """Fill `best` with the largest weight minus price times load from every state to the end."""
    n = len(start) - 2
    best[start[n]] = 0.0
    for v in range(n - 1, -1, -1):
        for s in range(start[v], start[v + 1]):
            out, inside = after[s, 0], after[s, 1]
            top = -np.inf
            if out >= 0:
                top = best[out] - price * load[s, 0]
            if inside >= 0:
                top = max(top, best[inside] - price * load[s, 1] + weight[v])
            best[s] = top
    return float(best[0])


@njit(cache=True, nogil=True)
def follow(start: Ints, after: Ints, load: Floats, weight: Floats, price: float, best: Floats) -> Ints:
    """Return the set that :func:`priced` found, as zeros and ones, shape (n,)."""
    n = len(start) - 2
    chosen = np.zeros(n, dtype=np.int64)
    s = 0
    for v in range(n):
        out, inside = after[s, 0], after[s, 1]
        gain = best[inside] - price * load[s, 1] + weight[v] if inside >= 0 else -np.inf
        chosen[v] = 1 if out < 0 or gain > best[out] - price * load[s, 0] else 0
        s = inside if chosen[v] else out
    return chosen


@njit(cache=True, nogil=True)
def best_set(
    start: Ints,
    after: Ints,
    load: Floats,
    rest: Floats,
    weight: Floats,
    prices: Floats,
    ahead: Floats,
    threshold: float,
    target: float,
    room: int,
) -> tuple[int, float, Ints]:
    """Return the heaviest set whose load is at most the threshold and whose weight is at least the target.

    Parameters
    ----------
    start, after, load, rest
        See :class:`partitioner.methods.bounds.cover.states.CoverStates`.
    weight
        Shape (n,).
    prices, ahead
        Shapes (p,) and (p, states): prices of load, and for each the array that :func:`priced` filled.
    threshold, target
        Largest load, smallest weight.
    room
        The largest number of labels.

    Returns
    -------
    labels, weight, chosen
        The number of labels made (`FULL` if `room` was too small, `NOTHING` if no set reaches the target);
        the set's weight and its members as zeros and ones.
    """
    n = len(start) - 2
    state = np.zeros(room, dtype=np.int64)
    spent = np.zeros(room)
    gained = np.zeros(room)
    parent = np.zeros(room, dtype=np.int64)
    taken = np.zeros(room, dtype=np.int8)
    chosen = np.zeros(n, dtype=np.int64)
    low, high, top = 0, 1, 1
    for v in range(n):
        width = start[v + 2] - start[v + 1]
        first = np.zeros(width + 1, dtype=np.int64)
        born = np.empty(2 * (high - low), dtype=np.int64)  # 2 * label + bit
        count = 0
        for x in range(low, high):
            for bit in range(2):
                j = after[state[x], bit]
                if j < 0:
                    continue
                cost = spent[x] + load[state[x], bit]
                if cost + rest[j] > threshold:
                    continue
                total = gained[x] + weight[v] * bit
                hopeful = True
                for p in range(len(prices)):
                    if total + ahead[p, j] + prices[p] * (threshold - cost) < target:
                        hopeful = False
                        break
                if hopeful:
                    born[count] = 2 * x + bit
                    first[j - start[v + 1] + 1] += 1
                    count += 1
        if count == 0:
            return NOTHING, 0.0, chosen
        if top + count > room:
            return FULL, 0.0, chosen
        for q in range(width):
            first[q + 1] += first[q]
        place = first[:width].copy()
        grouped = np.empty(count, dtype=np.int64)
        cost_of = np.empty(count)
        for y in range(count):
            x, bit = born[y] // 2, born[y] % 2
            q = after[state[x], bit] - start[v + 1]
            grouped[place[q]] = born[y]
            cost_of[place[q]] = spent[x] + load[state[x], bit]
            place[q] += 1
        low = top
        for q in range(width):
            group = grouped[first[q] : first[q + 1]]
            cost_here = cost_of[first[q] : first[q + 1]]
            heaviest = -np.inf
            for y in np.argsort(cost_here):
                x, bit = group[y] // 2, group[y] % 2
                total = gained[x] + weight[v] * bit
                if total > heaviest:
                    heaviest = total
                    state[top] = q + start[v + 1]
                    spent[top] = cost_here[y]
                    gained[top] = total
                    parent[top] = x
                    taken[top] = bit
                    top += 1
        high = top
    label = top - 1  # of the last state's labels, by rising load, the heaviest
    weight_found = gained[label]
    if weight_found < target:  # a heavier one may have been dropped
        return NOTHING, 0.0, chosen
    for v in range(n - 1, -1, -1):
        chosen[v] = taken[label]
        label = parent[label]
    return top, weight_found, chosen
