"""Simulated annealing over the devices and units of nodes, compiled."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.latency.kernel.proposals import propose
from partitioner.methods.latency.kernel.span import span
from partitioner.methods.latency.kernel.tracking import recost, refresh, shift
from partitioner.methods.local_search.proposals import draw_below, draw_unit

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
        See :mod:`partitioner.methods.latency.kernel.arrays`; the state is changed.
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
    latest, total = span(
        place, unit, ledger, head, following, outer, time, home, after_start, after, communication, missing,
        ready, behind, stack,
    )  # fmt: skip
    excess = violation_of(held, room, violation_scale)
    energy = latest + tie * total + strict * excess
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
        limit = energy - temperature * np.log(draw_unit(rng))
        violation = violation_of(held, room, violation_scale)
        accepted = strict * (violation - excess) < limit - energy * (1 - LARGEST_GAIN)
        if accepted:
            latest, total = span(
                place, unit, ledger, head, following, outer, time, home, after_start, after, communication,
                missing, ready, behind, stack,
            )  # fmt: skip
            accepted = latest < np.inf
        if accepted:
            for i in range(moves):
                recost(
                    who[i], unit[who[i]], seat, inside, ledger, time, home, net_start, net, pin_start, cost,
                    source,
                )  # fmt: skip
            latest, total = span(
                place, unit, ledger, head, following, outer, time, home, after_start, after, communication,
                missing, ready, behind, stack,
            )  # fmt: skip
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
                best[0], best[1] = place, unit
            continue
        for i in range(moves - 1, -1, -1):
            shift(
                who[i], where[i], what[i], place, unit, held, head, following, previous, outer, size,
                before_start, before, after_start, after,
            )  # fmt: skip
