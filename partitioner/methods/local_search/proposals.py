"""Compiled proposals of moves: one supernode, two, a net, a cluster, a run of numbers, two devices."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np
from numba import njit

from partitioner.methods.local_search.arrays import LOAD


@njit(cache=True, inline="always")
def draw_below(rng, n):
    """A random integer from 0 to n - 1 (xorshift)."""
    x = rng[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    rng[0] = x
    return np.int64(((x >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(cache=True, inline="always")
def draw_unit(rng):
    """A random number above 0 and at most 1."""
    return (draw_below(rng, 1 << 31) + 1) / (1 << 31)


@njit(cache=True)
def propose(
    n, devices, rng, mix, ledger, place, net_start, net, pin_start, pin, cost, stamp, mark, attach, front,
    who, where,
):  # fmt: skip
    """Fill `who` and `where` with shifts; return how many, and whether any prefix of them will do."""
    v = draw_below(rng, n)
    a = place[v]
    if draw_below(rng, 2) == 0:
        for _ in range(2):
            u = draw_below(rng, n)
            if ledger[place[u], LOAD] + ledger[place[u], LOAD + 1] > ledger[a, LOAD] + ledger[a, LOAD + 1]:
                v, a = u, place[u]
    b = a
    nets = net_start[v + 1] - net_start[v]
    e = -1
    if nets > 0:
        e = net[net_start[v] + draw_below(rng, nets), 0]
        if draw_below(rng, 4) > 0:
            b = place[pin[pin_start[e] + draw_below(rng, pin_start[e + 1] - pin_start[e])]]
    if b == a:
        b = (a + 1 + draw_below(rng, devices - 1)) % devices
    pick = draw_unit(rng)
    who[0], where[0] = v, b
    if pick < mix[0]:
        return 1, False
    if pick < mix[1]:  # swap
        for _ in range(8):
            u = draw_below(rng, n)
            if place[u] == b:
                who[1], where[1] = u, a
                return 2, False
        return 1, False
    moves = 0
    if pick < mix[2]:  # net
        if e >= 0:
            for i in range(pin_start[e], pin_start[e + 1]):
                if place[pin[i]] != b:
                    who[moves], where[moves] = pin[i], b
                    moves += 1
        return moves, False
    goal = int(2.0 ** (1 + draw_unit(rng) * (np.log2(n) - 1)))
    if pick < mix[3]:  # cluster
        greedy = draw_below(rng, 4)
        waiting = 1
        front[0] = v
        mark[v] = stamp
        attach[v] = 0.0
        while waiting > 0 and moves < goal:
            j = draw_below(rng, waiting)
            if greedy > 0:
                for i in range(waiting):
                    if attach[front[i]] > attach[front[j]]:
                        j = i
            u = front[j]
            waiting -= 1
            front[j] = front[waiting]
            who[moves], where[moves] = u, b
            moves += 1
            for i in range(net_start[u], net_start[u + 1]):
                f = net[i, 0]
                for k in range(pin_start[f], pin_start[f + 1]):
                    x = pin[k]
                    if place[x] == a:
                        if mark[x] != stamp:
                            mark[x] = stamp
                            attach[x] = 0.0
                            front[waiting] = x
                            waiting += 1
                        attach[x] += cost[f]
        return moves, True
    if pick < mix[4]:  # run of numbers
        first = max(0, v - draw_below(rng, goal))
        everything = draw_below(rng, 2)
        for u in range(first, min(n, first + goal)):
            if place[u] != b and (everything or place[u] == a):
                who[moves], where[moves] = u, b
                moves += 1
        return moves, False
    for u in range(n):
        if place[u] == a or place[u] == b:
            who[moves], where[moves] = u, a + b - place[u]
            moves += 1
    return moves, False
