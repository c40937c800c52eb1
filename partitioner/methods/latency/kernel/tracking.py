"""The costs of units and the edges between them, computed from scratch or updated as nodes move, compiled."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

from partitioner.base.compiled import njit
from partitioner.methods.latency.kernel.arrays import BUSY, INTO, OUT


@njit(cache=True, nogil=True)
def refresh(model, state):
    """Compute all sums of a state from the devices and the units of the nodes."""
    place, unit, inside, ledger = state.place, state.unit, state.inside, state.ledger
    units = len(ledger)
    state.seat[:] = unit
    inside[:], ledger[:], state.held[:], state.head[:], state.outer[:] = 0, 0.0, 0.0, -1, 0
    for v in range(len(place)):
        u = unit[v]
        state.held[place[v]] += model.size[v]
        enlist(v, u, state.head, state.following, state.previous)
        if u < units:
            ledger[u, BUSY] += model.time[v, place[v]]
        for i in range(model.before_start[v], model.before_start[v + 1]):
            state.outer[u] += unit[model.before[i]] != u
        for i in range(model.net_start[v], model.net_start[v + 1]):
            if u < units:
                inside[model.net[i], u] += 1
    for e in range(len(inside)):
        pins, home = model.pin_start[e + 1] - model.pin_start[e], unit[model.source[e]]
        for u in range(units):
            if 0 < inside[e, u] < pins:
                ledger[u, OUT if u == home else INTO] += model.cost[e]


@njit(cache=True, inline="always")
def enlist(v, u, head, following, previous):
    """Add a node to the list of a unit."""
    following[v], previous[v] = head[u], -1
    if head[u] >= 0:
        previous[head[u]] = v
    head[u] = v


@njit(cache=True, inline="always")
def strike(v, u, head, following, previous):
    """Remove a node from the list of its unit."""
    if previous[v] >= 0:
        following[previous[v]] = following[v]
    else:
        head[u] = following[v]
    if following[v] >= 0:
        previous[following[v]] = previous[v]


@njit(cache=True, inline="always")
def shift(
    v, d, b, place, unit, held, head, following, previous, outer, size, before_start, before, after_start,
    after,
):  # fmt: skip
    """Move node `v` to device `d` and unit `b`, without updating the ledger (see :func:`recost`)."""
    a = unit[v]
    for i in range(before_start[v], before_start[v + 1]):
        u = unit[before[i]]
        outer[a] -= u != a
        outer[b] += u != b
    for i in range(after_start[v], after_start[v + 1]):
        u = unit[after[i]]
        outer[u] += int(u != b) - int(u != a)
    held[place[v]] -= size[v]
    held[d] += size[v]
    strike(v, a, head, following, previous)
    enlist(v, b, head, following, previous)
    place[v], unit[v] = d, b


@njit(cache=True, inline="always")
def recost(
    v, b, seat, inside, ledger, time, home, net_start, net, pin_start, cost, source
):  # fmt: skip
    """Update the ledger for the move of node `v` to unit `b`."""
    a, units = seat[v], len(ledger)
    for i in range(net_start[v], net_start[v + 1]):
        e = net[i]
        c, pins, maker = cost[e], pin_start[e + 1] - pin_start[e], seat[source[e]]
        if a < units:
            if inside[e, a] < pins:
                ledger[a, OUT if maker == a else INTO] -= c
            inside[e, a] -= 1
        if b < units:
            if inside[e, b] > 0:
                ledger[b, OUT if maker == b else INTO] -= c
            inside[e, b] += 1
        if source[e] == v:
            maker = b
        if a < units and inside[e, a] > 0:
            ledger[a, OUT if maker == a else INTO] += c
        if b < units and inside[e, b] < pins:
            ledger[b, OUT if maker == b else INTO] += c
    if a < units:
        ledger[a, BUSY] -= time[v, home[a]]
    if b < units:
        ledger[b, BUSY] += time[v, home[b]]
    seat[v] = b
