"""Random moves of nodes to other units, compiled."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.local_search.proposals import draw_below, draw_unit

AFTER, BEFORE, AROUND = 1, -1, 0
TO_NEIGHBOUR = 0.7
TRIES = 4


@njit(cache=True, inline="always")
def enrol(v, moves, who, mark, stamp, group, mate_start, mate):
    """Add the group of node `v` to the nodes that move; return their number."""
    mark[group[v]] = stamp
    for i in range(mate_start[group[v]], mate_start[group[v] + 1]):
        who[moves] = mate[i]
        moves += 1
    return moves


@njit(cache=True)
def gather(
    v, way, goal, rng, units, place, unit, late, group, mate_start, mate, before_start, before, after_start,
    after, mark, stamp, who, begin,
):  # fmt: skip
    """Write the group of node `v`, and neighbours that move with it, to `who` from `begin` on.

    The neighbours are the successors in the same unit (`way` is AFTER), the predecessors (BEFORE) or both
    (AROUND); in the other pass the directions are exchanged. On a CPU they are neighbours on the same CPU. At
    more than `goal` nodes a cluster (AROUND) ends, and a closure (AFTER or BEFORE) is given up.

    Returns
    -------
    tuple of int
        The end of the nodes in `who`, and a neighbour of them in another unit, -1 if there is none.
    """
    end, i, neighbours, neighbour = enrol(v, begin, who, mark, stamp, group, mate_start, mate), begin, 0, -1
    while i < end:
        x = who[i]
        i += 1
        turn = way if late[x] == late[v] else -way
        for side in (AFTER, BEFORE):
            if turn == -side:
                continue
            first = after_start[x] if side == AFTER else before_start[x]
            last = after_start[x + 1] if side == AFTER else before_start[x + 1]
            for k in range(first, last):
                y = after[k] if side == AFTER else before[k]
                if mark[group[y]] == stamp:
                    continue
                if unit[y] == unit[x] or (unit[x] >= units and place[y] == place[x]):
                    if end - begin >= goal and way != AROUND:
                        return begin, -1
                    if end - begin < goal:
                        end = enrol(y, end, who, mark, stamp, group, mate_start, mate)
                else:
                    neighbours += 1
                    if draw_below(rng, neighbours) == 0:
                        neighbour = y
    return end, neighbour


@njit(cache=True, inline="always")
def _is_torn(
    v, units, unit, group, before_start, before, after_start, after, mark, stamp, who, begin, end
):  # fmt: skip
    """Whether paths lead from nodes that stay in the unit of `v` to nodes that move, and back."""
    enters, leaves = False, False
    if unit[v] < units:
        for i in range(begin, end):
            x = who[i]
            if unit[x] == unit[v]:
                for k in range(before_start[x], before_start[x + 1]):
                    y = before[k]
                    enters = enters or (unit[y] == unit[v] and mark[group[y]] != stamp)
                for k in range(after_start[x], after_start[x + 1]):
                    y = after[k]
                    leaves = leaves or (unit[y] == unit[v] and mark[group[y]] != stamp)
                if enters and leaves:
                    return True
    return False


@njit(cache=True)
def propose(
    v, back, rng, mix, sites, slots, base, home, allowed, place, unit, late, group, mate_start, mate,
    before_start, before, after_start, after, net_start, net, pin_start, pin, head, following, mark, stamp,
    who, where, what, begin,
):  # fmt: skip
    """Draw a move of node `v` to another unit.

    The shares in `mix` say what moves: the group of `v`; the group and all nodes that follow or precede it in
    its unit; a connected cluster; the whole unit; all nodes that share a net with it. The target is mostly
    the unit of a neighbour. If devices have several slots, `v` alone may change its slot.

    Parameters
    ----------
    back
        The device to move to, -1 for any.
    rng, mix
        See :func:`anneal`.
    who, where, what, begin
        The nodes, their new devices and their new units are written to these from `begin` on.

    Returns
    -------
    int
        The end of the move in `who`; `begin` if there is none.
    """
    units, n, a = len(home), len(place), place[v]
    pick, neighbour, end = draw_unit(rng), -1, begin
    if slots > 1 and base[a] >= 0 and pick < mix[0] and draw_below(rng, 2) == 0:
        mark[group[v]] = stamp
        u = base[a] + late[v] * slots + draw_below(rng, slots)
        who[begin], where[begin], what[begin] = v, a, u
        return begin if u == unit[v] else begin + 1
    by_net = pick > mix[4] and net_start[v] < net_start[v + 1]
    if by_net:
        e = net[net_start[v] + draw_below(rng, net_start[v + 1] - net_start[v])]
        for _ in range(TRIES):
            neighbour = pin[pin_start[e] + draw_below(rng, pin_start[e + 1] - pin_start[e])]
            if unit[neighbour] != unit[v]:
                break
        for i in range(pin_start[e], pin_start[e + 1]):
            if mark[group[pin[i]]] != stamp and place[pin[i]] != place[neighbour]:
                end = enrol(pin[i], end, who, mark, stamp, group, mate_start, mate)
    elif pick > mix[3] and unit[v] < units:
        x = head[unit[v]]
        while x >= 0:
            if mark[group[x]] != stamp:
                end = enrol(x, end, who, mark, stamp, group, mate_start, mate)
            x = following[x]
    else:
        way, goal = AROUND, 1
        if pick > mix[0]:
            goal = int(2.0 ** (1 + draw_unit(rng) * (np.log2(n + 1) - 1)))
            way = AFTER if pick <= mix[1] else BEFORE if pick <= mix[2] else AROUND
        end, neighbour = gather(
            v, way, goal, rng, units, place, unit, late, group, mate_start, mate, before_start, before,
            after_start, after, mark, stamp, who, begin,
        )  # fmt: skip
    if end == begin or _is_torn(
        v, units, unit, group, before_start, before, after_start, after, mark, stamp, who, begin, end
    ):
        return begin
    slot = draw_below(rng, slots)
    if back >= 0:
        b = back
    elif neighbour >= 0 and (by_net or draw_unit(rng) < TO_NEIGHBOUR):
        b = place[neighbour]
        if unit[neighbour] < units:
            slot = (unit[neighbour] - base[b]) % slots
    else:
        b = sites[draw_below(rng, len(sites))]
    other = slots - 1 - slot if draw_below(rng, 2) == 0 else draw_below(rng, slots)
    kept = begin
    for i in range(begin, end):
        x = who[i]
        u = units + x
        if base[b] >= 0:
            u = base[b] + late[x] * slots + (slot if late[x] == late[v] else other)
        if not allowed[x, b]:
            return begin
        stays = place[x] == b and (a != b or by_net or unit[x] != unit[v])
        if u != unit[x] and not stays:
            who[kept], where[kept], what[kept] = x, b, u
            kept += 1
    return kept
