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

Ints16 = NDArray[np.int16]
Ints32 = NDArray[np.int32]
Bools = NDArray[np.bool_]
NO_GROUPS: Ints16 = np.empty((0, 0, 0), np.int16)


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


class LinkedTable(NamedTuple):
    """The table, shape (I, G * G, S) each: by ideal, pair of groups and state.

    The first group of the pair is that of the last stage, the second one that of the next stage. Both are 0
    for the empty ideal; the second one is 0 for the full ideal.

    Parameters
    ----------
    value
        The smallest value of stages that hold an ideal, infinity if there are none.
    origin, kind, copies
        The ideal before the stage placed last, and the kind and the number of its devices.
    before
        The group of the stage before that one.
    """

    value: Floats
    origin: Ints32
    kind: Ints16
    copies: Ints32
    before: Ints16


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
    kind: Ints16
    copies: Ints32

    def linked(self) -> LinkedTable:
        """Return the same table with one pair of groups, on the same memory."""
        return LinkedTable(
            self.value[:, None], self.origin[:, None], self.kind[:, None], self.copies[:, None], NO_GROUPS
        )
