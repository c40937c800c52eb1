"""The costs of units and the edges between them, computed from scratch or updated as nodes move, compiled."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit, overwrite
from partitioner.methods.communication_kernel import joint_load
from partitioner.problem.arrays import Floats, Ints

INTO, BUSY, OUT = 0, 1, 2


class LatencyModel(NamedTuple):
    """The costs and the graph of a problem: n nodes, D devices, E nets, A units of accelerators.

    A unit is what runs without interruption. Devices that pay for transfers have a unit for each slot of each
    pass, in the order in which they run, numbered device by device. Then come n units, one for every node
    that runs on a CPU.

    Parameters
    ----------
    time
        Shape (n, D): processing time.
    size
        Shape (n,): memory.
    allowed
        Shape (n, D): whether the node may run on the device.
    room
        Shape (D,): the device's memory.
    violation_scale
        Mean memory of a group, the unit in which memory above a device's limit is counted.
    base
        Shape (D,): the first unit of each device, -1 where nodes run one by one.
    home
        Shape (A,): the device of each unit.
    late
        Shape (n,): 1 for nodes of the backward pass.
    sites
        The devices to choose from; of CPUs that can hold everything only one.
    group, mate_start, mate
        Shape (n,): the group of every node; and rows over groups with the nodes of each.
    before_start, before, after_start, after
        Rows over nodes: direct predecessors and successors.
    net_start, net, pin_start, pin
        Rows over nodes and over nets: the nets of every node and the nodes of every net.
    cost, source
        Shape (E,): see :class:`partitioner.problem.problem.Nets`.
    communication, slots
        The number of the communication model, and how many subgraphs of a pass a device may hold.
    """

    time: Floats
    size: Floats
    allowed: NDArray[np.bool_]
    room: Floats
    violation_scale: float
    base: Ints
    home: Ints
    late: Ints
    sites: Ints
    group: Ints
    mate_start: Ints
    mate: Ints
    before_start: Ints
    before: Ints
    after_start: Ints
    after: Ints
    net_start: Ints
    net: Ints
    pin_start: Ints
    pin: Ints
    cost: Floats
    source: Ints
    communication: int
    slots: int


class LatencyState(NamedTuple):
    """The device and unit of every node, and the sums that follow from them.

    Parameters
    ----------
    place, unit
        Shape (n,): the device and the unit of every node.
    seat
        Shape (n,): the unit of every node for which `inside` and `ledger` are computed.
    inside
        Shape (E, A): how many pins of a net are in a unit.
    ledger
        Shape (A, 3): the transfers in, the processing and the transfers out of every unit.
    held
        Shape (D,): memory used.
    head, following, previous
        The nodes of every unit as linked lists: the first node, shape (A + n,), and the neighbours of each
        node, shape (n,).
    outer
        Shape (A + n,): how many edges lead into a unit from others.
    """

    place: Ints
    unit: Ints
    seat: Ints
    inside: NDArray[np.int32]
    ledger: Floats
    held: Floats
    head: Ints
    following: Ints
    previous: Ints
    outer: Ints


class Scratch(NamedTuple):
    """Scratch space.

    Parameters
    ----------
    missing, ready, behind, stack
        Shape (A + n,): for the longest path.
    who, where, what
        Shape (n,): the nodes of a move, their devices and their units: the new ones until they are moved,
        then the old ones.
    mark, turn
        Shapes (n,) and (1,): the number of the last move in which each group took part, and of the current
        one.
    """

    missing: Ints
    ready: Floats
    behind: Ints
    stack: Ints
    who: Ints
    where: Ints
    what: Ints
    mark: Ints
    turn: Ints


class LatencyControl(NamedTuple):
    """Parameters of annealing.

    Parameters
    ----------
    temperature
        The mean increase of the energy that is accepted.
    strict
        Penalty for `violation_scale` of memory above a device's limit.
    tie
        Weight of the sum of the lengths of all units in the energy.
    mix
        Shape (5,): cumulated shares of the first five kinds of moves; the rest up to 1 is that of the sixth.
    to_neighbour
        The probability that a move leads to the unit of a neighbour.
    tries
        How many pins of a net are drawn until one is in another unit.
    links
        How many proposals a move may join, each of which frees memory on the device of the last one.
    swap, back
        The probabilities that a move is extended although the memory suffices, and that the extension leads
        to where the move came from.
    largest_gain
        The largest share of the energy that a single move is assumed to save.
    """

    temperature: float
    strict: float
    tie: float
    mix: Floats
    to_neighbour: float = 0.7
    tries: int = 4
    links: int = 4
    swap: float = 0.1
    back: float = 0.4
    largest_gain: float = 0.05


@njit(cache=True, nogil=True, _nrt=False)
def span(model, state, scratch):
    """Return the last finish and the sum of all lengths; infinity for both if units wait in a cycle.

    A unit waits for those that make what it reads, and for the previous one on its device (paper,
    Appendix A). Afterwards `ready` holds the start of every unit.
    """
    unit, head, home, outer = state.unit, state.head, model.home, state.outer
    missing, ready, behind, stack = scratch.missing, scratch.ready, scratch.behind, scratch.stack
    n, units = len(unit), len(home)
    top, last, done, latest, total = 0, -1, 0, 0.0, 0.0
    for u in range(units):
        if head[u] >= 0:
            missing[u], ready[u], behind[u] = outer[u], 0.0, -1
            if last >= 0 and home[last] == home[u]:
                missing[u] += 1
                behind[last] = u
            last = u
            if missing[u] == 0:
                stack[top] = u
                top += 1
    for v in range(n):
        u = unit[v]
        if u >= units:
            missing[u], ready[u], behind[u] = outer[u], 0.0, -1
            if missing[u] == 0:
                stack[top] = u
                top += 1
    while top > 0:
        top -= 1
        u = stack[top]
        if u < units:
            ledger = state.ledger
            length = joint_load(ledger[u, BUSY], ledger[u, INTO], ledger[u, OUT], model.communication)
        else:
            length = model.time[u - units, state.place[u - units]]
        finish = ready[u] + length
        latest, total = max(latest, finish), total + length
        v = head[u]
        while v >= 0:
            done += 1
            for i in range(model.after_start[v], model.after_start[v + 1]):
                w = unit[model.after[i]]
                if w != u:
                    ready[w] = max(ready[w], finish)
                    missing[w] -= 1
                    if missing[w] == 0:
                        stack[top] = w
                        top += 1
            v = state.following[v]
        w = behind[u]
        if w >= 0:
            ready[w] = max(ready[w], finish)
            missing[w] -= 1
            if missing[w] == 0:
                stack[top] = w
                top += 1
    if done < n:
        return np.inf, np.inf
    return latest, total


@njit(cache=True, nogil=True, _nrt=False)
def refresh(model, state):
    """Compute all sums of a state from the devices and the units of the nodes."""
    place, unit, inside, ledger = state.place, state.unit, state.inside, state.ledger
    units = len(ledger)
    overwrite(state.seat, unit)
    inside[:], ledger[:], state.held[:], state.head[:], state.outer[:] = 0, 0.0, 0.0, -1, 0
    for v in range(len(place)):
        u = unit[v]
        state.held[place[v]] += model.size[v]
        enlist(state, v, u)
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


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def enlist(state, v, u):
    """Add a node to the list of a unit."""
    head, following, previous = state.head, state.following, state.previous
    following[v], previous[v] = head[u], -1
    if head[u] >= 0:
        previous[head[u]] = v
    head[u] = v


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def shift(model, state, v, d, b):
    """Move node `v` to device `d` and unit `b`, without updating the ledger (see :func:`recost`)."""
    place, unit, outer, held = state.place, state.unit, state.outer, state.held
    a = unit[v]
    for i in range(model.before_start[v], model.before_start[v + 1]):
        u = unit[model.before[i]]
        outer[a] -= u != a
        outer[b] += u != b
    for i in range(model.after_start[v], model.after_start[v + 1]):
        u = unit[model.after[i]]
        outer[u] += int(u != b) - int(u != a)
    held[place[v]] -= model.size[v]
    held[d] += model.size[v]
    following, previous = state.following, state.previous
    if previous[v] >= 0:
        following[previous[v]] = following[v]
    else:
        state.head[a] = following[v]
    if following[v] >= 0:
        previous[following[v]] = previous[v]
    enlist(state, v, b)
    place[v], unit[v] = d, b


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def recost(model, state, v, b):
    """Update the ledger for the move of node `v` to unit `b`."""
    seat, inside, ledger = state.seat, state.inside, state.ledger
    a, units = seat[v], len(ledger)
    for i in range(model.net_start[v], model.net_start[v + 1]):
        e = model.net[i]
        pins, maker = model.pin_start[e + 1] - model.pin_start[e], seat[model.source[e]]
        c = model.cost[e]
        if a < units:
            if inside[e, a] < pins:
                ledger[a, OUT if maker == a else INTO] -= c
            inside[e, a] -= 1
        if b < units:
            if inside[e, b] > 0:
                ledger[b, OUT if maker == b else INTO] -= c
            inside[e, b] += 1
        if model.source[e] == v:
            maker = b
        if a < units and inside[e, a] > 0:
            ledger[a, OUT if maker == a else INTO] += c
        if b < units and inside[e, b] < pins:
            ledger[b, OUT if maker == b else INTO] += c
    if a < units:
        ledger[a, BUSY] -= model.time[v, model.home[a]]
    if b < units:
        ledger[b, BUSY] += model.time[v, model.home[b]]
    seat[v] = b
