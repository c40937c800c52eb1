"""Simulated annealing over the devices of supernodes, compiled.

The precedence of stages of a chain during the search, compiled: device d runs stage d.
"""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.local_search.contiguity import leaves_and_returns
from partitioner.methods.local_search.proposals import draw_unit, propose
from partitioner.methods.local_search.tracking import energy_of, rate, refresh, shift, value_and_violation

MOST = 24  # supernodes that follow one


@njit(cache=True)
def follow(who, where, place, ahead_start, ahead, behind_start, behind, stamp, mark):
    """Add to the move of a supernode those that must move with it, and return how many move; 0 if too many.

    If it moves to a later stage, its successors in stages before that move there as well; if it moves to an
    earlier one, its predecessors do.

    Parameters
    ----------
    who, where
        The supernode and its new device are in the first places; the others are written behind.
    place, ahead_start, ahead, behind_start, behind
        See :class:`PlacementState` and :class:`PlacementModel`.
    stamp, mark
        A number not used before, and scratch space of shape (n,).
    """
    d = where[0]
    later = d > place[who[0]]
    start, near = (ahead_start, ahead) if later else (behind_start, behind)
    mark[who[0]] = stamp
    moves, i = 1, 0
    while i < moves:
        v = who[i]
        for j in range(start[v], start[v + 1]):
            w = near[j]
            if mark[w] == stamp or place[w] == d or (place[w] < d) != later:
                continue
            if moves == MOST:
                return 0
            mark[w] = stamp
            who[moves], where[moves] = w, d
            moves += 1
        i += 1
    return moves


@njit(cache=True)
def turns_back(who, moves, place, ahead_start, ahead, behind_start, behind):
    """Whether an edge of one of the first `moves` supernodes of `who` leads to an earlier stage."""
    for i in range(moves):
        v = who[i]
        for j in range(ahead_start[v], ahead_start[v + 1]):
            if place[ahead[j]] < place[v]:
                return True
        for j in range(behind_start[v], behind_start[v + 1]):
            if place[behind[j]] > place[v]:
                return True
    return False


ROUNDING = 1e-9


@njit(cache=True, nogil=True)
def anneal(model, state, control, mix, rng, best, budget):
    """Propose moves and accept or reject them as annealing does, until `budget` shifts of supernodes.

    A move of several supernodes is applied one shift at a time and undone if it is not accepted; of a move
    of a cluster the prefix with the smallest energy is kept.

    Parameters
    ----------
    model, state, control
        See :class:`PlacementModel`, :class:`PlacementState` and :class:`AnnealingControl`; the state is
        changed.
    mix
        Shape (5,): cumulated shares of the first five kinds of moves; the rest up to 1 is that of the sixth.
    rng
        Shape (1,): the state of the random numbers, which is changed.
    best
        Shape (n + 1,): the best devices so far and their value, overwritten by better ones that obey the
        limits.
    budget
        Shifts after which to end; a check of contiguity counts as several.

    Returns
    -------
    int
        The number of shifts made.
    """
    scale = max(refresh(model, state), 1e-300)
    time, size, violation_scale, allowed = model.time, model.size, model.violation_scale, model.allowed
    net_start, net, pin_start, pin = model.net_start, model.net, model.pin_start, model.pin
    cost, made, communication, passes = model.cost, model.made, model.communication, model.passes
    contiguous, owner, before_start, before = model.contiguous, model.owner, model.before_start, model.before
    ahead_start, ahead, behind_start, behind = (
        model.ahead_start, model.ahead, model.behind_start, model.behind
    )  # fmt: skip
    ordered = len(ahead_start) > 1
    place, inside, ledger = state.place, state.inside, state.ledger
    strict, tie, doublings = control.strict, control.tie, control.doublings
    temperature = control.temperature * scale
    n, devices = len(place), len(ledger)
    who, where, front = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), np.empty(n, np.int64)
    attach, mark, touched = np.zeros(n), np.zeros(n, np.int64), np.zeros(devices, np.int64)
    away, held = np.zeros(len(owner), np.bool_), np.empty(devices)
    for d in range(devices):
        rate(ledger, d, communication, passes, scale, violation_scale, doublings)
    energy = energy_of(ledger, passes, scale, strict, tie, doublings)
    shifts, stamp = 0, 0
    while shifts < budget:
        stamp += 1
        moves, any_prefix = propose(
            n, devices, rng, mix, ledger, place, net_start, net, pin_start, pin, cost, stamp, mark, attach,
            front, who, where,
        )  # fmt: skip
        if ordered and moves == 1:
            moves = follow(who, where, place, ahead_start, ahead, behind_start, behind, stamp, mark)
            if moves == 0:
                shifts += MOST // 2
                continue
        target, kept = np.inf, moves
        for i in range(moves):
            v, b = who[i], where[i]
            a = place[v]
            where[i] = a
            touched[a] = touched[b] = stamp
            shift(v, b, place, time, size, allowed, net_start, net, cost, made, passes, inside, ledger)
            if any_prefix or i == moves - 1:
                for d in range(devices):
                    if touched[d] == stamp:
                        rate(ledger, d, communication, passes, scale, violation_scale, doublings)
                fresh = energy_of(ledger, passes, scale, strict, tie, doublings)
                if fresh < target:
                    target, kept = fresh, i + 1
        shifts += max(moves, 1)
        accepted = target <= energy - temperature * np.log(draw_unit(rng))
        last = moves
        while True:
            first = kept if accepted else 0
            for i in range(last - 1, first - 1, -1):
                v, b = who[i], where[i]
                shift(v, b, place, time, size, allowed, net_start, net, cost, made, passes, inside, ledger)
            last = first
            if not accepted:
                break
            if ordered:
                accepted = not turns_back(who, last, place, ahead_start, ahead, behind_start, behind)
            elif len(owner) > 0:
                shifts += len(owner) // 8
                accepted = not leaves_and_returns(
                    stamp, touched, contiguous, place, owner, before_start, before, away
                )
            if accepted:
                break
        if last < moves:
            for d in range(devices):
                if touched[d] == stamp:
                    rate(ledger, d, communication, passes, scale, violation_scale, doublings)
        if accepted:
            energy = target
            value, violation = value_and_violation(ledger)
            if value < best[n] * (1 - ROUNDING) and violation <= ROUNDING:
                held[:] = 0.0
                for v in range(n):
                    held[place[v]] += size[v]
                if (held <= model.room).all():
                    best[:n] = place
                    best[n] = value
    return shifts
