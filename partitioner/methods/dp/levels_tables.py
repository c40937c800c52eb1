"""Sweeps over parts of a lattice on one group of devices, their bounds, and the labels that they lead to.

:class:`Segments` fills the table of the stages inside one group, or of one stage over several whole groups.
:class:`Remainders` bounds what is left by the problem in which all links are as fast as inside a group, and
:class:`Reached` holds the labels of ideals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from partitioner.methods.bounds.relaxation import SLACK, Relaxation
from partitioner.methods.dp._fill_core import sweep
from partitioner.methods.dp.lattice import (
    Ints32,
    Lattice,
    chain_lattice,
    ideal_lattice,
    remaining_weights,
    weights_above,
)
from partitioner.methods.dp.levels_model import (
    End,
    GroupLayout,
    Label,
    LabelOrigin,
    Outside,
    Prices,
    SearchTarget,
    Stretch,
    layout_of,
)
from partitioner.methods.dp.levels_weights import Weights
from partitioner.methods.dp.pipeline_loads import least_work
from partitioner.methods.dp.pipeline_tables import PipelineTables, StateSpace, new_table
from partitioner.methods.dp.stages import (
    Bools,
    DeviceStates,
    MemoryModel,
    PipelineSearchSpec,
    PipelineTable,
    StageCosts,
    StageTerms,
    costs_of,
    memory_model_of,
    one_group,
    stage_limits_of,
)
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.in_flight import samples_in_flight


def one_stage(kinds: int, kind: int, most: int, dominance: bool) -> DeviceStates:
    """Return the states of a single stage: the number of devices of one kind that it has, up to `most`."""
    left = np.zeros((most + 1, kinds), dtype=np.int64)
    left[0, kind] = most
    one, none = np.ones(kinds, dtype=np.int64), np.zeros(kinds, dtype=np.int64)
    return DeviceStates(left, one, none, one, np.zeros(most + 1, dtype=np.int64), dominance)


def spread(
    problem: PipelineProblem, space: StateSpace, behind: int, copies: Ints, states: DeviceStates
) -> MemoryModel:
    """Return the memory that one stage takes on each device, infinity for numbers of devices not in `copies`.

    Parameters
    ----------
    problem, space
        The problem on the devices of one group, and its states.
    behind
        The number of devices of the stages after it.
    copies
        The numbers of devices that it may have.
    states
        Its states, from :func:`one_stage`.
    """
    pipeline = problem.pipeline
    most = int(copies.max())
    samples, versions = np.full((2, most + 1, most + 1), np.inf)
    for each in copies[copies >= pipeline.fewest].tolist():
        samples[:, each] = versions[:, each] = 1
        if pipeline.schedule is not None:
            found = samples_in_flight(pipeline.schedule, behind, each, pipeline.microbatches)
            samples[:, each], versions[:, each] = found
        if len(pipeline.divided):
            versions[:, each] = 1 / each
    base = memory_model_of(problem, space.states)
    shape = states.left.shape
    return base._replace(
        in_flight=samples,
        versions=versions,
        least_in_flight=np.full(shape, samples[0].min()),
        least_versions=np.full(shape, versions[0].min()),
        staged=True,
    )


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
        self.members = lattice.membership()
        self.small = replace(problem, count=self.layout.size)
        self.space = StateSpace(self.small)
        self.costs = costs_of(problem)
        self.ends, self.stage_limits = one_group(len(problem.count)), stage_limits_of(problem)
        self.weights = Weights(problem, relaxation, lattice, self.members, self.layout)
        self.rest = remaining_weights(lattice, least_work(problem))
        self.followed = problem.pipeline.behind_matters
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


class Remainders:
    """The source of the least values of stages outside an ideal, by the groups that are left.

    The stages are placed from the other end, on links as fast as inside a group, with the least memory.

    Parameters
    ----------
    problem, relaxation, lattice
        The problem, its relaxation and the lattice of its ideals.
    layout
        The groups of devices.
    """

    def __init__(
        self, problem: PipelineProblem, relaxation: Relaxation, lattice: Lattice, layout: GroupLayout
    ) -> None:
        self.layout = layout
        pipeline = problem.pipeline
        limits = replace(pipeline.limits, stages=0, all_devices=False)
        flat = replace(problem, size=problem.least_memory).without_levels
        once = replace(flat.pipeline, schedule=None, limits=limits, divided=pipeline.divided[:0])
        flat = replace(flat, pipeline=once)
        other = flat.turned()
        opposite = _opposite(other, lattice)
        mirrored = replace(relaxation, weight=relaxation.weight[::-1].copy())
        self.tables = PipelineTables(other, mirrored, opposite)
        self.tables.easiest[:] = -1
        self.complement = _complements(lattice, opposite)
        self.used = problem.count - self.tables.space.free

    def outside(self, threshold: float, limit: float, floor: float, summed: bool) -> Outside:
        """Return the least values of stages outside every ideal, as far as they are within the limits."""
        tables = self.tables
        filling = tables.summing(threshold, limit) if summed else tables.filling(threshold, floor)
        filling.advance(UNENDING)
        return Outside(filling.table.value[self.complement], self.used)

    def by_groups(self, outside: Outside) -> Floats:
        """Return the least value outside each ideal by the number of groups, shape (groups + 1, I)."""
        ideals = np.arange(len(outside.value))
        groups = range(self.layout.groups + 1)
        return np.array([outside.least(ideals, number * self.layout.size) for number in groups])


def _opposite(other: PipelineProblem, lattice: Lattice) -> Lattice:
    """Return the lattice of the turned problem, whose ideals are the complements of those of a lattice."""
    if lattice.linear:
        return chain_lattice(other.n - 1 - np.argsort(lattice.rank)[::-1])
    opposite = ideal_lattice(other, lattice.size, 2**31 - 1)
    assert opposite is not None
    return opposite


def _complements(lattice: Lattice, opposite: Lattice) -> Ints:
    """Return the ideal of the turned problem that is the complement of each ideal, shape (I,).

    Sets are compared by sums of random numbers modulo 2**64.
    """
    mark = np.random.default_rng(0).integers(0, 2**63, len(lattice.rank)).astype(np.uint64)
    outside = mark.sum(dtype=np.uint64) - lattice.membership() @ mark
    inside = opposite.membership() @ mark[::-1]
    order = np.argsort(inside)
    return np.asarray(order[np.searchsorted(inside[order], outside)])


class Reached:
    """The labels of the ideals of a stretch.

    Parameters
    ----------
    segments
        Makes the sweeps.
    stretch, target
        The stretch, and the values that are looked for.

    Attributes
    ----------
    value, step
        The value of every label of an ideal, and how it was reached.
    within
        Shape (n,): the supernodes of the stretch.
    slowdown
        The factor of links between its groups.
    tied
        Whether it matters which groups are used, and not only how many.
    plain
        Whether only the value of a segment counts, and not its devices and stages.
    """

    def __init__(self, segments: Segments, stretch: Stretch, target: SearchTarget) -> None:
        self.segments, self.stretch, self.target = segments, stretch, target
        self.within = segments.mask(stretch.low, stretch.high)
        self.value: dict[int, dict[Label, float]] = {stretch.low: {Label(stretch.first, 0, 0): 0.0}}
        self.step: dict[tuple[int, Label], LabelOrigin] = {}
        self.limits = segments.problem.pipeline.limits
        self.slowdown = float(segments.layout.slowdown[stretch.level - 1])
        self.tied = segments.layout.bound or stretch.level > 1
        self.plain = not (segments.followed or self.limits.stages or self.limits.all_devices)

    def starts(self, low: int) -> Iterator[tuple[int, list[Label]]]:
        """Yield positions from which to extend an ideal, each with the best labels to extend there."""
        labels, end = self._best(low), self.stretch.end
        positions = range(end) if self.tied else sorted({label.position for label in labels})
        for position in positions:
            ready = [label for label in labels if label.position <= position]
            if self.limits.all_devices or not self.tied:
                ready = [label for label in ready if label.position == position]
            for behind in sorted({self.behind(label) for label in ready}) if position < end else ():
                yield position, [label for label in ready if self.behind(label) == behind]

    def behind(self, label: Label) -> int:
        """Return the number of devices behind a label; 0 if memory does not depend on it."""
        return self.stretch.behind + label.devices if self.segments.followed else 0

    @property
    def complete(self) -> float:
        """The value of the best whole pipeline so far; infinity if more than the largest load counts."""
        whole = self.stretch.level == len(self.segments.layout.slowdown)
        if not whole or self.target.summed or self.limits.stages or self.limits.all_devices:
            return float("inf")
        return min(self.value.get(self.stretch.high, {}).values(), default=float("inf"))

    def least(self, low: int, labels: list[Label]) -> float:
        """Return the smallest value of some labels of an ideal."""
        return min(self.value[low][label] for label in labels)

    def opened(self, low: int, position: int, groups: int) -> Bools:
        """Return which supernodes later stages may hold in `groups` groups from a position on, shape (n,)."""
        at_home = self.segments.layout.at_home(position, position + groups)
        return self.segments.mask(low, self.stretch.high) & at_home

    def at_home(self, low: int, high: int, first: int, end: int) -> bool:
        """Whether all supernodes between two ideals that are pinned are pinned to these groups."""
        layout = self.segments.layout
        return not layout.bound or bool(layout.at_home(first, end)[self.segments.mask(low, high)].all())

    def offer(self, label: Label, high: int, end: End, value: float, step: LabelOrigin) -> None:
        """Keep a label of ideal `high` unless it exceeds a limit or is no better than the known value."""
        new = Label(
            label.position + end.label.position,
            label.devices + end.label.devices if self.segments.followed or self.limits.all_devices else 0,
            label.stages + end.label.stages if self.limits.stages else 0,
        )
        groups = self.segments.layout.groups - new.position
        if self.target.hopeless(np.array([high]), np.array([value]), groups)[0] or new.stages > (
            self.limits.stages or new.stages
        ):
            return
        found = self.value.setdefault(high, {})
        if value < found.get(new, np.inf):
            found[new] = value
            self.step[high, new] = step

    def same(self, label: Label, wanted: Label) -> bool:
        """Whether two labels agree in all fields that count."""
        counted = self.segments.followed or self.limits.all_devices
        return (
            label.position == wanted.position
            and (not counted or label.devices == wanted.devices)
            and (not self.limits.stages or label.stages == wanted.stages)
        )

    def _best(self, ideal: int) -> list[Label]:
        """Return the labels of an ideal that no other label dominates."""
        value, floor, kept = self.value[ideal], self.target.floor, list[Label]()
        for label in sorted(value):
            mine = max(value[label], floor)
            if self.limits.all_devices or not any(
                other.stages == label.stages and other.devices <= label.devices and value[other] <= mine
                for other in kept
            ):
                kept.append(label)
        return kept
