"""The types of problem: each has what only the methods for its split and measure need to know.

`ChainProblem` and `PipelineProblem` ask for a chain, `PartsProblem` for a convex or free split of least load,
`SampleProblem` for the least time of one sample. Methods that place operators one by one are given an
`OperatorProblem`, by the measure `OperatorParts`, `OperatorSample` or, for makespans, `OperatorNodes`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.pipeline import Pipeline
from partitioner.problem.problem import Problem, Region
from partitioner.problem.tasks import Tasks
from partitioner.problem.ways import NodeWays


@dataclass(frozen=True, eq=False, kw_only=True)
class ChainProblem(Problem):
    """Stages of a chain are asked for; supernodes are numbered in a topological order.

    Parameters
    ----------
    output
        Shape (n,): the cost of the forward tensors that a supernode produces for others in the user's graph;
        empty if supernodes have been merged since.
    coarser
        The same graph with all free nodes merged, at the risk of losing the optimum; None where nothing is
        left to merge.
    """

    output: Floats
    coarser: Self | None = None

    def turned(self) -> Self:
        """Return the problem with every edge of precedence reversed; supernode v becomes n - 1 - v.

        Its chains are those of the problem with the last stage first. Its `coarser` is None.
        """
        last = self.n - 1
        return replace(
            self,
            time=self.time[:, :, ::-1].copy(),
            size=self.size[::-1].copy(),
            allowed=self.allowed[:, ::-1].copy(),
            successors=self.predecessors.turned(),
            predecessors=self.successors.turned(),
            nets=self.nets.turned(self.n),
            member=last - self.member,
            relaxed_size=self.relaxed_size[::-1].copy(),
            relaxed_allowed=self.relaxed_allowed[:, ::-1].copy(),
            coarser=None,
            output=self.output[::-1].copy(),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class PipelineProblem(ChainProblem):
    """Stages with replicas, levels, schedules or limits are asked for.

    Parameters
    ----------
    pipeline
        Data for replicas, levels, schedules and limits.
    relaxed_pipeline
        The same without limits and without what was merged at the risk of losing the optimum; None where
        nothing was risked.
    """

    pipeline: Pipeline
    relaxed_pipeline: Pipeline | None = None

    @property
    def lossless(self) -> bool:
        """Whether an optimum of this problem is an optimum of the user's graph."""
        return self.relaxed_pipeline is None and super().lossless

    @property
    def relaxed(self) -> Self:
        """The problem whose optimum is a lower bound of that of the user's graph."""
        return replace(super().relaxed, pipeline=self.relaxed_pipeline or self.pipeline)

    @property
    def without_levels(self) -> Self:
        """The problem with all devices in one group, in which no pipeline costs more."""
        flat = replace(self.pipeline, group=self.pipeline.group[:0], slowdown=self.pipeline.slowdown[:0])
        return replace(self, pipeline=flat)

    @property
    def least_memory(self) -> Floats:
        """Shape (n,): the least memory that each supernode takes on a device."""
        size, divided, activations = self.pipeline.memory_of(self.size)
        if len(self.pipeline.divided):
            divided = divided / self.copies.max()
        return size + divided + activations

    @property
    def lightest(self) -> Self:
        """The problem whose relaxation takes the least memory of every supernode."""
        return replace(self, relaxed_size=self.relaxed.least_memory)

    def turned(self) -> Self:
        """Return the problem with every edge of precedence reversed; supernode v becomes n - 1 - v."""
        light = self.relaxed_pipeline
        return replace(
            super().turned(), pipeline=self.pipeline.turned(), relaxed_pipeline=light and light.turned()
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class AlternativesProblem(PipelineProblem):
    """Stages of a chain whose nodes may be run in several ways are asked for.

    Parameters
    ----------
    ways
        All ways to run the nodes.
    piper
        Whether costs are those of Piper's model: copies exchange weights once a batch, divide it, and are no
        more than its microbatches.
    block
        Shape (n,): whether a supernode is one of the blocks that the network repeats.
    degree
        The only degree that stages may have; None for any.
    """

    ways: NodeWays
    piper: bool
    block: Bools
    degree: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class PartsProblem(Problem):
    """Parts of a convex or free split are asked for.

    Parameters
    ----------
    regions
        The graphs in which parts must be contiguous; empty unless the split is convex.
    contiguous
        Shape (K,): whether the parts on devices of that kind must be contiguous.
    chain
        The same graph contracted for chains, as a start.
    """

    regions: tuple[Region, ...]
    contiguous: Bools
    chain: ChainProblem

    @classmethod
    def around(cls, chain: ChainProblem) -> Self:
        """Return the problem of convex parts of the same supernodes; the stages of a chain are such parts."""
        before = chain.predecessors
        edges = np.stack((before.items, np.repeat(np.arange(chain.n), np.diff(before.start))), axis=1)
        common = {each.name: getattr(chain, each.name) for each in fields(Problem)}
        return cls(
            **common | {"split": "convex", "ordered": False},
            regions=(Region(np.arange(chain.n), edges),),
            contiguous=np.ones(len(chain.count), dtype=bool),
            chain=chain,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class NodesProblem(Problem):
    """Nothing is merged: every supernode is one node, numbered in a topological order.

    Parameters
    ----------
    group
        Shape (n,): the class of the nodes that must share a device, numbered from 0.
    """

    group: Ints


@dataclass(frozen=True, eq=False, kw_only=True)
class SampleProblem(NodesProblem):
    """The least time of one sample is asked for.

    Parameters
    ----------
    backward
        Shape (n,): True for nodes of the backward pass.
    subgraphs
        How many subgraphs of each pass a device that pays for transfers may hold.
    chain
        The same graph contracted for chains, as a start.
    """

    backward: Bools
    subgraphs: int
    chain: ChainProblem


@dataclass(frozen=True, eq=False, kw_only=True)
class OperatorProblem(Problem):
    """Operators are to be placed one by one.

    Parameters
    ----------
    tasks
        The user's nodes.
    """

    tasks: Tasks


@dataclass(frozen=True, eq=False, kw_only=True)
class OperatorNodes(OperatorProblem, NodesProblem):
    """Operators are to be placed one by one; the end of the last one counts. Supernodes are the tasks."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OperatorParts(OperatorProblem, PartsProblem):
    """Operators are to be placed one by one; the loads of their devices count."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OperatorSample(OperatorProblem, SampleProblem):
    """Operators are to be placed one by one; the time of one sample counts."""


AnyOperators = OperatorNodes | OperatorParts | OperatorSample
