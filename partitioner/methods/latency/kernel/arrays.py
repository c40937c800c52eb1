"""The named arrays that the compiled search reads and writes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    """Scratch space for the longest path: arrays of shape (A + n,)."""

    missing: Ints
    ready: Floats
    behind: Ints
    stack: Ints


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
    """

    temperature: float
    strict: float
    tie: float
