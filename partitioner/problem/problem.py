"""The contracted problem in arrays, which is the only input of a method."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from partitioner.problem.arrays import Bools, Floats, Ints, Rows
from partitioner.problem.measure import Measure
from partitioner.problem.pipeline import Pipeline
from partitioner.problem.tasks import Tasks


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


@dataclass(frozen=True, eq=False)
class Problem:
    """`n` supernodes to be placed on devices of `K` kinds; for chains numbered in a topological order.

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
    coarser
        The same graph with all free nodes merged, at that risk; None where nothing is left to merge.
    measure, split
        The definition of a solution's value, and the shape of the split, see :func:`partitioner.solve`.
    ordered
        Whether the parts are ordered, as the stages of a chain are.
    regions
        The graphs in which parts must be contiguous; empty unless the split is convex.
    contiguous
        Shape (K,): whether the parts on devices of that kind must be contiguous.
    chain
        The same graph contracted for chains, as a start for other splits; None for chains.
    backward, group
        For latency: shape (n,), True for nodes of the backward pass, and the class of the nodes that
        must share a device, numbered from 0.
    subgraphs
        For latency: how many subgraphs of each pass a device that pays for transfers may hold.
    output
        Shape (n,): for chains, the cost of the forward tensors that a supernode produces for others in the
        user's graph; empty if supernodes have been merged since.
    pipeline
        Data for replicas, levels, schedules and limits; None if the request has none of them.
    relaxed_pipeline
        The same without limits and without what was merged at the risk of losing the optimum; None where
        nothing was risked.
    tasks
        The user's nodes one by one, for methods that place operators; None for others.
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
    coarser: Problem | None = None
    measure: Measure = Measure.LARGEST_LOAD
    split: str = "chain"
    ordered: bool = True
    regions: tuple[Region, ...] = ()
    contiguous: Bools = field(default_factory=lambda: np.ones(0, dtype=bool))
    chain: Problem | None = None
    backward: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    group: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    subgraphs: int = 1
    output: Floats = field(default_factory=lambda: np.zeros(0))
    pipeline: Pipeline | None = None
    relaxed_pipeline: Pipeline | None = None
    tasks: Tasks | None = None

    @property
    def n(self) -> int:
        """The number of supernodes."""
        return len(self.size)

    @property
    def pays(self) -> Bools:
        """Shape (K,): whether a device of the kind pays for transfers."""
        return self.transfer_factor > 0

    @property
    def copies(self) -> Ints:
        """Shape (K,): how many devices of the kind may share a stage, at least 1."""
        most = 1 if self.pipeline is None else self.pipeline.replicas
        return np.clip(self.count, 1, most)

    @property
    def lossless(self) -> bool:
        """Whether an optimum of this problem is an optimum of the user's graph."""
        same_size = np.array_equal(self.size, self.relaxed_size) and self.relaxed_pipeline is None
        return same_size and np.array_equal(self.allowed, self.relaxed_allowed)

    def work(self) -> Floats:
        """Return the sum of forward and backward time, shape (K, n); infinity where not allowed."""
        return np.where(self.allowed, self.time.sum(axis=1), np.inf)

    def relaxed(self) -> Problem:
        """Return the problem whose optimum is a lower bound of that of the user's graph."""
        pipeline = self.relaxed_pipeline or self.pipeline
        return replace(self, size=self.relaxed_size, allowed=self.relaxed_allowed, pipeline=pipeline)
