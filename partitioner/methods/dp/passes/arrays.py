"""The named arrays that the compiled walk over chains with two passes reads.

There are K kinds, n supernodes, E nets, S states and I ideals. Pass 0 is the forward pass, 1 the backward
pass.
"""

from __future__ import annotations

from typing import NamedTuple

from partitioner.methods.dp.arrays import Ints32
from partitioner.problem.arrays import Floats, Ints


class PassCosts(NamedTuple):
    """The loads of stages in each pass, and their memory.

    Parameters
    ----------
    work
        Shape (2, K, n): time in each pass, infinity where a kind may not run a supernode.
    size, memory
        Shapes (n,) and (K,): memory that supernodes need, and that devices have.
    transfer_factor, communication
        Shape (K,): the time of a transfer of cost 1; and the number of the communication model.
    net_start, net, read
        Rows over supernodes: the nets of each, and the first pass in which it reads each of them.
    pins, cost, source, made
        Shape (E,): how many supernodes a net has, its cost, the supernode that makes the tensor, and the pass
        in which it does.
    """

    work: Floats
    size: Floats
    memory: Floats
    transfer_factor: Floats
    communication: int
    net_start: Ints
    net: Ints
    read: Ints
    pins: Ints
    cost: Floats
    source: Ints
    made: Ints


class PassSearchSpec(NamedTuple):
    """The chains that the sweep looks for.

    Parameters
    ----------
    least, limits
        The number of the load that is minimised, and shape (3,): the largest loads allowed in the forward
        pass, in the backward pass, and of both together.
    floor
        Largest loads up to this one count as equal.
    capacity, remaining, above
        Shapes (S,), (I,) and (n,): as in :class:`partitioner.methods.dp.arrays.ChainSearchSpec`, for the load
        that needs the largest part of the capacity of all devices.
    growth, easiest
        Shapes (3, K, n) and (K, I): by how much a supernode may raise the loads of a stage that takes it from
        later stages, and the supernode of least growth that can follow an ideal, or -1.
    """

    least: int
    limits: Floats
    floor: float
    capacity: Floats
    remaining: Floats
    above: Floats
    growth: Floats
    easiest: Ints32
