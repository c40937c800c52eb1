"""The contracted problem in arrays, which is the only input of a method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from partitioner.problem.arrays import Bools, Floats, Ints, Rows, rows_of
from partitioner.problem.measure import Measure
from partitioner.problem.pipeline import Pipeline, PipelineLimits


class Nets(NamedTuple):
    """The tensors that may be cut: each net is the set of supernodes that share one output.

    Parameters
    ----------
    pins
        For each net its supernodes, ascending.
    of_node
        For each supernode its nets.
    cost
        Shape (nets,): time to move the tensor between a device and host memory.
    source
        Shape (nets,): the supernode that produces the tensor.
    made
        Shape (nets,): the pass in which it is produced and leaves its device, 0 forward, 1 backward.
    read
        Shape of `pins.items`: the first pass in which that supernode reads it. `made` and `read` are 0 if the
        measure does not distinguish the passes.
    """

    pins: Rows
    of_node: Rows
    cost: Floats
    source: Ints
    made: Ints
    read: Ints

    def turned(self, n: int) -> Nets:
        """Return the nets of `n` supernodes, of which v becomes n - 1 - v."""
        owner, pin = self.pins.owners(), n - 1 - self.pins.items
        ascending = np.lexsort((pin, owner))
        return Nets(
            pins=Rows(self.pins.start, pin[ascending]),
            of_node=self.of_node.taken(np.arange(n)[::-1]),
            cost=self.cost,
            source=n - 1 - self.source,
            made=self.made,
            read=self.read[ascending],
        )

    def joined(self, pairs: Ints, n: int) -> Nets:
        """Return the nets of `n` supernodes and one without cost for each pair of these, shape (m, 2)."""
        count, nothing = len(self.cost) + len(pairs), np.zeros(pairs.size, dtype=np.int64)
        owner = np.concatenate((self.pins.owners(), np.repeat(np.arange(len(self.cost), count), 2)))
        pins = np.concatenate((self.pins.items, pairs.ravel()))
        return Nets(
            pins=rows_of(owner, pins, count),
            of_node=rows_of(pins, owner, n),
            cost=np.concatenate((self.cost, np.zeros(len(pairs)))),
            source=np.concatenate((self.source, pairs[:, 0])),
            made=np.concatenate((self.made, nothing[::2])),
            read=np.concatenate((self.read, nothing)),
        )


class Region(NamedTuple):
    """A graph in which the nodes of each device must be contiguous (paper, Definition 3.1).

    Parameters
    ----------
    owner
        Shape (m,): the supernode that each node belongs to.
    edges
        Shape (p, 2): the edges between nodes.
    """

    owner: Ints
    edges: Ints


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """`n` supernodes to be placed on devices of `K` kinds: what every method needs to know.

    What only some splits and measures have is in :mod:`partitioner.problem.variants`.

    Parameters
    ----------
    time
        Shape (K, 2, n): time on each kind, of the forward and of the backward part.
    size
        Shape (n,): memory.
    allowed
        Shape (K, n): whether every member may run on the kind.
    successors, predecessors
        Precedence: a chain of stages never leads from a supernode back to an earlier one. Empty
        where the split need not be a chain.
    nets
        The tensors between supernodes.
    member
        Shape (N,): the supernode of every original node.
    count, memory, transfer_factor
        Shape (K,): number of devices of each kind, their memory (infinity without a limit), and the time
        that a transfer of cost 1 takes them, 0 if they do not pay for transfers.
    communication
        The model, see :class:`partitioner.Devices`.
    relaxed_size, relaxed_allowed
        As `size` and `allowed`, but without what was merged at the risk of losing the optimum:
        an optimum with these is a lower bound. They are the same where nothing was risked.
    measure, split
        The definition of a solution's value, and the shape of the split, see :func:`partitioner.solve`.
    ordered
        Whether the parts are ordered, as the stages of a chain are.
    pipeline
        Data for replicas, levels, schedules and limits; None if the request has none of them.
    """

    time: Floats
    size: Floats
    allowed: Bools
    successors: Rows
    predecessors: Rows
    nets: Nets
    member: Ints
    count: Ints
    memory: Floats
    transfer_factor: Floats
    communication: str
    relaxed_size: Floats
    relaxed_allowed: Bools
    measure: Measure
    split: str
    ordered: bool
    pipeline: Pipeline | None

    @property
    def n(self) -> int:
        """The number of supernodes."""
        return len(self.size)

    @property
    def pays(self) -> Bools:
        """Shape (K,): whether a device of the kind pays for transfers."""
        return self.transfer_factor > 0

    @property
    def limits(self) -> PipelineLimits:
        """What parts must keep to; the limits that allow everything where none are asked for."""
        return PipelineLimits() if self.pipeline is None else self.pipeline.limits

    @property
    def copies(self) -> Ints:
        """Shape (K,): how many devices of the kind may share a stage, at least 1."""
        if self.pipeline is None:
            return np.ones_like(self.count)
        return np.clip(self.pipeline.sharing(self.count), 1, self.pipeline.replicas)

    @property
    def spans(self) -> Ints:
        """Shape (P, K - P): the devices of a stage on each of the last P kinds, by those with devices."""
        none = np.zeros((0, len(self.count)), dtype=np.int64)
        return none if self.pipeline is None else self.pipeline.spans

    @property
    def counts_stages(self) -> bool:
        """Whether a table must count stages: their number is given, and a stage may have several devices."""
        return self.limits.stages > 0 and int(self.copies.max()) > 1

    @property
    def states(self) -> int:
        """How many numbers of devices in use there are, by kind, and of stages if these are counted."""
        stages = self.limits.stages + 1 if self.counts_stages else 1
        return int(np.prod(self.count + 1, dtype=object)) * stages

    @property
    def lossless(self) -> bool:
        """Whether an optimum of this problem is an optimum of the user's graph."""
        same_size = np.array_equal(self.size, self.relaxed_size)
        return same_size and np.array_equal(self.allowed, self.relaxed_allowed)

    def work(self) -> Floats:
        """Return the sum of forward and backward time, shape (K, n); infinity where not allowed."""
        return np.ascontiguousarray(np.where(self.allowed, self.time.sum(axis=1), np.inf))

    @property
    def relaxed(self) -> Self:
        """The problem whose optimum is a lower bound of that of the user's graph."""
        return replace(self, size=self.relaxed_size, allowed=self.relaxed_allowed)
