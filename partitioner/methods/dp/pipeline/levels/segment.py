"""Tables of stages inside one group of the smallest level, or of one stage over several whole groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp._fill_core import sweep
from partitioner.methods.dp.ideals import Lattice
from partitioner.methods.dp.pipeline.arrays import (
    Bools,
    DeviceStates,
    Ints32,
    PipelineSearchSpec,
    PipelineTable,
)
from partitioner.methods.dp.pipeline.levels.layout import GroupLayout, layout_of
from partitioner.methods.dp.pipeline.levels.prices import Prices
from partitioner.methods.dp.pipeline.levels.search_target import SearchTarget
from partitioner.methods.dp.pipeline.levels.spread import one_stage, spread
from partitioner.methods.dp.pipeline.levels.weights import Weights
from partitioner.methods.dp.pipeline.loads import least_work
from partitioner.methods.dp.pipeline.states import StateSpace
from partitioner.methods.dp.pipeline.tables import SLACK, new_table
from partitioner.methods.dp.stages import (
    MemoryModel,
    StageCosts,
    StageTerms,
    behind_matters,
    costs_of,
    memory_model_of,
    one_group,
    stage_limits_of,
)
from partitioner.methods.dp.weights import remaining_weights, weights_above
from partitioner.problem.arrays import Floats
from partitioner.problem.variants import PipelineProblem

UNENDING = 2**62


class Segments:
    """The source of sweeps over parts of a lattice on one group of devices, or on several for one stage.

    Parameters
    ----------
    problem, lattice, relaxation
        The problem on all devices, turned if need be, the lattice of its ideals and its relaxation.

    Attributes
    ----------
    layout
        The groups of devices.
    members
        Shape (I, n): the supernodes of every ideal.
    space
        The states of one group.
    weights
        The weights of the relaxation, which show what is too heavy for groups.
    """

    def __init__(self, problem: PipelineProblem, relaxation: Relaxation, lattice: Lattice) -> None:
        self.problem, self.relaxation, self.lattice = problem, relaxation, lattice
        self.layout: GroupLayout = layout_of(problem)
        self.members = _members(lattice.parent, lattice.added, problem.n)
        self.small = replace(problem, count=self.layout.size)
        self.space = StateSpace(self.small)
        self.costs = costs_of(problem)
        self.ends, self.stage_limits = one_group(len(problem.count)), stage_limits_of(problem)
        self.weights = Weights(problem, relaxation, lattice, self.layout)
        self.rest = remaining_weights(lattice, least_work(problem))
        self.followed = behind_matters(problem)
        self.table = new_table(lattice.size, self.space.count)
        self._memory_models: dict[int, MemoryModel] = {}
        self._unclosed: Ints32 = np.full((len(problem.count), lattice.size), -1, dtype=np.int32)
        self._growth = np.full(problem.work().shape, np.inf)

    def mask(self, low: int, high: int) -> Bools:
        """Return the supernodes of one ideal without those of a smaller one, shape (n,)."""
        return np.asarray(self.members[high] & ~self.members[low])

    def above(self, low: int) -> Bools:
        """Return whether each ideal holds a given one, shape (I,)."""
        return np.asarray(self.members[:, self.members[low]].all(axis=1))

    def below(self, high: int) -> Bools:
        """Return whether each ideal is inside a given one, shape (I,)."""
        return np.asarray(~self.members[:, ~self.members[high]].any(axis=1))

    def in_group(
        self,
        low: int,
        high: int,
        opened: Bools,
        prices: Prices,
        behind: int,
        start: float,
        groups: int,
        target: SearchTarget,
        last: int | None = None,
    ) -> PipelineTable:
        """Return the table of stages in one group from ideal `low` on; up to `groups` further groups follow.

        The stages start before the ideal `last`, by default before `high`. `opened`, shape (n,), says which
        supernodes they may hold, and `behind` devices are in use behind the group. The table is overwritten
        by the next call.
        """
        if behind not in self._memory_models:
            self._memory_models[behind] = memory_model_of(self.small, self.space.states, behind)
        self.table.value[low : high + 1] = np.inf
        self.table.value[low, 0] = start
        free = self.space.free + groups * self.layout.size
        spec = self._spec(low, high, opened, prices, self.weights.capacity(free, target.threshold), target)
        self._sweep(
            low, high, prices, self._memory_models[behind], self.space.states, spec, self.table, last or high
        )
        return self.table

    def over_groups(
        self, low: int, high: int, opened: Bools, prices: Prices, behind: int, start: float,
        kind: int, groups: list[int], slowdown: float, left: int, target: SearchTarget,
    ) -> PipelineTable:  # fmt: skip
        """Return the table of single stages on all devices of a kind in several groups, by number of devices.

        `groups` lists the possible numbers of groups; `left` groups are left.
        """
        size = int(self.layout.size[kind])
        copies = np.array([each * size for each in groups])
        most = int(copies.max())
        table = new_table(self.lattice.size, most + 1)
        table.value[low, 0] = start
        used = -(-np.arange(most + 1) // size)
        capacity = self.weights.capacity((left - used)[:, None] * self.layout.size, target.threshold)
        spec = self._spec(low, high, opened, prices, capacity, target)
        costs = self.costs._replace(bandwidth=self.costs.bandwidth / slowdown)
        dominance = self.space.states.dominance and not self.layout.bound
        states = one_stage(len(self.layout.size), kind, most, dominance)
        memory_model = spread(self.small, self.space, behind, copies, states)
        self._sweep(low, high, prices, memory_model, states, spec, table, low + 1, costs)
        return table

    def _spec(
        self, low: int, high: int, opened: Bools, prices: Prices, capacity: Floats, target: SearchTarget
    ) -> PipelineSearchSpec:
        weight = self.weights.between(self.mask(low, high), prices)
        remaining = remaining_weights(self.lattice, weight)
        after, weight = self.problem.successors, np.where(opened, weight, 0.0)
        return PipelineSearchSpec(
            summed=target.summed,
            threshold=target.threshold,
            limit=target.limit,
            floor=target.floor,
            capacity=capacity,
            remaining=remaining - remaining[high],
            above=weights_above(after.start, after.items, weight, self.lattice.linear),
            rest=self.rest * (1 - SLACK),
            growth=self._growth,
            easiest=self._unclosed,
            open=opened,
        )

    def _sweep(
        self, low: int, high: int, prices: Prices, memory_model: MemoryModel, states: DeviceStates,
        spec: PipelineSearchSpec, table: PipelineTable, last: int, costs: StageCosts | None = None,
    ) -> None:  # fmt: skip
        costs = self._priced(costs or self.costs, prices, spec.threshold)
        model = StageTerms(costs, self.ends, memory_model, self.stage_limits)
        sweep(self.lattice, model, states, spec, table.linked(), low, min(last, high), UNENDING)

    def _priced(self, costs: StageCosts, prices: Prices, threshold: float) -> StageCosts:
        """Return the costs at these prices, with those that are too large for any stage clipped."""
        transfer_factor = self.problem.transfer_factor[self.problem.pays]
        most = 2 * threshold * (self.problem.copies.max() / transfer_factor.min(initial=1.0))
        enter, leave = costs.enter * prices.enter, costs.leave * prices.leave
        return costs._replace(enter=np.minimum(enter, most), leave=np.minimum(leave, most))


@njit(cache=True)
def _members(parent, added, n):  # type: ignore[no-untyped-def]
    """Return the supernodes of every ideal, shape (I, n)."""
    inside = np.zeros((len(parent), n), np.bool_)
    for ideal in range(1, len(parent)):
        inside[ideal] = inside[parent[ideal]]
        inside[ideal, added[ideal]] = True
    return inside
