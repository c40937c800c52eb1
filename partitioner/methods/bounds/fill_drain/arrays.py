"""The named arrays that the compiled walk for bounds on makespans reads and writes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.methods.bounds.fill_drain.rows import RowEvents
from partitioner.methods.dp.pipeline.arrays import Ints32
from partitioner.problem.arrays import Floats, Ints


class MakespanTable(NamedTuple):
    """What is known of pipelines that hold one of I ideals on the devices of one of S states, in N slots.

    Parameters
    ----------
    value
        Shape (I, S, N): the least time of a sample.
    label
        Shape (I, S, N, P): the least lengths of P paths, see
        :mod:`partitioner.methods.bounds.fill_drain.labels`.
    origin, slot, kind, copies
        Shape (I, S, N): the ideal before the stage placed last and the slot of the stages that hold it, the
        kind and the number of the stage's devices; 0 devices if the last step left one idle.
    used
        Shape (I, S): how many slots are in use.
    """

    value: Floats
    label: Floats
    origin: Ints32
    slot: Ints32
    kind: NDArray[np.int8]
    copies: Ints32
    used: Ints


class MakespanSpec(NamedTuple):
    """The pipelines that the sweep looks for; there are K kinds, S states, I ideals and D devices.

    Parameters
    ----------
    way
        See :data:`partitioner.methods.bounds.fill_drain.paths.WAYS`.
    returns
        Whether the backward pass runs through the stages from the last to the first.
    turns
        Whether a sample turns at the last stage: whether there is a backward pass, which returns.
    idle
        Whether idle devices may count as devices behind a stage.
    samples
        The number of microbatches.
    limit
        Only pipelines whose stages bound the makespan by at most this much count.
    most
        The largest load of a stage for a sample, which follows from the limit.
    forward, backward
        Shape (K, n): the processing times of both passes.
    made, read
        The passes in which tensors are made, shape (E,), and read, in the order of `Nets.of_node`; see
        :class:`partitioner.problem.problem.Nets`.
    before, after
        Shape (n,): see :class:`partitioner.methods.bounds.fill_drain.spine.PassSpine`.
    spine
        Shape (I,): how many supernodes of the spine each ideal holds, see
        :class:`partitioner.methods.bounds.fill_drain.spine.PassSpine`.
    rows
        The rows of the schedule, in which labels are the paths from a pass to another one.
    whole
        The number of the label of the whole schedule.
    close
        How close labels must be to be counted as equal.
    capacity
        Shape (S,): joint capacity of the devices that a state leaves.
    capacity_on
        Shape (S,): the capacity for supernodes of the spine.
    price
        Shape (S,): by how much capacities grow with the largest load.
    remaining_on
        Shape (I,): the weight of the supernodes of the spine outside an ideal.
    remaining, above
        Shapes (I,) and (n,), see :class:`partitioner.methods.dp.pipeline.arrays.PipelineSearchSpec`.
    unused
        Shape (S,): how many devices a state leaves.
    widest
        Shape (K,): the most devices that may share a stage.
    least_in_flight, least_versions
        The fewest samples and versions of the weights that any stage holds.
    """

    way: int
    returns: bool
    turns: bool
    idle: bool
    samples: int
    limit: float
    most: float
    forward: Floats
    backward: Floats
    made: Ints
    read: Ints
    before: Floats
    after: Floats
    spine: Ints
    rows: RowEvents
    whole: int
    close: float
    capacity: Floats
    capacity_on: Floats
    price: Floats
    remaining_on: Floats
    remaining: Floats
    above: Floats
    unused: Ints
    widest: Ints
    least_in_flight: float
    least_versions: float
