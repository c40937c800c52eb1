"""Simulated annealing over the devices and units of nodes, compiled.

Random moves of nodes to other units, compiled.
"""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit, overwrite
from partitioner.methods.latency.kernel.tracking import recost, refresh, shift, span, timed
from partitioner.methods.local_search.kernel import draw_below, draw_unit

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
    # What moves: all nodes of a net, a whole unit, or nodes gathered around `v`.
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
    # Where it moves: back, to the unit of a neighbour, or to any device.
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
    kept = begin  # nodes that are there already are left out
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


ROUNDING = 1e-9
LINKS = 4
SWAP = 0.1
BACK = 0.4
LARGEST_GAIN = 0.05  # the largest share that a single move is assumed to save
# Not Python ints: numba has other types for these and would compile every kernel once more for them.
NONE_YET: int = np.int64(0)  # type: ignore[assignment]
ANYWHERE: int = np.int64(-1)  # type: ignore[assignment]


@njit(cache=True, inline="always")
def violation_of(held, room, violation_scale):
    """Return the memory above the devices' limits, in units of `violation_scale`."""
    violation = 0.0
    for d in range(len(held)):
        violation += max(0.0, held[d] - room[d])
    return violation / violation_scale


@njit(cache=True, nogil=True)
def anneal(model, state, scratch, control, mix, rng, best, value, budget):
    """Propose `budget` moves and accept or reject them as annealing does.

    A move that exceeds the memory of a device is mostly extended by a move of other nodes from there. A move
    after which units wait for each other in a cycle is undone.

    Parameters
    ----------
    model, state, scratch, control
        See :mod:`partitioner.methods.latency.kernel.model`; the state is changed.
    mix
        Shape (5,): cumulated shares of the first five kinds of moves; the rest up to 1 is that of the sixth.
    rng
        Shape (1,): the state of the random numbers, which is changed.
    best, value
        Shapes (2, n) and (1,): the devices and units of the best layout that obeys the limits, and its
        latency; both are overwritten by better ones.
    budget
        The number of moves.
    """
    refresh(model, state)
    time, size, allowed, room, violation_scale = (
        model.time,
        model.size,
        model.allowed,
        model.room,
        model.violation_scale,
    )
    base, home, late, sites, slots = model.base, model.home, model.late, model.sites, model.slots
    group, mate_start, mate = model.group, model.mate_start, model.mate
    before_start, before, after_start, after = (
        model.before_start, model.before, model.after_start, model.after,
    )  # fmt: skip
    net_start, net, pin_start, pin = model.net_start, model.net, model.pin_start, model.pin
    cost, source, communication = model.cost, model.source, model.communication
    place, unit, inside, ledger, held = state.place, state.unit, state.inside, state.ledger, state.held
    seat = state.seat
    head, following, previous, outer = state.head, state.following, state.previous, state.outer
    missing, ready, behind, stack = scratch.missing, scratch.ready, scratch.behind, scratch.stack
    temperature, strict, tie = control.temperature, control.strict, control.tie
    n = len(place)
    who, where, what = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    mark = np.zeros(n, np.int64)
    latest, total = timed(model, state, scratch)
    excess = violation_of(held, room, violation_scale)
    energy = latest + tie * total + strict * excess
    # A move is a chain of at most LINKS proposals, each of which frees memory on the device of the last one.
    for stamp in range(1, budget + 1):
        v, back, moves = draw_below(rng, n), ANYWHERE, NONE_YET
        a = place[v]
        for _ in range(LINKS):
            end = propose(
                v, back, rng, mix, sites, slots, base, home, allowed, place, unit, late, group, mate_start,
                mate, before_start, before, after_start, after, net_start, net, pin_start, pin, head,
                following, mark, stamp, who, where, what, moves,
            )  # fmt: skip
            if end == moves:
                break
            b = where[moves]
            for i in range(moves, end):
                v, d, u = who[i], where[i], what[i]
                where[i], what[i] = place[v], unit[v]
                shift(
                    v, d, u, place, unit, held, head, following, previous, outer, size, before_start, before,
                    after_start, after,
                )  # fmt: skip
            moves = end
            if held[b] <= room[b] and draw_unit(rng) > SWAP:
                break
            v = -1
            for _ in range(4 * len(sites)):
                u = draw_below(rng, n)
                if place[u] == b and mark[group[u]] != stamp:
                    v = u
                    break
            if v < 0:
                break
            back = a if draw_unit(rng) < BACK and a != b else -1
        if moves == 0:
            continue
        # The energy up to which the move is accepted is drawn first, so that hopeless moves are not timed.
        limit = energy - temperature * np.log(draw_unit(rng))
        violation = violation_of(held, room, violation_scale)
        accepted = strict * (violation - excess) < limit - energy * (1 - LARGEST_GAIN)
        fresh = np.inf
        for turn in range(2):  # first with the old lengths, which shows cycles, then with the new ones
            if not accepted:
                break
            for i in range(moves * turn):
                recost(
                    who[i], unit[who[i]], seat, inside, ledger, time, home, net_start, net, pin_start, cost,
                    source,
                )  # fmt: skip
            latest, total = span(
                place, unit, ledger, head, following, outer, time, home, after_start, after, communication,
                missing, ready, behind, stack,
            )  # fmt: skip
            if turn == 0:
                accepted = latest < np.inf
                continue
            fresh = latest + tie * total + strict * violation
            accepted = fresh <= limit
            if not accepted:
                for i in range(moves - 1, -1, -1):
                    recost(
                        who[i], what[i], seat, inside, ledger, time, home, net_start, net, pin_start, cost,
                        source,
                    )  # fmt: skip
        if accepted:
            energy, excess = fresh, violation
            if latest < value[0] * (1 - ROUNDING) and violation <= 0.0:
                value[0] = latest
                overwrite(best[0], place)
                overwrite(best[1], unit)
            continue
        for i in range(moves - 1, -1, -1):
            shift(
                who[i], where[i], what[i], place, unit, held, head, following, previous, outer, size,
                before_start, before, after_start, after,
            )  # fmt: skip
