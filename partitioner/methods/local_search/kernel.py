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

# Not Python ints: numba has a type for each of these and would compile the draws once more for it.
TWO, FOUR, UNITS = np.int64(2), np.int64(4), np.int64(1 << 31)


@njit(cache=True, inner=True, _nrt=False)
def draw_below(rng, n):
    """Return a random integer from 0 to n - 1 (xorshift)."""
    x = rng[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    rng[0] = x
    return np.int64(((x >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(cache=True, inner=True, _nrt=False)
def draw_unit(rng):
    """Return a random number above 0 and at most 1."""
    return (draw_below(rng, UNITS) + 1) / UNITS


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def propose(model, state, control, mix, rng, stamp):
    """Draw a move of supernodes to other devices, write it to `who` and `where`, and return its length.

    A supernode `v` is drawn, more often from devices with a large load, and a device, mostly one that holds
    a pin of one of its nets. The shares in `mix` then say what moves there: `v`; `v` in exchange for another
    supernode; a whole net; a cluster around `v`; supernodes of successive numbers (neighbours in a linear
    order), either of the same device or of all; or the two devices exchange everything.

    Parameters
    ----------
    model, state, control, mix, rng
        See :func:`anneal`.
    stamp
        A number not used before.

    Returns
    -------
    tuple of int and bool
        How many supernodes move, and whether every prefix of them is a valid move, too.
    """
    place, ledger, who, where = state.place, state.ledger, state.moves.who, state.moves.where
    net_start, pin_start, pin = model.net_start, model.pin_start, model.pin
    n, devices = len(place), len(ledger)
    v = draw_below(rng, n)
    a = place[v]
    if draw_below(rng, TWO) == 0:
        for _ in range(2):
            u = draw_below(rng, n)
            if ledger[place[u], LOAD] + ledger[place[u], LOAD + 1] > ledger[a, LOAD] + ledger[a, LOAD + 1]:
                v, a = u, place[u]
    b, e, nets = a, -1, net_start[v + 1] - net_start[v]
    if nets > 0:
        e = model.net[net_start[v] + draw_below(rng, nets), 0]
        if draw_below(rng, FOUR) > 0:
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
        greedy = draw_below(rng, FOUR) > 0
        goal = min(goal, control.largest)
        moves = _grow(model, state, control, rng, v, goal, greedy, stamp)
        where[:moves] = b
        return moves, True
    moves = 0
    if pick < mix[4]:
        first = max(0, v - draw_below(rng, goal))
        everything = draw_below(rng, TWO) == 0
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


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def _grow(model, state, control, rng, v, goal, greedy, stamp):
    """Write up to `goal` supernodes of the device of `v`, joined to it by nets, to `who`; return the number.

    If `greedy`, the one that shares the most costly nets with those before comes next; else a random one.
    """
    place, who, front = state.place, state.moves.who, state.moves.front
    mark, attach, pin_start = state.moves.mark, state.moves.attach, model.pin_start
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
        for i in range(model.net_start[u], model.net_start[u + 1]):
            e = model.net[i, 0]
            if pin_start[e + 1] - pin_start[e] > control.widest:
                continue
            for k in range(pin_start[e], pin_start[e + 1]):
                x = model.pin[k]
                if place[x] == place[v]:
                    if mark[x] != stamp:
                        mark[x] = stamp
                        attach[x] = 0.0
                        front[waiting] = x
                        waiting += 1
                    attach[x] += model.cost[e]
    return moves


@njit(cache=True, _nrt=False)
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


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def load_of(ledger, d, w, communication):
    """Return the load of device `d` in pass `w`."""
    busy, transfer_factor = ledger[d, BUSY + w], ledger[d, TRANSFER_FACTOR]
    if transfer_factor == 0.0:
        return busy
    into, out = transfer_factor * ledger[d, INTO + w], transfer_factor * ledger[d, OUT + w]
    return joint_load(busy, into, out, communication)


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def rate(model, ledger, d, scale, doublings):
    """Update the load of device `d`, its score and its violation."""
    for w in range(model.passes):
        load = load_of(ledger, d, w, model.communication)
        ledger[d, LOAD + w] = load
        x = load / scale
        for _ in range(doublings):
            x *= x
        ledger[d, SCORE + w] = x
    above = max(0.0, ledger[d, HELD] - ledger[d, ROOM]) / model.violation_scale
    ledger[d, VIOLATION] = ledger[d, BARRED] + above


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def rate_touched(model, state, control, scale, stamp):
    """Update the loads, scores and violations of the devices that the current move has touched."""
    for d in range(len(state.ledger)):
        if state.moves.touched[d] == stamp:
            rate(model, state.ledger, d, scale, control.doublings)


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def energy_of(model, control, ledger, scale):
    """Return the energy: a power mean of the loads, a small share of their sum, a penalty for violations."""
    energy = 0.0
    for w in range(model.passes):
        powers, loads = 0.0, 0.0
        for d in range(len(ledger)):
            powers += ledger[d, SCORE + w]
            loads += ledger[d, LOAD + w]
        for _ in range(control.doublings):
            powers = np.sqrt(powers)
        energy += powers * scale + control.tie * loads
    violation = 0.0
    for d in range(len(ledger)):
        violation += ledger[d, VIOLATION]
    return energy + control.strict * scale * violation


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def value_and_violation(ledger):
    """Return the objective, and the violation of limits by all devices."""
    first, second, violation = 0.0, 0.0, 0.0
    for d in range(len(ledger)):
        first = max(first, ledger[d, LOAD])
        second = max(second, ledger[d, LOAD + 1])
        violation += ledger[d, VIOLATION]
    return first + second, violation


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def shift(model, state, v, b):
    """Move supernode `v` to device `b` and update the sums of both devices; their loads are not updated."""
    place, inside, ledger, passes = state.place, state.inside, state.ledger, model.passes
    a = place[v]
    for i in range(model.net_start[v], model.net_start[v + 1]):
        e = model.net[i, 0]
        c, pins, source, when = model.cost[e], model.made[e, 0], model.made[e, 1], model.made[e, 2]
        here = place[source]
        late_a = passes == 2 and inside[e, a, 1] == 0
        late_b = passes == 2 and inside[e, b, 1] == 0
        if inside[e, a, 0] < pins:
            ledger[a, OUT + when if here == a else INTO + int(late_a)] -= c
            if inside[e, b, 0] > 0:
                ledger[b, OUT + when if here == b else INTO + int(late_b)] -= c
        inside[e, a, 0] -= 1
        inside[e, b, 0] += 1
        if passes == 2 and model.net[i, 1] == 0:
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
        ledger[a, BUSY + w] -= model.time[v, a, w]
        ledger[b, BUSY + w] += model.time[v, b, w]
    ledger[a, HELD] -= model.size[v]
    ledger[b, HELD] += model.size[v]
    ledger[a, BARRED] -= not model.allowed[v, a]
    ledger[b, BARRED] += not model.allowed[v, b]
    place[v] = b


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def follow(model, state, control, stamp):
    """Add to the move of a supernode those that must move with it, and return how many move; 0 if too many.

    If it moves to a later stage, its successors in stages before that move there as well; if it moves to an
    earlier one, its predecessors do. The supernode and its new device are in the first places of `who` and
    `where`; the others are written behind. The stamp is a number not used before.
    """
    place, who, where, mark = state.place, state.moves.who, state.moves.where, state.moves.mark
    d = where[0]
    later = d > place[who[0]]
    side = AHEAD if later else BEHIND
    mark[who[0]] = stamp
    moves, i = 1, 0
    while i < moves:
        v = who[i]
        for j in range(model.near_start[side, v], model.near_start[side, v + 1]):
            w = model.near[side, j]
            if mark[w] == stamp or place[w] == d or (place[w] < d) != later:
                continue
            if moves == control.followers:
                return 0
            mark[w] = stamp
            who[moves], where[moves] = w, d
            moves += 1
        i += 1
    return moves


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def turns_back(model, state, moves):
    """Whether an edge of one of the first `moves` supernodes of `who` leads to an earlier stage."""
    place, near_start, near = state.place, model.near_start, model.near
    for i in range(moves):
        v = state.moves.who[i]
        for j in range(near_start[AHEAD, v], near_start[AHEAD, v + 1]):
            if place[near[AHEAD, j]] < place[v]:
                return True
        for j in range(near_start[BEHIND, v], near_start[BEHIND, v + 1]):
            if place[near[BEHIND, j]] > place[v]:
                return True
    return False


ROUNDING = 1e-9


@njit(cache=True, nogil=True, _nrt=False)
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
    place, ledger, moved, size = state.place, state.ledger, state.moves, model.size
    who, where, touched, held = moved.who, moved.where, moved.touched, moved.held
    ordered, temperature = model.near_start.shape[1] > 1, control.temperature * scale
    n, regions = len(place), len(model.owner)
    moved.mark[:], touched[:] = 0, 0
    for d in range(len(ledger)):
        rate(model, ledger, d, scale, control.doublings)
    energy = energy_of(model, control, ledger, scale)
    shifts, stamp = 0, 0
    # Each turn proposes a move, makes it shift by shift, and keeps the prefix that is accepted.
    while shifts < budget:
        stamp += 1
        moves, any_prefix = propose(model, state, control, mix, rng, stamp)
        if ordered and moves == 1:
            moves = follow(model, state, control, stamp)
            if moves == 0:
                shifts += control.followers // 2
                continue
        # `where` holds the old devices from here on, so that shifts can be taken back.
        target, kept = np.inf, moves
        for i in range(moves):
            v, b = who[i], where[i]
            a = place[v]
            where[i] = a
            touched[a] = touched[b] = stamp
            shift(model, state, v, b)
            if any_prefix or i == moves - 1:
                rate_touched(model, state, control, scale, stamp)
                fresh = energy_of(model, control, ledger, scale)
                if fresh < target:
                    target, kept = fresh, i + 1
        shifts += max(moves, 1)
        accepted = target <= energy - temperature * np.log(draw_unit(rng))
        last = moves
        # Take back what is not kept; all of it if the rest breaks a rule of contiguity or order.
        while True:
            first = kept if accepted else 0
            for i in range(last - 1, first - 1, -1):
                shift(model, state, who[i], where[i])
            last = first
            if not accepted:
                break
            if ordered:
                accepted = not turns_back(model, state, last)
            elif regions > 0:
                shifts += regions // 8
                accepted = not leaves_and_returns(
                    stamp, touched, model.contiguous, place, model.owner, model.before_start, model.before,
                    moved.away,
                )  # fmt: skip
            if accepted:
                break
        if last < moves:
            rate_touched(model, state, control, scale, stamp)
        if accepted:
            energy = target
            value, violation = value_and_violation(ledger)
            if value < best[n] * (1 - ROUNDING) and violation <= ROUNDING:
                held[:] = 0.0
                for v in range(n):
                    held[place[v]] += size[v]
                within = True
                for d in range(len(held)):
                    within = within and held[d] <= model.room[d]
                if within:
                    overwrite(best, place)
                    best[n] = value
    return shifts
