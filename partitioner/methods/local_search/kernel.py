"""Simulated annealing over the devices of supernodes, compiled.

The precedence of stages of a chain during the search, compiled: device d runs stage d.
"""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit, overwrite
from partitioner.methods.communication_kernel import joint_load
from partitioner.methods.local_search.model import (
    AHEAD,
    BARRED,
    BEHIND,
    BUSY,
    HELD,
    INTO,
    LOAD,
    OUT,
    ROOM,
    SCORE,
    TRANSFER_FACTOR,
    VIOLATION,
    leaves_and_returns,
)

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


@njit(cache=True)
def refresh(model, state):
    """Compute all sums of the state except the scores from the devices; return the largest load."""
    place, inside, ledger = state.place, state.inside, state.ledger
    inside[:] = 0
    ledger[:] = 0.0
    overwrite(ledger[:, ROOM], model.room)
    overwrite(ledger[:, TRANSFER_FACTOR], model.transfer_factor)
    for v in range(len(place)):
        d = place[v]
        ledger[d, HELD] += model.size[v]
        ledger[d, BARRED] += not model.allowed[v, d]
        for w in range(model.passes):
            ledger[d, BUSY + w] += model.time[v, d, w]
        for i in range(model.net_start[v], model.net_start[v + 1]):
            inside[model.net[i, 0], d, 0] += 1
            if model.passes == 2:
                inside[model.net[i, 0], d, 1] += model.net[i, 1] == 0
    for e in range(len(model.cost)):
        pins, source, made = model.made[e]
        here = place[source]
        if inside[e, here, 0] < pins:
            ledger[here, OUT + made] += model.cost[e]
            for d in range(len(ledger)):
                if d != here and inside[e, d, 0] > 0:
                    late = model.passes == 2 and inside[e, d, 1] == 0
                    ledger[d, INTO + int(late)] += model.cost[e]
    most = 0.0
    for d in range(len(ledger)):
        for w in range(model.passes):
            ledger[d, LOAD + w] = load_of(ledger, d, w, model.communication)
            most = max(most, ledger[d, LOAD + w])
    return most


@njit(cache=True, inline="always")
def load_of(ledger, d, w, communication):
    """Return the load of device `d` in pass `w`."""
    busy, transfer_factor = ledger[d, BUSY + w], ledger[d, TRANSFER_FACTOR]
    if transfer_factor == 0.0:
        return busy
    into, out = transfer_factor * ledger[d, INTO + w], transfer_factor * ledger[d, OUT + w]
    return joint_load(busy, into, out, communication)


@njit(cache=True, inline="always")
def rate(ledger, d, communication, passes, scale, violation_scale, doublings):
    """Update the load of device `d`, its score and its violation."""
    for w in range(passes):
        load = load_of(ledger, d, w, communication)
        ledger[d, LOAD + w] = load
        x = load / scale
        for _ in range(doublings):
            x *= x
        ledger[d, SCORE + w] = x
    ledger[d, VIOLATION] = ledger[d, BARRED] + max(0.0, ledger[d, HELD] - ledger[d, ROOM]) / violation_scale


@njit(cache=True, inline="always")
def energy_of(ledger, passes, scale, strict, tie, doublings):
    """Return the energy: a power mean of the loads, a small share of their sum, a penalty for violations."""
    energy = 0.0
    for w in range(passes):
        powers, loads = 0.0, 0.0
        for d in range(len(ledger)):
            powers += ledger[d, SCORE + w]
            loads += ledger[d, LOAD + w]
        for _ in range(doublings):
            powers = np.sqrt(powers)
        energy += powers * scale + tie * loads
    violation = 0.0
    for d in range(len(ledger)):
        violation += ledger[d, VIOLATION]
    return energy + strict * scale * violation


@njit(cache=True, inline="always")
def value_and_violation(ledger):
    """Return the objective, and the violation of limits by all devices."""
    first, second, violation = 0.0, 0.0, 0.0
    for d in range(len(ledger)):
        first = max(first, ledger[d, LOAD])
        second = max(second, ledger[d, LOAD + 1])
        violation += ledger[d, VIOLATION]
    return first + second, violation


@njit(cache=True, inline="always")
def shift(v, b, place, time, size, allowed, net_start, net, cost, made, passes, inside, ledger):
    """Move supernode `v` to device `b` and update the sums of both devices; their loads are not updated."""
    a = place[v]
    for i in range(net_start[v], net_start[v + 1]):
        e = net[i, 0]
        c, pins, source, when = cost[e], made[e, 0], made[e, 1], made[e, 2]
        here = place[source]
        late_a = passes == 2 and inside[e, a, 1] == 0
        late_b = passes == 2 and inside[e, b, 1] == 0
        if inside[e, a, 0] < pins:
            ledger[a, OUT + when if here == a else INTO + int(late_a)] -= c
            if inside[e, b, 0] > 0:
                ledger[b, OUT + when if here == b else INTO + int(late_b)] -= c
        inside[e, a, 0] -= 1
        inside[e, b, 0] += 1
        if passes == 2 and net[i, 1] == 0:
            inside[e, a, 1] -= 1
            inside[e, b, 1] += 1
            late_a, late_b = inside[e, a, 1] == 0, False
        if source == v:
            here = b
        if inside[e, b, 0] < pins:
            ledger[b, OUT + when if here == b else INTO + int(late_b)] += c
            if inside[e, a, 0] > 0:
                ledger[a, OUT + when if here == a else INTO + int(late_a)] += c
    for w in range(passes):
        ledger[a, BUSY + w] -= time[v, a, w]
        ledger[b, BUSY + w] += time[v, b, w]
    ledger[a, HELD] -= size[v]
    ledger[b, HELD] += size[v]
    ledger[a, BARRED] -= not allowed[v, a]
    ledger[b, BARRED] += not allowed[v, b]
    place[v] = b


MOST = 24  # supernodes that follow one


@njit(cache=True)
def follow(who, where, place, near_start, near, stamp, mark):
    """Add to the move of a supernode those that must move with it, and return how many move; 0 if too many.

    If it moves to a later stage, its successors in stages before that move there as well; if it moves to an
    earlier one, its predecessors do.

    Parameters
    ----------
    who, where
        The supernode and its new device are in the first places; the others are written behind.
    place, near_start, near
        See :class:`PlacementState` and :class:`PlacementModel`.
    stamp, mark
        A number not used before, and scratch space of shape (n,).
    """
    d = where[0]
    later = d > place[who[0]]
    side = AHEAD if later else BEHIND
    mark[who[0]] = stamp
    moves, i = 1, 0
    while i < moves:
        v = who[i]
        for j in range(near_start[side, v], near_start[side, v + 1]):
            w = near[side, j]
            if mark[w] == stamp or place[w] == d or (place[w] < d) != later:
                continue
            if moves == MOST:
                return 0
            mark[w] = stamp
            who[moves], where[moves] = w, d
            moves += 1
        i += 1
    return moves


@njit(cache=True, inner=True)
def turns_back(who, moves, place, near_start, near):
    """Whether an edge of one of the first `moves` supernodes of `who` leads to an earlier stage."""
    for i in range(moves):
        v = who[i]
        for j in range(near_start[AHEAD, v], near_start[AHEAD, v + 1]):
            if place[near[AHEAD, j]] < place[v]:
                return True
        for j in range(near_start[BEHIND, v], near_start[BEHIND, v + 1]):
            if place[near[BEHIND, j]] > place[v]:
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
    near_start, near = model.near_start, model.near
    ordered = near_start.shape[1] > 1
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
    # Each turn proposes a move, makes it shift by shift, and keeps the prefix that is accepted.
    while shifts < budget:
        stamp += 1
        moves, any_prefix = propose(
            n, devices, rng, mix, ledger, place, net_start, net, pin_start, pin, cost, stamp, mark, attach,
            front, who, where,
        )  # fmt: skip
        if ordered and moves == 1:
            moves = follow(who, where, place, near_start, near, stamp, mark)
            if moves == 0:
                shifts += MOST // 2
                continue
        # `where` holds the old devices from here on, so that shifts can be taken back.
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
        # Take back what is not kept; all of it if the rest breaks a rule of contiguity or order.
        while True:
            first = kept if accepted else 0
            for i in range(last - 1, first - 1, -1):
                v, b = who[i], where[i]
                shift(v, b, place, time, size, allowed, net_start, net, cost, made, passes, inside, ledger)
            last = first
            if not accepted:
                break
            if ordered:
                accepted = not turns_back(who, last, place, near_start, near)
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
                    overwrite(best, place)
                    best[n] = value
    return shifts
