"""Moves of supernodes and of kinds between the stages of a chain until no load exceeds a limit, compiled."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit, overwrite
from partitioner.methods.local_search.kernel import FOUR, draw_below, draw_unit
from partitioner.problem.arrays import Floats, Ints


class ExchangeModel(NamedTuple):
    """The costs of stages.

    Parameters
    ----------
    work
        Shape (n, K): the time of every supernode on every kind.
    size, room
        Shape (n,): memory of supernodes; shape (K,): memory of a device.
    before_start, before, after_start, after
        Predecessors and successors of supernodes.
    """

    work: Floats
    size: Floats
    room: Floats
    before_start: Ints
    before: Ints
    after_start: Ints
    after: Ints


class Stages(NamedTuple):
    """Stages of a chain, some of which may be empty.

    Parameters
    ----------
    place
        Shape (n,): the stage of every supernode.
    kind
        Shape (D,): the kind of the device of every stage.
    load, held
        Shape (D,): the time and the memory of every stage.
    """

    place: Ints
    kind: Ints
    load: Floats
    held: Floats


class Heat(NamedTuple):
    """How much worse a change may be, as a part of the limit.

    Parameters
    ----------
    first, last
        The temperatures at the beginning and the end of moves of supernodes.
    kinds
        The temperature of exchanges of kinds.
    """

    first: float
    last: float
    kinds: float


@njit(cache=True, inner=True, _nrt=False)
def excess(load, held, limit, room):
    """Return by how much a stage exceeds its limits, as a part of them."""
    over = max(0.0, load / limit - 1.0)
    return over + held / max(room, 1e-300) - 1.0 if held > room else over


@njit(cache=True, inline="always")
def total_excess(model, stages, limit):
    """Compute the loads of all stages, and return the sum of what they exceed."""
    place, kind, load, held = stages
    load[:] = 0.0
    held[:] = 0.0
    for v in range(len(place)):
        load[place[v]] += model.work[v, kind[place[v]]]
        held[place[v]] += model.size[v]
    energy = 0.0
    for s in range(len(kind)):
        energy += excess(load[s], held[s], limit, model.room[kind[s]])
    return energy


@njit(cache=True, inline="always")
def swap_stages(s, place, kind, load, held, after_start, after):
    """Let stage `s + 1` come before stage `s` if no edge leads from one to the other."""
    for v in range(len(place)):
        if place[v] == s:
            for i in range(after_start[v], after_start[v + 1]):
                if place[after[i]] == s + 1:
                    return
    for v in range(len(place)):
        if place[v] == s:
            place[v] = s + 1
        elif place[v] == s + 1:
            place[v] = s
    kind[s], kind[s + 1] = kind[s + 1], kind[s]
    load[s], load[s + 1] = load[s + 1], load[s]
    held[s], held[s + 1] = held[s + 1], held[s]


@njit(cache=True, inner=True)
def move_supernodes(model, stages, limit, energy, heat, moves, rng):
    """Move supernodes to other stages, exchange pairs, and order stages anew; return the excess that is left.

    Every move keeps the precedence. One that raises the excess is made with the probability of annealing,
    whose temperature falls from the first one of `heat` to the last. It ends where nothing is exceeded.
    """
    work, size, room, before_start, before, after_start, after = model
    place, kind, load, held = stages
    n, devices = len(place), len(kind)
    temperature, factor = heat.first, (heat.last / heat.first) ** (1.0 / moves)
    for _ in range(moves):
        if energy <= 1e-12:
            break
        temperature *= factor
        pick = draw_unit(rng)
        if pick > 0.97:
            swap_stages(draw_below(rng, devices - 1), place, kind, load, held, after_start, after)
            continue
        v, u = draw_below(rng, n), -1
        s = place[v]
        for _ in range(3):  # rather a supernode of a stage that takes too long
            if load[s] > limit:
                break
            v = draw_below(rng, n)
            s = place[v]
        if pick > 0.5:
            u = draw_below(rng, n)
            t = place[u]
            if s == t:
                continue
            if s > t:
                v, u, s, t = u, v, t, s
        else:
            # The stages between the last predecessor's and the first successor's.
            low, high = 0, devices - 1
            for i in range(before_start[v], before_start[v + 1]):
                low = max(low, place[before[i]])
            for i in range(after_start[v], after_start[v + 1]):
                high = min(high, place[after[i]])
            if low == high:
                continue
            t = low + draw_below(rng, high - low)
            t += t >= s
        p, q = kind[s], kind[t]
        load_s, load_t = load[s] - work[v, p], load[t] + work[v, q]
        held_s, held_t = held[s] - size[v], held[t] + size[v]
        if u >= 0:
            load_s, load_t = load_s + work[u, p], load_t - work[u, q]
            held_s, held_t = held_s + size[u], held_t - size[u]
        rise = excess(load_s, held_s, limit, room[p]) + excess(load_t, held_t, limit, room[q])
        rise -= excess(load[s], held[s], limit, room[p]) + excess(load[t], held[t], limit, room[q])
        if rise > -temperature * np.log(draw_unit(rng)):
            continue
        if u >= 0:
            # `v` becomes later and `u` earlier: no edge may turn back.
            free = True
            for i in range(after_start[v], after_start[v + 1]):
                free = free and after[i] != u and place[after[i]] >= t
            for i in range(before_start[u], before_start[u + 1]):
                free = free and place[before[i]] <= s
            if not free:
                continue
            place[u] = s
        place[v] = t
        load[s], load[t], held[s], held[t] = load_s, load_t, held_s, held_t
        energy += rise
    return energy


@njit(cache=True, inline="always")
def exchange_kinds(kind, rng):
    """Exchange the kinds of two or three stages, or move one kind to another place in the order."""
    devices = len(kind)
    a, b, c = draw_below(rng, devices), draw_below(rng, devices), draw_below(rng, devices)
    pick = draw_below(rng, FOUR)
    if pick < 2:
        kind[a], kind[b] = kind[b], kind[a]
    elif pick == 2:
        if a != b and b != c and a != c:
            kind[a], kind[b], kind[c] = kind[b], kind[c], kind[a]
    else:
        moved, step = kind[a], 1 if a < b else -1
        for s in range(a, b, step):
            kind[s] = kind[s + step]
        kind[b] = moved


@njit(cache=True, nogil=True)
def exchange(model, stages, limit, heat, rounds, moves, rng):
    """Exchange kinds of stages, move supernodes after each exchange, and keep it if the excess is no larger.

    Parameters
    ----------
    model, heat
        See :class:`ExchangeModel` and :class:`Heat`.
    stages
        See :class:`Stages`; changed.
    limit
        The largest load that is allowed.
    rounds, moves
        The most exchanges of kinds, and the moves of supernodes after each.
    rng
        Shape (1,): the state of the random numbers, which is changed.

    Returns
    -------
    float
        The excess of the stages; about 0 if no limit is exceeded.
    """
    place, kind, load, held = stages
    energy = total_excess(model, stages, limit)
    trial = Stages(place.copy(), kind.copy(), load.copy(), held.copy())
    for _ in range(rounds):
        if energy <= 1e-12:
            break
        overwrite(trial.place, place)
        overwrite(trial.kind, kind)
        exchange_kinds(trial.kind, rng)
        fresh = total_excess(model, trial, limit)
        fresh = move_supernodes(model, trial, limit, fresh, heat, moves, rng)
        if fresh - energy <= -heat.kinds * np.log(draw_unit(rng)):
            energy = fresh
            overwrite(place, trial.place)
            overwrite(kind, trial.kind)
    return energy
