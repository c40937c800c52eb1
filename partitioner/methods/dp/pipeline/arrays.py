"""The named arrays that the compiled walk over pipelines reads and writes.

An ideal holds the supernodes of the stages placed so far. If memory depends on the devices behind a stage,
these stages run *behind* those that are placed later, because the problem is then a turned one
(:mod:`partitioner.methods.dp.pipeline.turned`). There are K kinds, n supernodes, E nets, S states and
I ideals; R is the largest number of replicas of a stage.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.problem.arrays import Floats, Ints

Ints32 = NDArray[np.int32]
Bools = NDArray[np.bool_]


class StageCosts(NamedTuple):
    """The terms of the load of a stage.

    Parameters
    ----------
    work
        Shape (K, n): time, infinity where a kind may not run a supernode.
    transfer_factor
        Shape (K,): the time of a transfer of cost 1.
    communication
        The number of the communication model.
    net_start, net
        Rows over supernodes: the nets of each.
    pins, source
        Shape (E,): how many supernodes a net has, and the supernode that makes the tensor.
    enter, leave
        Shape (E,): the cost to a stage of bringing the tensor in, and of sending it out.
    weights, bandwidth, added
        Weights that replicas exchange (n,), the bandwidth for that (K,), and whether the time of the exchange
        is added to the work, or runs at the same time.
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
    """The memory that a stage takes on each of its devices.

    Parameters
    ----------
    size, parameters, activations, workspace
        Shape (n,): memory of each supernode, see :class:`partitioner.problem.pipeline.Pipeline`.
    memory
        Shape (K,): memory of a device.
    in_flight, versions
        Shape (D + 1, R + 1): samples and versions of the weights that a stage holds, by the number of
        devices behind it and of its replicas.
    least_in_flight, least_versions
        Shape (S, K): the least of these over the numbers of replicas that a state allows.
    staged
        Whether memory depends on the number of devices behind a stage, or of its replicas.
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
    """The limits on every stage.

    Parameters
    ----------
    nodes, fewest_nodes, most_nodes
        Shape (n,): the user's nodes in each supernode; and the range of their sum.
    layer_start, layer, fewest_layers, most_layers, by_layers
        Rows over supernodes: the layers of each; the range of the number of a stage's layers; and whether
        there is such a range.
    pinned
        Shape (n,): to how many devices a supernode is pinned; a stage can have at most one for each replica.
    adjacent_start, adjacent, by_neighbours
        Rows over supernodes: those that share an edge with each; and whether edges may only join neighbouring
        stages.
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
    """The states: how many devices of each kind are in use, and, if it is counted, the number of stages.

    Parameters
    ----------
    left
        Shape (S, K): the largest number of devices that the next stage may have.
    stride, hop
        A stage on r devices of kind k leads from state s to ``s + r * stride[k] + hop``.
    behind
        Shape (S,): how many devices of all kinds are in use.
    dominance
        Whether a state with fewer devices is at least as good.
    """

    left: Ints
    stride: Ints
    hop: int
    behind: Ints
    dominance: bool


class PipelineSearchSpec(NamedTuple):
    """The pipelines that the sweep looks for.

    Parameters
    ----------
    summed
        Whether the value of a chain is the sum of its loads; else it is the largest one.
    threshold
        Only stages of at most this load count.
    limit
        Only chains of at most this value count, including `rest` if the value is a sum.
    floor
        Values up to this one count as equal.
    capacity
        Shape (S,): joint capacity of the devices that a state leaves.
    remaining, above
        Shapes (I,) and (n,): weight of the supernodes outside an ideal, and weight that a walk can no longer
        add once it has skipped a supernode.
    rest
        Shape (I,): the least sum of the loads of the supernodes outside an ideal.
    growth, easiest
        Shapes (K, n) and (K, I), see :class:`partitioner.methods.dp.arrays.ChainSearchSpec`; for one device.
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
        The smallest value of stages that hold an ideal, infinity if there are none.
    origin, kind, copies
        The ideal before the stage placed last, and the kind and the number of its devices.
    """

    value: Floats
    origin: Ints32
    kind: NDArray[np.int8]
    copies: Ints32
