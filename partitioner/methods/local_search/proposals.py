"""Random moves, compiled: of a supernode, two, a net, a cluster, a run of numbers, or two devices."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.local_search.arrays import LOAD

WIDEST = 64
LARGEST = 1024


@njit(cache=True, inline="always")
def draw_below(rng, n):
    """Return a random integer from 0 to n - 1 (xorshift)."""
    x = rng[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    rng[0] = x
    return np.int64(((x >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(cache=True, inline="always")
def draw_unit(rng):
    """Return a random number above 0 and at most 1."""
    return (draw_below(rng, 1 << 31) + 1) / (1 << 31)


@njit(cache=True)
def propose(
    n, devices, rng, mix, ledger, place, net_start, net, pin_start, pin, cost, stamp, mark, attach, front,
    who, where,
):  # fmt: skip
    """Draw a move of supernodes to other devices, write it to `who` and `where`, and return its length.

    A supernode `v` is drawn, more often from devices with a large load, and a device, mostly one that holds
    a pin of one of its nets. The shares in `mix` then say what moves there: `v`; `v` in exchange for another
    supernode; a whole net; a cluster around `v`; supernodes of successive numbers (neighbours in a linear
    order), either of the same device or of all; or the two devices exchange everything.

    Parameters
    ----------
    n, devices, rng, mix
        Numbers of supernodes and devices, and see :func:`anneal`.
    ledger, place, net_start, net, pin_start, pin, cost
        See :class:`PlacementModel` and :class:`PlacementState`.
    stamp, mark, attach, front
        A number not used before, and scratch space of shape (n,) each.
    who, where
        Shape (n + 1,): the supernodes and their new devices are written to these.

    Returns
    -------
    tuple of int and bool
        How many supernodes move, and whether every prefix of them is a valid move, too.
    """
    v = draw_below(rng, n)
    a = place[v]
    if draw_below(rng, 2) == 0:
        for _ in range(2):
            u = draw_below(rng, n)
            if ledger[place[u], LOAD] + ledger[place[u], LOAD + 1] > ledger[a, LOAD] + ledger[a, LOAD + 1]:
                v, a = u, place[u]
    b, e, nets = a, -1, net_start[v + 1] - net_start[v]
    if nets > 0:
        e = net[net_start[v] + draw_below(rng, nets), 0]
        if draw_below(rng, 4) > 0:
            b = place[pin[pin_start[e] + draw_below(rng, pin_start[e + 1] - pin_start[e])]]
    if b == a:
        b = (a + 1 + draw_below(rng, devices - 1)) % devices
    pick = draw_unit(rng)
    who[0], where[0], moves = v, b, 1
    if pick < mix[0]:
        return moves, False
    if pick < mix[1]:
        for _ in range(8):
            u = draw_below(rng, n)
            if place[u] == b:
                who[1], where[1] = u, a
                return 2, False
        return moves, False
    if pick < mix[2]:
        for i in range(pin_start[e], pin_start[e + 1] if e >= 0 else 0):
            if place[pin[i]] != b and pin[i] != v:
                who[moves], where[moves] = pin[i], b
                moves += 1
        return moves, False
    goal = int(2.0 ** (1 + draw_unit(rng) * (np.log2(n) - 1)))
    if pick < mix[3]:
        greedy = draw_below(rng, 4) > 0
        goal = min(goal, LARGEST)
        moves = _grow(
            v, goal, greedy, rng, place, net_start, net, pin_start, pin, cost, stamp, mark, attach, front, who
        )
        where[:moves] = b
        return moves, True
    moves = 0
    if pick < mix[4]:
        first = max(0, v - draw_below(rng, goal))
        everything = draw_below(rng, 2) == 0
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


@njit(cache=True, inline="always")
def _grow(
    v, goal, greedy, rng, place, net_start, net, pin_start, pin, cost, stamp, mark, attach, front, who
):  # fmt: skip
    """Write up to `goal` supernodes of the device of `v`, joined to it by nets, to `who`; return the number.

    If `greedy`, the one that shares the most costly nets with those before comes next; else a random one.
    """
    moves, waiting = 0, 1
    front[0], mark[v], attach[v] = v, stamp, 0.0
    while waiting > 0 and moves < goal:
        j = draw_below(rng, waiting)
        if greedy:
            for i in range(waiting):
                if attach[front[i]] > attach[front[j]]:
                    j = i
        u = front[j]
        waiting -= 1
        front[j] = front[waiting]
        who[moves] = u
        moves += 1
        for i in range(net_start[u], net_start[u + 1]):
            e = net[i, 0]
            if pin_start[e + 1] - pin_start[e] > WIDEST:
                continue
            for k in range(pin_start[e], pin_start[e + 1]):
                x = pin[k]
                if place[x] == place[v]:
                    if mark[x] != stamp:
                        mark[x] = stamp
                        attach[x] = 0.0
                        front[waiting] = x
                        waiting += 1
                    attach[x] += cost[e]
    return moves
