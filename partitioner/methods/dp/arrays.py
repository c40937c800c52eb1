"""The arrays that the compiled walk reads and writes, by name."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.problem.arrays import Floats, Ints

Ints32 = NDArray[np.int32]


class StageModel(NamedTuple):
    """What a stage costs: K kinds, n supernodes, E nets.

    Parameters
    ----------
    work
        Shape (K, n): time, infinity where not allowed.
    size, memory
        Shapes (n,) and (K,).
    transfer_factor, communication
        Shape (K,): what a kind pays for a transfer of cost 1; and the model's number.
    net_start, net
        The nets of every supernode, as rows.
    pins, cost, source
        Shape (E,): how many supernodes a net has, its cost, and which one makes the tensor.
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
    """What the sweep looks for: S states (vectors of used devices), I ideals.

    Parameters
    ----------
    threshold
        Only stages of at most this load count.
    floor
        Largest loads up to here need not be told apart; at most the threshold.
    following
        Shape (S, K): the state with one more device of a kind, -1 if there is none left.
    capacity
        Shape (S,): joint capacity of the devices that a state leaves.
    remaining
        Shape (I,): weight of the supernodes outside an ideal.
    above
        Shape (n,): weight that stays outside for good once a supernode is passed over.
    growth
        Shape (K, n): by how much a supernode may raise the load of a stage that takes it from the
        stages after it without harm to them; infinity if it may do them harm.
    easiest
        Shape (K, I): of the supernodes that can follow an ideal, the one of least growth, or -1.
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
        Smallest largest load, infinity if there is no chain.
    origin, kind
        The ideal before the last stage, and the kind of device of that stage.
    """

    value: Floats
    origin: Ints32
    kind: NDArray[np.int8]
