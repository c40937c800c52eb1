"""The named arrays that the compiled walk for bounds on makespans reads and writes."""

from __future__ import annotations

from typing import NamedTuple

from partitioner.problem.arrays import Floats, Ints


class MakespanTables(NamedTuple):
    """What is known of the stages inside and outside of every ideal.

    Parameters
    ----------
    gain
        Shape (R, I, S): for each reference load what detours through the stages of an ideal gain
        at least, see :func:`partitioner.methods.bounds.fill_drain.paths.with_detours`.
    outside
        Shape (I, D + 1): the least time of a sample of the stages outside an ideal, by the most devices that
        they have.
    """

    gain: Floats
    outside: Floats


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
    spine
        Shape (I,): how many supernodes of the spine each ideal holds, see
        :class:`partitioner.methods.bounds.fill_drain.spine.PassSpine`.
    reference
        Shape (R,): the loads at which detours are known, 0 first.
    capacity
        Shape (S,): joint capacity of the devices that a state leaves.
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
    spine: Ints
    reference: Floats
    capacity: Floats
    remaining: Floats
    above: Floats
    unused: Ints
    widest: Ints
    least_in_flight: float
    least_versions: float
