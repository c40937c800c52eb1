"""Simulated annealing over the devices and units of nodes, compiled.

Random moves of nodes to other units, compiled.
"""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit, overwrite
from partitioner.methods.latency._timing_core import recost, refresh, shift, span
from partitioner.methods.local_search.kernel import TWO, draw_below, draw_unit

AFTER, BEFORE, AROUND = 1, -1, 0


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def enrol(model, scratch, v, moves):
    """Add the group of node `v` to the nodes that move; return their number."""
    g = model.group[v]
    scratch.mark[g] = scratch.turn[0]
    for i in range(model.mate_start[g], model.mate_start[g + 1]):
        scratch.who[moves] = model.mate[i]
        moves += 1
    return moves


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def gather(model, state, scratch, rng, v, way, goal, begin):
    """Write the group of node `v`, and neighbours that move with it, to `who` from `begin` on.

    The neighbours are the successors in the same unit (`way` is AFTER), the predecessors (BEFORE) or both
    (AROUND); in the other pass the directions are exchanged. On a CPU they are neighbours on the same CPU. At
    more than `goal` nodes a cluster (AROUND) ends, and a closure (AFTER or BEFORE) is given up.

    Returns
    -------
    tuple of int
        The end of the nodes in `who`, and a neighbour of them in another unit, -1 if there is none.
    """
    place, unit, group, late, units = state.place, state.unit, model.group, model.late, len(model.home)
    end, i, neighbours, neighbour = enrol(model, scratch, v, begin), begin, 0, -1
    while i < end:
        x = scratch.who[i]
        i += 1
        turn = way if late[x] == late[v] else -way
        for side in (AFTER, BEFORE):
            if turn == -side:
                continue
            first = model.after_start[x] if side == AFTER else model.before_start[x]
            last = model.after_start[x + 1] if side == AFTER else model.before_start[x + 1]
            for k in range(first, last):
                y = model.after[k] if side == AFTER else model.before[k]
                if scratch.mark[group[y]] == scratch.turn[0]:
                    continue
                if unit[y] == unit[x] or (unit[x] >= units and place[y] == place[x]):
                    if end - begin >= goal and way != AROUND:
                        return begin, -1
                    if end - begin < goal:
                        end = enrol(model, scratch, y, end)
                else:
                    neighbours += 1
                    if draw_below(rng, neighbours) == 0:
                        neighbour = y
    return end, neighbour


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def _is_torn(model, state, scratch, v, begin, end):
    """Whether paths lead from nodes that stay in the unit of `v` to nodes that move, and back."""
    unit, group, mark, turn = state.unit, model.group, scratch.mark, scratch.turn[0]
    enters, leaves = False, False
    if unit[v] < len(model.home):
        for i in range(begin, end):
            x = scratch.who[i]
            if unit[x] == unit[v]:
                for k in range(model.before_start[x], model.before_start[x + 1]):
                    y = model.before[k]
                    enters = enters or (unit[y] == unit[v] and mark[group[y]] != turn)
                for k in range(model.after_start[x], model.after_start[x + 1]):
                    y = model.after[k]
                    leaves = leaves or (unit[y] == unit[v] and mark[group[y]] != turn)
                if enters and leaves:
                    return True
    return False


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def propose(model, state, scratch, control, rng, v, back, begin):
    """Draw a move of node `v` to another unit.

    The shares `mix` say what moves: the group of `v`; the group and all nodes that follow or precede it in
    its unit; a connected cluster; the whole unit; all nodes that share a net with it. The target is mostly
    the unit of a neighbour. If devices have several slots, `v` alone may change its slot.

    Parameters
    ----------
    model, state, scratch, control, rng
        See :func:`anneal`.
    back
        The device to move to, -1 for any.
    begin
        The nodes, their new devices and their new units are written to `scratch` from here on.

    Returns
    -------
    int
        The end of the move in `who`; `begin` if there is none.
    """
    place, unit, group, mark = state.place, state.unit, model.group, scratch.mark
    who, where, what = scratch.who, scratch.where, scratch.what
    mix, turn = control.mix, scratch.turn[0]
    base, late, slots = model.base, model.late, model.slots
    units, n, a = len(model.home), len(place), place[v]
    pick, neighbour, end = draw_unit(rng), -1, begin
    if slots > 1 and base[a] >= 0 and pick < mix[0] and draw_below(rng, TWO) == 0:
        mark[group[v]] = turn
        u = base[a] + late[v] * slots + draw_below(rng, slots)
        who[begin], where[begin], what[begin] = v, a, u
        return begin if u == unit[v] else begin + 1
    # What moves: all nodes of a net, a whole unit, or nodes gathered around `v`.
    nets = model.net_start[v + 1] - model.net_start[v]
    by_net = pick > mix[4] and nets > 0
    if by_net:
        e = model.net[model.net_start[v] + draw_below(rng, nets)]
        first, last = model.pin_start[e], model.pin_start[e + 1]
        for _ in range(control.tries):
            neighbour = model.pin[first + draw_below(rng, last - first)]
            if unit[neighbour] != unit[v]:
                break
        for i in range(first, last):
            x = model.pin[i]
            if mark[group[x]] != turn and place[x] != place[neighbour]:
                end = enrol(model, scratch, x, end)
    elif pick > mix[3] and unit[v] < units:
        x = state.head[unit[v]]
        while x >= 0:
            if mark[group[x]] != turn:
                end = enrol(model, scratch, x, end)
            x = state.following[x]
    else:
        way, goal = AROUND, 1
        if pick > mix[0]:
            goal = int(2.0 ** (1 + draw_unit(rng) * (np.log2(n + 1) - 1)))
            way = AFTER if pick <= mix[1] else BEFORE if pick <= mix[2] else AROUND
        end, neighbour = gather(model, state, scratch, rng, v, way, goal, begin)
    if end == begin or _is_torn(model, state, scratch, v, begin, end):
        return begin
    # Where it moves: back, to the unit of a neighbour, or to any device.
    slot = draw_below(rng, slots)
    if back >= 0:
        b = back
    elif neighbour >= 0 and (by_net or draw_unit(rng) < control.to_neighbour):
        b = place[neighbour]
        if unit[neighbour] < units:
            slot = (unit[neighbour] - base[b]) % slots
    else:
        b = model.sites[draw_below(rng, len(model.sites))]
    other = slots - 1 - slot if draw_below(rng, TWO) == 0 else draw_below(rng, slots)
    kept = begin  # nodes that are there already are left out
    for i in range(begin, end):
        x = who[i]
        u = units + x
        if base[b] >= 0:
            u = base[b] + late[x] * slots + (slot if late[x] == late[v] else other)
        if not model.allowed[x, b]:
            return begin
        stays = place[x] == b and (a != b or by_net or unit[x] != unit[v])
        if u != unit[x] and not stays:
            who[kept], where[kept], what[kept] = x, b, u
            kept += 1
    return kept


ROUNDING = 1e-9
# Not Python ints: numba has other types for these and would compile every kernel once more for them.
NONE_YET: int = np.int64(0)  # type: ignore[assignment]
ANYWHERE: int = np.int64(-1)  # type: ignore[assignment]


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def violation_of(model, held):
    """Return the memory above the devices' limits, in units of `violation_scale`."""
    violation = 0.0
    for d in range(len(held)):
        violation += max(0.0, held[d] - model.room[d])
    return violation / model.violation_scale


@njit(cache=True, nogil=True, _nrt=False)
def anneal(model, state, scratch, control, rng, best, value, budget):
    """Propose `budget` moves and accept or reject them as annealing does.

    A move that exceeds the memory of a device is mostly extended by a move of other nodes from there. A move
    after which units wait for each other in a cycle is undone.

    Parameters
    ----------
    model, state, scratch, control
        See :mod:`partitioner.methods.latency._timing_core`; the state is changed.
    rng
        Shape (1,): the state of the random numbers, which is changed.
    best, value
        Shapes (2, n) and (1,): the devices and units of the best layout that obeys the limits, and its
        latency; both are overwritten by better ones.
    budget
        The number of moves.
    """
    refresh(model, state)
    place, unit, held = state.place, state.unit, state.held
    who, where, what, mark = scratch.who, scratch.where, scratch.what, scratch.mark
    temperature, strict, tie = control.temperature, control.strict, control.tie
    n, sites = len(place), len(model.sites)
    mark[:] = 0
    latest, total = span(model, state, scratch)
    excess = violation_of(model, held)
    energy = latest + tie * total + strict * excess
    # A move is a chain of proposals, each of which frees memory on the device of the last one.
    for turn in range(1, budget + 1):
        scratch.turn[0] = turn
        v, back, moves = draw_below(rng, n), ANYWHERE, NONE_YET
        a = place[v]
        for _ in range(control.links):
            end = propose(model, state, scratch, control, rng, v, back, moves)
            if end == moves:
                break
            b = where[moves]
            for i in range(moves, end):
                v, d, u = who[i], where[i], what[i]
                where[i], what[i] = place[v], unit[v]
                shift(model, state, v, d, u)
            moves = end
            if held[b] <= model.room[b] and draw_unit(rng) > control.swap:
                break
            v = -1
            for _ in range(4 * sites):
                u = draw_below(rng, n)
                if place[u] == b and mark[model.group[u]] != turn:
                    v = u
                    break
            if v < 0:
                break
            back = a if draw_unit(rng) < control.back and a != b else -1
        if moves == 0:
            continue
        # The energy up to which the move is accepted is drawn first, so that hopeless moves are not timed.
        limit = energy - temperature * np.log(draw_unit(rng))
        violation = violation_of(model, held)
        accepted = strict * (violation - excess) < limit - energy * (1 - control.largest_gain)
        fresh = np.inf
        for again in range(2):  # first with the old lengths, which shows cycles, then with the new ones
            if not accepted:
                break
            for i in range(moves * again):
                recost(model, state, who[i], unit[who[i]])
            latest, total = span(model, state, scratch)
            if again == 0:
                accepted = latest < np.inf
                continue
            fresh = latest + tie * total + strict * violation
            accepted = fresh <= limit
            if not accepted:
                for i in range(moves - 1, -1, -1):
                    recost(model, state, who[i], what[i])
        if accepted:
            energy, excess = fresh, violation
            if latest < value[0] * (1 - ROUNDING) and violation <= 0.0:
                value[0] = latest
                overwrite(best[0], place)
                overwrite(best[1], unit)
            continue
        for i in range(moves - 1, -1, -1):
            shift(model, state, who[i], where[i], what[i])
