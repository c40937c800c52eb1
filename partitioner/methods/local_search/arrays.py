"""The arrays that the compiled search reads and writes, by name."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.problem.arrays import Floats, Ints

BUSY, INTO, OUT, LOAD, SCORE = 0, 2, 4, 6, 8  # by pass: two columns each
HELD, WRONG, DEBT, ROOM, FARE = 10, 11, 12, 13, 14
COLUMNS = 15


class PlacementModel(NamedTuple):
    """What places cost: n supernodes, D devices, E nets, P pins, m nodes of regions.

    Parameters
    ----------
    time
        Shape (n, D, 2): processing time by pass; the second pass is idle unless `passes` is 2.
    size
        Shape (n,): memory.
    violation_scale
        Mean memory of a supernode, the unit of what is above a device's room.
    allowed
        Shape (n, D): whether the supernode may run there.
    room, transfer_factor, contiguous
        Shape (D,): the device's memory, what it pays for a transfer of cost 1, and whether its share must
        be contiguous.
    net_start, net
        Of every supernode, as rows, shape (P, 2): its nets, and the pass in which it reads each first.
    pin_start, pin
        The supernodes of every net, as rows.
    cost
        Shape (E,): see :class:`partitioner.problem.problem.Nets`.
    made
        Shape (E, 3): number of pins, source, and the pass in which the tensor is made.
    owner, before_start, before
        Of the regions' nodes in a topological order: shape (m,), their supernodes; their direct
        predecessors, as rows.
    communication, passes
        The model's number, and how many passes the objective tells apart.
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
    communication: int
    passes: int


class PlacementState(NamedTuple):
    """Where everything is, and what follows from it.

    Parameters
    ----------
    place
        Shape (n,): the device of every supernode.
    inside
        Shape (E, D, 2): how many pins of a net are on a device, and how many of these read in the
        forward pass (counted only where there are two passes).
    ledger
        Shape (D, COLUMNS): of every device, by pass: processing, transfers in and out, load, and the
        load over a scale to a high power; memory taken, supernodes that may not run there, what it
        owes to the limits, its memory, and what it pays for a transfer of cost 1.
    """

    place: Ints
    inside: NDArray[np.int32]
    ledger: Floats


class AnnealingControl(NamedTuple):
    """How to anneal; all but `doublings` in units of the largest load.

    Parameters
    ----------
    temperature
        By how much a move that is accepted makes things worse, on the average.
    strict
        What a broken limit costs.
    tie
        Weight of the sum of the loads.
    doublings
        The power mean's exponent is two to this power.
    """

    temperature: float
    strict: float
    tie: float
    doublings: int
