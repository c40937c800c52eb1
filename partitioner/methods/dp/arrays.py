"""The named arrays that the compiled walk reads and writes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.problem.arrays import Floats, Ints

Ints32 = NDArray[np.int32]


class StageModel(NamedTuple):
    """The costs of stages: K kinds, n supernodes, E nets.

    Parameters
    ----------
    work
        Shape (K, n): time, infinity where a kind may not run a supernode.
    size, memory
        Shapes (n,) and (K,): memory that supernodes need, and that devices have.
    transfer_factor, communication
        Shape (K,): the time of a transfer of cost 1; and the number of the communication model.
    net_start, net
        Rows over supernodes: the nets of each.
    pins, cost, source
        Shape (E,): how many supernodes a net has, its cost, and the supernode that makes the tensor.
    """

    work: Floats
    size: Floats
    memory: Floats
    transfer_factor: Floats
    communication: int
    net_start: Ints
    net: Ints
    pins: Ints
    cost: Floats
    source: Ints


class ChainSearchSpec(NamedTuple):
    """The chains that the sweep looks for: S states (vectors of used devices), I ideals.

    Parameters
    ----------
    threshold
        Only stages of at most this load count.
    floor
        Largest loads up to this one count as equal; at most the threshold.
    following
        Shape (S, K): the state with one more device of a kind, -1 if none is left.
    capacity
        Shape (S,): joint capacity of the devices that a state leaves.
    remaining
        Shape (I,): weight of the supernodes outside an ideal.
    above
        Shape (n,): weight that a walk can no longer add once it has skipped a supernode.
    growth
        Shape (K, n): by how much a supernode may raise the load of a stage that takes it from later stages;
        infinity if that may raise the load of a later stage.
    easiest
        Shape (K, I): the supernode of least growth among those that can follow an ideal, or -1.
    """

    threshold: float
    floor: float
    following: Ints
    capacity: Floats
    remaining: Floats
    above: Floats
    growth: Floats
    easiest: Ints32


class ChainTable(NamedTuple):
    """The table of the dynamic program, shape (I, S) each.

    Parameters
    ----------
    value
        The smallest possible largest load, infinity if there is no chain.
    origin, kind
        The ideal before the last stage, and the kind of device of that stage.
    """

    value: Floats
    origin: Ints32
    kind: NDArray[np.int16]
