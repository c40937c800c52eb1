"""The named arrays that the compiled search reads and writes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.problem.arrays import Floats, Ints

BUSY, INTO, OUT, LOAD, SCORE = 0, 2, 4, 6, 8  # by pass: two columns each
HELD, BARRED, VIOLATION, ROOM, TRANSFER_FACTOR = 10, 11, 12, 13, 14
COLUMNS = 15


class PlacementModel(NamedTuple):
    """The costs of placements: n supernodes, D devices, E nets, P pins, m nodes of regions.

    Parameters
    ----------
    time
        Shape (n, D, 2): processing time by pass; all is in the first pass unless `passes` is 2.
    size
        Shape (n,): memory.
    violation_scale
        Mean memory of a supernode, the unit in which memory above a device's limit is counted.
    allowed
        Shape (n, D): whether the supernode may run on the device.
    room, transfer_factor, contiguous
        Shape (D,): the device's memory, its time for a transfer of cost 1, and whether its share must be
        contiguous.
    net_start, net
        Rows over supernodes, shapes (n + 1,) and (P, 2): the nets of each, and the pass in which it first
        reads each net.
    pin_start, pin
        Rows over nets, shapes (E + 1,) and (P,): the supernodes of each.
    cost
        Shape (E,): see :class:`partitioner.problem.problem.Nets`.
    made
        Shape (E, 3): number of pins, source, and the pass in which the tensor is made.
    owner, before_start, before
        Of the regions' nodes in a topological order: their supernodes, shape (m,); and rows of their direct
        predecessors.
    ahead_start, ahead, behind_start, behind
        Rows over supernodes: their successors and predecessors if the devices are the stages of a chain, in
        their order; no row at all for other splits.
    communication, passes
        The number of the communication model, and how many passes have loads of their own.
    """

    time: Floats
    size: Floats
    violation_scale: float
    allowed: NDArray[np.bool_]
    room: Floats
    transfer_factor: Floats
    contiguous: NDArray[np.bool_]
    net_start: Ints
    net: Ints
    pin_start: Ints
    pin: Ints
    cost: Floats
    made: Ints
    owner: Ints
    before_start: Ints
    before: Ints
    ahead_start: Ints
    ahead: Ints
    behind_start: Ints
    behind: Ints
    communication: int
    passes: int


class PlacementState(NamedTuple):
    """The device of every supernode, and the sums that follow from it.

    Parameters
    ----------
    place
        Shape (n,): the device of every supernode.
    inside
        Shape (E, D, 2): how many pins of a net are on a device, and how many of these read in the
        forward pass (counted only where there are two passes).
    ledger
        Shape (D, COLUMNS): of every device, by pass: processing, transfers in and out, load, and a high power
        of the load over a scale; then the memory used, the number of supernodes that may not run there, the
        violation of limits, the memory, and the time of a transfer of cost 1.
    """

    place: Ints
    inside: NDArray[np.int32]
    ledger: Floats


class AnnealingControl(NamedTuple):
    """Parameters of annealing; all but `doublings` are in units of the largest load.

    Parameters
    ----------
    temperature
        The mean increase of the energy that is accepted.
    strict
        Penalty for a violation of 1.
    tie
        Weight of the sum of the loads in the energy.
    doublings
        The exponent of the power mean of the loads is two to this power.
    """

    temperature: float
    strict: float
    tie: float
    doublings: int
