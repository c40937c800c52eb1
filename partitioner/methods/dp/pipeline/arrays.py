"""The arrays that the compiled walk from the end of a pipeline reads and writes, by name.

An ideal holds what the stages placed so far hold. Where memory depends on it these run *behind* those
still to come: the problem is then a turned one (:mod:`partitioner.methods.dp.pipeline.turned`).
K kinds, n supernodes, E nets, S states, I ideals; R is the most replicas of a stage.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.problem.arrays import Floats, Ints

Ints32 = NDArray[np.int32]
Bools = NDArray[np.bool_]


class StageCosts(NamedTuple):
    """What the load of a stage is made of.

    Parameters
    ----------
    work
        Shape (K, n): time, infinity where not allowed.
    transfer_factor
        Shape (K,): what a kind pays for a transfer that costs 1.
    communication
        The model's number.
    net_start, net
        The nets of every supernode, as rows.
    pins, source
        Shape (E,): how many supernodes a net has, and which one makes the tensor.
    enter, leave
        Shape (E,): what it costs a stage to bring the tensor in, and to send it out.
    weights, bandwidth, added
        What replicas exchange (n,), how fast (K,), and whether that follows the work.
    """

    work: Floats
    transfer_factor: Floats
    communication: int
    net_start: Ints
    net: Ints
    pins: Ints
    source: Ints
    enter: Floats
    leave: Floats
    weights: Floats
    bandwidth: Floats
    added: bool


class MemoryModel(NamedTuple):
    """What a stage takes of its devices' memory.

    Parameters
    ----------
    size, parameters, activations, workspace
        Shape (n,).
    memory
        Shape (K,).
    in_flight, versions
        Shape (D + 1, R + 1): for devices behind a stage and its replicas how many samples and versions
        of the weights it holds.
    least_in_flight, least_versions
        Shape (S, K): the least of these over the replicas that a state leaves room for.
    staged
        Whether it matters how many devices are behind a stage, or how many replicas it has.
    """

    size: Floats
    parameters: Floats
    activations: Floats
    workspace: Floats
    memory: Floats
    in_flight: Floats
    versions: Floats
    least_in_flight: Floats
    least_versions: Floats
    staged: bool


class StageLimits(NamedTuple):
    """What every stage must keep to.

    Parameters
    ----------
    nodes, fewest_nodes, most_nodes
        Shape (n,), and the range of their sum.
    layer_start, layer, fewest_layers, most_layers, by_layers
        The layers of every supernode as rows, the range of how many a stage has, and whether that matters.
    pinned
        Shape (n,): to how many devices a supernode is pinned; a stage has room for one a replica.
    adjacent_start, adjacent, by_neighbours
        Supernodes that share an edge, as rows; whether all those next to a stage must be in one of its
        neighbours.
    """

    nodes: Ints
    fewest_nodes: int
    most_nodes: int
    layer_start: Ints
    layer: Ints
    fewest_layers: int
    most_layers: int
    by_layers: bool
    pinned: Ints
    adjacent_start: Ints
    adjacent: Ints
    by_neighbours: bool


class DeviceStates(NamedTuple):
    """How many devices of each kind the stages so far use, and where counted how many these are.

    Parameters
    ----------
    left
        Shape (S, K): the most devices that the next stage may have.
    stride, hop
        A stage on r devices of kind k leads from state s to ``s + r * stride[k] + hop``.
    behind
        Shape (S,): how many devices are in use, of all kinds.
    dominance
        Whether a state with fewer devices is at least as good.
    """

    left: Ints
    stride: Ints
    hop: int
    behind: Ints
    dominance: bool


class PipelineSearchSpec(NamedTuple):
    """What the sweep looks for.

    Parameters
    ----------
    summed
        Whether the value of a chain is the sum of its loads; else it is the largest one.
    threshold
        Only stages of at most this load count.
    limit
        Only chains of at most this value count; that of the rest included where it is a sum.
    floor
        Values up to here need not be told apart.
    capacity
        Shape (S,): joint capacity of the devices that a state leaves.
    remaining, above
        Shape (I,) and (n,): weight of the supernodes outside an ideal, and weight that stays outside
        for good once a supernode is passed over.
    rest
        Shape (I,): the least sum of the loads of all that is outside an ideal.
    growth, easiest
        Shapes (K, n) and (K, I), as in :class:`partitioner.methods.dp.arrays.ChainSearchSpec`, on one device.
    open
        Shape (n,): whether the supernode may be added.
    """

    summed: bool
    threshold: float
    limit: float
    floor: float
    capacity: Floats
    remaining: Floats
    above: Floats
    rest: Floats
    growth: Floats
    easiest: Ints32
    open: Bools


class PipelineTable(NamedTuple):
    """The table of the dynamic program, shape (I, S) each.

    Parameters
    ----------
    value
        Smallest value of stages that hold an ideal, infinity if there are none.
    origin, kind, copies
        The ideal behind the first of these stages, and the kind and the number of its devices.
    """

    value: Floats
    origin: Ints32
    kind: NDArray[np.int8]
    copies: Ints32
