"""Stages of a part of the pipeline, inside one group of the smallest level or over several whole ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numba import njit

from partitioner.methods.dp.weights import remaining_weights, weights_above
from partitioner.methods.pipeline.arrays import Bools, Burden, Costs, Hunt, Ints32, States, Table
from partitioner.methods.pipeline.ground import SLACK, new_table
from partitioner.methods.pipeline.kernel import sweep
from partitioner.methods.pipeline.levels.cuts import cut_costs, segment_costs
from partitioner.methods.pipeline.levels.layout import Layout, layout_of
from partitioner.methods.pipeline.levels.prices import Prices
from partitioner.methods.pipeline.loads import least_work, pipeline_of
from partitioner.methods.pipeline.model import behind_matters, burden_of, costs_of, demands_of
from partitioner.methods.pipeline.states import StateSpace
from partitioner.methods.relaxation import Relaxation
from partitioner.preprocess.ideals import Lattice
from partitioner.preprocess.problem import Floats, Ints, Problem
from partitioner.schedule.stash import held

UNENDING = 2**62
MOST_MEMORY = 1e300


@dataclass(frozen=True)
class Aim:
    """What is looked for: see :class:`partitioner.methods.pipeline.arrays.Hunt`.

    Parameters
    ----------
    threshold, limit, floor, summed
        As there.
    after
        Shape (groups + 1, I): what is outside an ideal adds at least, on so many groups.
    """

    threshold: float
    limit: float
    floor: float
    summed: bool
    after: Floats | None = None

    def hopeless(self, ideals: Ints, value: Floats, groups: int) -> Bools:
        """Shape of `ideals`: does all that holds one of them with this value exceed the limit in the end?"""
        if self.after is None:
            return value > self.limit
        after = self.after[groups, ideals]
        whole = value + after * (1 - SLACK) if self.summed else np.maximum(value, after)
        return np.asarray(whole > self.limit)


class Segments:
    """Sweeps over parts of a lattice on the devices of one group, or of several as one stage.

    Parameters
    ----------
    problem, lattice, relaxation
        The turned problem on all devices, its ideals and its relaxation.

    Attributes
    ----------
    layout
        Which devices are where.
    members
        Shape (I, n): the supernodes of every ideal.
    space
        The states of one group.
    """

    def __init__(self, problem: Problem, relaxation: Relaxation, lattice: Lattice) -> None:
        self.problem, self.relaxation, self.lattice = problem, relaxation, lattice
        self.layout: Layout = layout_of(problem)
        self.members = _members(lattice.parent, lattice.added, problem.n)
        self.small = replace(problem, count=self.layout.size)
        self.space = StateSpace(self.small)
        self.costs = costs_of(problem)
        self.demands = demands_of(problem)
        self.remaining = remaining_weights(lattice, relaxation.weight)
        self.rest = remaining_weights(lattice, least_work(problem))
        self.followed = behind_matters(problem)
        self.price = self._transfer_weight()
        pins = self.costs.pins, self.costs.enter
        self.cut = cut_costs(lattice.parent, lattice.added, self.costs.net_start, self.costs.net, *pins)
        self.table = new_table(lattice.size, self.space.count)
        self._burdens: dict[int, Burden] = {}
        self._unclosed: Ints32 = np.full((len(problem.count), lattice.size), -1, dtype=np.int32)
        self._growth = np.full(problem.work().shape, np.inf)

    def mask(self, low: int, high: int) -> Bools:
        """Shape (n,): the supernodes of one ideal without those of a smaller one."""
        return np.asarray(self.members[high] & ~self.members[low])

    def above(self, low: int) -> Bools:
        """Shape (I,): does an ideal hold a given one?"""
        return np.asarray(self.members[:, self.members[low]].all(axis=1))

    def below(self, high: int) -> Bools:
        """Shape (I,): is an ideal inside a given one?"""
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
        aim: Aim,
    ) -> Table:
        """The table of stages in one group that start behind `low`; up to `groups` further ones follow.

        Valid up to the next call. `opened` has shape (n,), `behind` devices are in use behind the group.
        """
        if behind not in self._burdens:
            self._burdens[behind] = burden_of(self.small, self.space, behind)
        self.table.value[low : high + 1] = np.inf
        self.table.value[low, 0] = start
        free = self.space.free + groups * self.layout.size
        hunt = self._hunt(low, high, opened, self._capacity(free, aim), aim)
        self._sweep(low, high, prices, self._burdens[behind], self.space.states, hunt, self.table, high)
        return self.table

    def over_groups(
        self, low: int, high: int, opened: Bools, prices: Prices, behind: int, start: float,
        kind: int, groups: list[int], slowdown: float, left: int, aim: Aim,
    ) -> Table:  # fmt: skip
        """The table of single stages on all devices of a kind in several groups, by number of devices.

        `groups` lists how many these may be; `left` are there.
        """
        size = int(self.layout.size[kind])
        copies = np.array([each * size for each in groups])
        most = int(copies.max())
        table = new_table(self.lattice.size, most + 1)
        table.value[low, 0] = start
        used = -(-np.arange(most + 1) // size)
        capacity = self._capacity((left - used)[:, None] * self.layout.size, aim)
        hunt = self._hunt(low, high, opened, capacity, aim)
        costs = self.costs._replace(bandwidth=self.costs.bandwidth / slowdown)
        thrifty = self.space.states.thrifty and not self.layout.bound
        states = _one_stage(len(self.layout.size), kind, most, thrifty)
        burden = self._spread(behind, copies, states)
        self._sweep(low, high, prices, burden, states, hunt, table, low + 1, costs)
        return table

    def too_heavy(self, low: int, highs: Ints, prices: Prices, rest: int, aim: Aim) -> Bools:
        """Shape of `highs`: is a segment too heavy for its group, or all after it for `rest` groups?

        Parameters
        ----------
        low, highs
            Where the segment starts, and where it may end.
        prices
            What it pays for nets that cross its ends.
        rest
            How many groups are left for what comes after it.
        aim
            With the threshold that devices may be loaded to.
        """
        weight, nets = self.remaining, self.problem.nets
        enter, leave = nets.cost * prices.enter, nets.cost * prices.leave
        ends = segment_costs(
            self.members, low, highs, nets.pins.start, nets.pins.items, nets.source, enter, leave
        )
        here = weight[low] - weight[highs] + self.price * ends
        after = weight[highs] + self.price * self.layout.slowdown[0] * self.cut[highs]
        group, others = self._capacity(np.array([[1], [rest]]) * self.layout.size, aim)
        return np.asarray((here > group) | (after > others))

    def _transfer_weight(self) -> float:
        """What a transfer that costs 1 takes of the joint capacity, at least."""
        if self.problem.communication != "sequential":
            return 0.0
        return float((self.relaxation.time_price * self.problem.fare)[self.layout.size > 0].min())

    def _spread(self, behind: int, copies: Ints, states: States) -> Burden:
        """What one stage takes of each device, infinitely much with a number of devices it may not have."""
        pipeline = pipeline_of(self.problem)
        most = int(copies.max())
        samples, versions = np.full((2, most + 1, most + 1), np.inf)
        for each in copies.tolist():
            samples[:, each] = versions[:, each] = 1
            if pipeline.schedule is not None:
                found = held(pipeline.schedule, behind, each, pipeline.microbatches)
                samples[:, each], versions[:, each] = found
        base = burden_of(self.small, self.space)
        shape = states.left.shape
        return base._replace(
            memory=np.minimum(base.memory, MOST_MEMORY),
            held=samples,
            versions=versions,
            least_held=np.full(shape, samples[0].min()),
            least_versions=np.full(shape, versions[0].min()),
            staged=True,
        )

    def _capacity(self, free: Ints, aim: Aim) -> Floats:
        capacity = self.relaxation.capacity(aim.threshold, np.maximum(free, 0), self.problem.memory)
        return np.asarray(capacity + SLACK * (self.relaxation.weight.sum() + capacity))

    def _hunt(self, low: int, high: int, opened: Bools, capacity: Floats, aim: Aim) -> Hunt:
        after, weight = self.problem.successors, np.where(opened, self.relaxation.weight, 0.0)
        return Hunt(
            summed=aim.summed,
            threshold=aim.threshold,
            limit=aim.limit,
            floor=aim.floor,
            capacity=capacity,
            remaining=self.remaining - self.remaining[high],
            above=weights_above(after.start, after.items, weight, self.lattice.linear),
            rest=self.rest * (1 - SLACK),
            growth=self._growth,
            easiest=self._unclosed,
            open=opened,
        )

    def _sweep(
        self, low: int, high: int, prices: Prices, burden: Burden, states: States, hunt: Hunt,
        table: Table, last: int, costs: Costs | None = None,
    ) -> None:  # fmt: skip
        costs = self._priced(costs or self.costs, prices, hunt.threshold)
        sweep(self.lattice, costs, burden, self.demands, states, hunt, table, low, min(last, high), UNENDING)

    def _priced(self, costs: Costs, prices: Prices, threshold: float) -> Costs:
        """The costs at these prices; one that is too large for any stage is as good as twice it."""
        fare = self.problem.fare[self.problem.pays]
        most = 2 * threshold * (self.problem.copies.max() / fare.min(initial=1.0))
        enter, leave = costs.enter * prices.enter, costs.leave * prices.leave
        return costs._replace(enter=np.minimum(enter, most), leave=np.minimum(leave, most))


@njit(cache=True)
def _members(parent, added, n):  # type: ignore[no-untyped-def]
    """Shape (I, n): the supernodes of every ideal."""
    inside = np.zeros((len(parent), n), np.bool_)
    for ideal in range(1, len(parent)):
        inside[ideal] = inside[parent[ideal]]
        inside[ideal, added[ideal]] = True
    return inside


def _one_stage(kinds: int, kind: int, most: int, thrifty: bool) -> States:
    """States of a single stage: how many devices of the kind it has."""
    left = np.zeros((most + 1, kinds), dtype=np.int64)
    left[0, kind] = most
    return States(left, np.ones(kinds, dtype=np.int64), 0, np.zeros(most + 1, dtype=np.int64), thrifty)
