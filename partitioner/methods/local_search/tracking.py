"""The costs of a placement, updated net by net when supernodes move, compiled.

The helpers take plain arrays and are inlined, because passing a tuple of arrays to a compiled function
takes more time than the function itself.
"""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import joint_load
from partitioner.methods.local_search.arrays import (
    BARRED,
    BUSY,
    HELD,
    INTO,
    LOAD,
    OUT,
    ROOM,
    SCORE,
    TRANSFER_FACTOR,
    VIOLATION,
)  # fmt: skip


@njit(cache=True)
def refresh(model, state):
    """Compute all sums of the state except the scores from the devices; return the largest load."""
    place, inside, ledger = state.place, state.inside, state.ledger
    inside[:] = 0
    ledger[:] = 0.0
    ledger[:, ROOM] = model.room
    ledger[:, TRANSFER_FACTOR] = model.transfer_factor
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
