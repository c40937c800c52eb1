"""The arrays that the compiled search reads and writes, by name."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.problem.arrays import Floats, Ints

INTO, BUSY, OUT = 0, 1, 2


class LatencyModel(NamedTuple):
    """What decides when nodes run: n nodes, D devices, E nets, A units of accelerators.

    Devices that pay for transfers hold units: for each pass its slots, in the order in which they run.
    Units are numbered device by device; after them come n units, one for every node on a CPU.

    Parameters
    ----------
    time
        Shape (n, D): processing time.
    size
        Shape (n,): memory.
    allowed
        Shape (n, D): whether the node may run there.
    room
        Shape (D,): the device's memory.
    violation_scale
        Mean memory of a group, the unit of what is above a device's room.
    base
        Shape (D,): the first unit of each device, -1 where nodes run one by one.
    home
        Shape (A,): the device of each unit.
    late
        Shape (n,): 1 for nodes of the backward pass.
    sites
        The devices to draw from: one CPU where it has room for everything.
    group, mate_start, mate
        The group of every node, and the nodes of every group as rows.
    before_start, before, after_start, after
        Direct predecessors and successors, as rows.
    net_start, net, pin_start, pin
        The nets of every node and the nodes of every net, as rows.
    cost, source
        Shape (E,): see :class:`partitioner.problem.problem.Nets`.
    communication, slots
        The model's number, and how many subgraphs of a pass a device may hold.
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
    """Where everything is, and what follows from it.

    Parameters
    ----------
    place, unit
        Shape (n,): the device and the unit of every node.
    seat
        Shape (n,): the unit of every node that `inside` and `ledger` know of.
    inside
        Shape (E, A): how many pins of a net are in a unit.
    ledger
        Shape (A, 3): of every unit the transfers in, the processing and the transfers out.
    held
        Shape (D,): memory taken.
    head, following, previous
        The nodes of every unit as linked lists: shape (A + n,), the first; shape (n,), neighbours.
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
    """Of the longest path: shape (A + n,) each."""

    missing: Ints
    ready: Floats
    behind: Ints
    stack: Ints


class LatencyControl(NamedTuple):
    """How to anneal.

    Parameters
    ----------
    temperature
        By how much a move that is accepted makes things worse, on the average.
    strict
        What `violation_scale` of memory in excess of a device's costs.
    tie
        Weight of the sum of the lengths of all units.
    """

    temperature: float
    strict: float
    tie: float
