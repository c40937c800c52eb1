"""Stages between cuts whose nodes run in the best of several ways.

What a stage can cost is a list of modes, none as good as another: the time, and what is held once, for each
sample in flight and as workspace. A device with the stages s in modes of the times t[s] and the memory o[s],
k[s], w[s] takes

    sum of t[s], where    sum of o[s] + max over samples in flight of sum of samples[s] * k[s] + max of w[s]

fits its memory. For two nodes that take 3 and hold 2, or take 4 and hold 1, the modes of their stage are
(6, 4), (7, 3) and (8, 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from partitioner.methods.virtual_stages._ways_core import StageWays, list_modes, ways_of_device
from partitioner.methods.virtual_stages.cut_costs import CutCosts, StageModes
from partitioner.methods.virtual_stages.kernel import Modes
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.variants import AlternativesProblem


@dataclass(frozen=True, eq=False)
class WayCosts(CutCosts):
    """What a stage costs at least, over the ways of its nodes.

    Parameters
    ----------
    gap
        How many stages there are at least between two that a device may have; None if none need be.
    """

    gap: int | None = None

    @cached_property
    def listed(self) -> StageWays:
        """The ways, with all that nodes pay for tensors to and from others."""
        assert isinstance(self.problem, AlternativesProblem)
        ways = self.problem.ways
        return StageWays(
            of_node=np.searchsorted(ways.owner, np.arange(self.problem.n + 1)),
            start=ways.start,
            time=np.where(ways.degree == self.degree, ways.time[self.kind], np.inf),
            once=ways.size + ways.parameters,
            kept=ways.activations,
            workspace=ways.workspace,
            link_start=ways.link_start,
            link=ways.link,
            link_cost=np.ascontiguousarray(ways.link_cost * self.problem.transfer_factor[self.kind]),
        )

    @cached_property
    def apart(self) -> StageWays:
        """The ways without what nodes do not pay if another stage of their device has the other node."""
        ways, problem = self.listed, self.problem
        assert isinstance(problem, AlternativesProblem)
        owner = problem.ways.owner[np.repeat(np.arange(len(ways.start) - 1), np.diff(ways.link_start))]
        lost = np.array(
            [self._may_share(*pair) for pair in zip(owner.tolist(), ways.link.tolist(), strict=True)]
        )
        if lost.all():
            return ways._replace(link_start=np.zeros_like(ways.link_start))
        return ways._replace(link_cost=np.where(lost[:, None], 0.0, ways.link_cost))

    def _may_share(self, one: int, other: int) -> bool:
        """Whether two supernodes may be in different stages of a device."""
        if self.gap is None:
            return True
        below, above = self.cuts.reach
        return bool(max(above[one] - below[other], above[other] - below[one]) >= self.gap)

    @property
    def runs(self) -> Bools:
        """Shape (n,): which supernodes may run on the kind, by this number of devices together."""
        return np.asarray(self.problem.allowed[self.kind] & np.isfinite(self._least_times))

    @property
    def work(self) -> Floats:
        """Shape (n,): the least time of every supernode, 0 for those that may not run on the kind."""
        return np.where(self.runs, self._least_times, 0.0)

    @property
    def _least_times(self) -> Floats:
        each = np.minimum.reduceat(self.listed.time, self.listed.start[:-1])
        return np.asarray(np.add.reduceat(each, self.listed.of_node[:-1]))

    def may_lack(self, samples: int) -> bool:
        """Whether the memory may not suffice for stages with some samples in flight, in some ways."""
        ways = self.listed
        held = np.where(np.isfinite(ways.time), ways.once + samples * ways.kept, 0.0)
        most = float(np.maximum.reduceat(held, ways.start[:-1]).sum())
        return most + float(ways.workspace.max(initial=0.0)) > self.memory

    @cached_property
    def _points(self) -> tuple[Ints, Ints, Floats]:
        """The modes of the stages: the first of each, one after its last, and their values."""
        cuts, ways = self.cuts, self.apart
        if not self.may_lack(self.problem.pipeline.microbatches or 1):  # the fastest way is the best one
            free = np.zeros_like(ways.once)
            ways = ways._replace(once=free, kept=free, workspace=free)
        ways = ways._replace(time=np.where(self._by_way, ways.time, np.inf))
        first, end = (np.zeros(cuts.nested.shape, dtype=np.int64) for _ in range(2))
        found = list_modes(cuts.member, cuts.nested, cuts.size, ways, self.memory, first, end)
        return first, end, found

    @property
    def _by_way(self) -> Bools:
        """Shape (W,): whether the supernode of a way may run on the kind."""
        ways = self.listed
        owner = np.repeat(np.arange(self.problem.n), np.diff(ways.of_node))
        return np.asarray(np.repeat(self.runs[owner], np.diff(ways.start)))

    @cached_property
    def possible(self) -> Bools:
        """Whether there is a stage between two cuts that a device holds by itself."""
        first, end, _ = self._points
        return np.asarray(end > first)

    @cached_property
    def busy(self) -> Floats:
        """The processing time in the fastest mode; infinity where there is no stage."""
        return self._of_modes(0, np.inf)

    @cached_property
    def once(self) -> Floats:
        """The least memory that does not depend on the samples in flight, without workspace."""
        return self._of_modes(1, 0.0)

    @cached_property
    def kept(self) -> Floats:
        """The least activations of one sample."""
        return self._of_modes(2, 0.0)

    @cached_property
    def workspace(self) -> Floats:
        """The least largest workspace of a supernode."""
        return self._of_modes(3, 0.0)

    def _of_modes(self, value: int, nothing: float) -> Floats:
        """Return the least of a value over the modes of each stage; `nothing` where there is no stage."""
        first, _, points = self._points
        found = np.full(first.shape, nothing)
        if len(points):  # the stages that exist have modes that follow one another
            found[self.possible] = np.minimum.reduceat(points[:, value], first[self.possible])
        return found

    @cached_property
    def modes(self) -> StageModes:
        """The modes of the stages, the fastest first."""
        first, end, points = self._points
        fastest = np.repeat(self.busy[self.possible], (end - first)[self.possible])
        return StageModes(first, end, Modes(points[:, 0] - fastest, *np.ascontiguousarray(points[:, 1:].T)))


@dataclass(frozen=True, eq=False)
class DeviceWays:
    """The time of a device in the best ways of its nodes, and the way of every choice, -1 for others."""

    time: float
    way: Ints


def ways_on(costs: WayCosts, stages: list[Ints], samples: Ints) -> DeviceWays:
    """Return the best ways of the stages of a device; its time is infinite if there are none.

    Parameters
    ----------
    costs
        The costs of the kind of the device.
    stages
        The supernodes of each stage.
    samples
        The combinations of samples in flight, shape (combinations, stages).
    """
    nodes, chunk = np.concatenate(stages), np.repeat(np.arange(len(stages)), [len(each) for each in stages])
    inside = np.zeros(costs.problem.n, dtype=bool)
    inside[nodes] = True
    way = np.full(len(costs.listed.start) - 1, -1)
    held = samples.astype(np.float64)
    return DeviceWays(ways_of_device(costs.listed, nodes, chunk, inside, held, costs.memory, way), way)
