"""The tables of the dynamic program over pipelines: states of devices in use, fillings, and groups.

A table has a value for each ideal and each state (:class:`StateSpace`); over explicit groups of devices also
for each pair of the groups of the last stage and of the next one (:class:`GroupTables`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from partitioner.methods.bounds.relaxation import SLACK, Relaxation
from partitioner.methods.dp._fill_core import sweep
from partitioner.methods.dp._stages_core import NOWHERE
from partitioner.methods.dp.batch_intervals import BatchIntervals, LoadInterval
from partitioner.methods.dp.bracket import UNLIMITED, Stopped, TableBracket, TableFilling
from partitioner.methods.dp.lattice import Lattice, easiest_followers, remaining_weights, weights_above
from partitioner.methods.dp.pipeline_loads import (
    largest_copies,
    least_work,
    pipeline_value,
    samples,
    stage_loads,
)
from partitioner.methods.dp.stages import (
    Bools,
    DeviceStates,
    LinkedTable,
    PipelineSearchSpec,
    PipelineTable,
    StageCosts,
    StageTerms,
    costs_of,
    memory_model_of,
    one_group,
    stage_growth,
    stage_limits_of,
)
from partitioner.methods.method import ROUNDING, Part, meets
from partitioner.problem.arrays import Ints
from partitioner.problem.problem import Problem
from partitioner.problem.variants import PipelineProblem

BYTES_PER_STATE = 17
HEAVY = 50_000  # states above which ideals take long
MOST_ASKED = 40  # intervals of largest loads whose lower bound is raised


class StateSpace:
    """All vectors of used devices by kind in mixed radix, with the number of stages if that is needed.

    It is needed if the number of stages is fixed and a stage may have several devices.

    Parameters
    ----------
    problem
        The problem, whose counts, replicas and limits are used.

    Attributes
    ----------
    count
        How many states there are; the first one uses no device.
    free
        Shape (S, K): devices that a state leaves.
    states
        The arrays that the kernel reads.
    final
        Shape (S,): whether a pipeline may end with these devices.
    """

    def __init__(self, problem: Problem) -> None:
        limits, counted = problem.limits, problem.counts_stages
        radix = problem.count + 1
        stride = np.concatenate((np.ones(1, np.int64), np.cumprod(radix)))
        self.count = problem.states
        number = np.arange(self.count)
        used = (number[:, None] // stride[:-1]) % radix
        behind = used.sum(axis=1)
        stages = number // stride[-1] if counted else behind
        self.free: Ints = problem.count - used
        left = np.minimum(self.free, largest_copies(problem))
        jump, fewest = np.full(len(radix), stride[-1] if counted else 0), np.ones_like(radix)
        spans, stride = problem.spans, stride[:-1]
        if len(spans):
            more = np.arange(len(radix) - len(spans), len(radix))
            fits = (self.free[:, None, : more[0]] >= spans).all(axis=2)
            fewest[more], stride[more] = spans.sum(axis=1), 0
            jump[more] += spans @ stride[: more[0]]
            left[:, more] = np.where(fits, fewest[more], 0)
        left[(stages >= limits.stages) & (limits.stages > 0)] = 0
        self.states = DeviceStates(
            left=left,
            stride=stride,
            jump=jump,
            fewest=fewest,
            behind=behind,
            dominance=not limits.all_devices and limits.stages == 0,
        )
        enough = (self.free == 0).all(axis=1) | (not limits.all_devices)
        self.final: Bools = enough & ((stages == limits.stages) | (limits.stages == 0))

    def step(self, kind: int, copies: int) -> int:
        """Return by how much a stage on `copies` devices of a kind changes the number of the state."""
        return int(copies * self.states.stride[kind] + self.states.jump[kind])


def state_bytes(problem: Problem) -> int:
    """Return the bytes that the table takes for each ideal, times :func:`heaviness`."""
    count = problem.states
    return BYTES_PER_STATE * count * heaviness(count)


def heaviness(states: int) -> int:
    """Return a weight in the memory budget for many states, so that no ideal takes long; 1 if they are few.

    Examples
    --------
    >>> heaviness(50_000), heaviness(390_625)
    (1, 61)
    """
    return max(1, states**2 // HEAVY**2)


@dataclass(eq=False)
class BatchBracket(TableBracket):
    """The search for the pipeline of a lattice with the least time for a batch."""

    tables: PipelineTables
    intervals: BatchIntervals = field(init=False)

    def narrow(self, from_top: bool = False) -> None:
        """Find the best pipeline; then `complete` says whether the search ended without reaching a limit."""
        self.intervals = BatchIntervals(samples(self.tables.problem) - 1)
        low = self.tables.relaxation.bound * (1 - ROUNDING)
        self.intervals.add(low, UNLIMITED, float(self.tables.rest[0]), self.value)
        try:
            while self.intervals.open:
                self.bound = max(self.bound, min(self.intervals.open[0].bound, self.value))
                if self.closed:
                    break
                self._ask(self.intervals.next())
            else:
                self.bound = self.value
            self.complete = True
        except Stopped:
            self._hurry()

    def _ask(self, interval: LoadInterval) -> None:
        """Split an interval by the pipeline with the smallest sum among largest loads up to its upper end."""
        high, found = self._least_sum(interval)
        if found is None:
            return
        value, stages = found
        loads = stage_loads(self.tables.problem, stages)
        if value < self.value:
            self.value, self.stages = value, stages
        largest, total = float(loads.max(initial=0.0)), float(loads.sum())
        rest = min(largest, high) * (1 - ROUNDING)
        self.intervals.split(interval, rest, total * (1 - ROUNDING), self.value)

    def _least_sum(self, interval: LoadInterval) -> tuple[float, tuple[float, list[Part]] | None]:
        """Return the largest load that better pipelines of an interval have, and what is least up to it.

        That is the smallest sum of loads with its stages; None if there are no better pipelines.
        """
        limit = min(self.value - self.intervals.further * interval.low, UNLIMITED)
        high = self.intervals.highest(interval, self.value)
        return high, self._filled(self.tables.summing(high, limit))


@dataclass(eq=False)
class LowerBatchBracket(BatchBracket):
    """The same, over tables whose loads are lower bounds, so that only their sums are known."""

    asked: int = field(default=0, init=False)

    def _ask(self, interval: LoadInterval) -> None:
        """Halve an interval, whose sums are at least the smallest one among loads up to its upper end.

        Where the loads of the pipeline with that sum are its own, none with a larger load is better.
        """
        self.asked += 1
        if self.asked > MOST_ASKED:
            raise Stopped
        high, found = self._least_sum(interval)
        if found is None:
            return
        total, stages = found
        loads, value = stage_loads(self.tables.problem, stages), pipeline_value(self.tables.problem, stages)
        if value < self.value:
            self.value, self.stages = value, stages
        high = self.intervals.highest(interval, self.value)
        if meets(total, float(loads.sum())):
            high = min(high, float(loads.max(initial=0.0)) * (1 - ROUNDING))
        self.intervals.split(interval, high, total * (1 - ROUNDING), self.value)


class PipelineTables:
    """The data that all fillings over one lattice share.

    Parameters
    ----------
    problem, lattice
        A problem with a pipeline, and a lattice over its supernodes.
    relaxation
        The relaxation of the problem, whose weights bound what the supernodes outside an ideal need.
    """

    def __init__(self, problem: PipelineProblem, relaxation: Relaxation, lattice: Lattice) -> None:
        self.problem, self.relaxation, self.lattice = problem, relaxation, lattice
        self.space = StateSpace(problem)
        self.model = StageTerms(
            costs=costs_of(problem),
            ends=one_group(len(problem.count)),
            memory=memory_model_of(problem, self.space.states),
            limits=stage_limits_of(problem),
        )
        self.growth = stage_growth(problem)
        self.easiest = easiest_followers(lattice, self.growth)
        self.remaining = remaining_weights(lattice, relaxation.weight)
        self.rest = remaining_weights(lattice, least_work(problem))
        after = problem.successors
        self.above = weights_above(after.start, after.items, relaxation.weight, lattice.linear)
        self.open = np.ones(problem.n, dtype=bool)

    def filling(self, threshold: float, floor: float) -> PipelineFilling:
        """Return a table of least largest loads up to a threshold; those up to the floor count as equal."""
        return PipelineFilling(self, self.spec(threshold, threshold, floor, summed=False))

    def summing(self, threshold: float, limit: float) -> PipelineFilling:
        """Return a table of smallest sums of loads up to a limit, with no load above the threshold."""
        return PipelineFilling(self, self.spec(threshold, limit, 0.0, summed=True))

    def clipped(self, threshold: float) -> StageCosts:
        """Return the costs for a threshold, as :func:`clipped` does."""
        return clipped(self.problem, self.model.costs, threshold)

    def spec(self, threshold: float, limit: float, floor: float, summed: bool) -> PipelineSearchSpec:
        """Return the arguments of the sweep for these limits."""
        capacity = self.relaxation.capacity(threshold, self.space.free, self.problem.memory)
        return PipelineSearchSpec(
            summed=summed,
            threshold=threshold,
            limit=limit,
            floor=floor,
            capacity=capacity + SLACK * (self.relaxation.weight.sum() + capacity),
            remaining=self.remaining,
            above=self.above,
            rest=self.rest * (1 - SLACK),
            growth=self.growth,
            easiest=self.easiest,
            open=self.open,
        )


def clipped(problem: PipelineProblem, costs: StageCosts, threshold: float) -> StageCosts:
    """Return the costs for a threshold, with those that are too large for any stage clipped.

    A very large cost, such as one that stands for "never", would leave a rounding error behind when it is
    subtracted again.
    """
    transfer_factor = problem.transfer_factor[problem.pays]
    most = 2 * threshold * (problem.copies.max() / transfer_factor.min(initial=1.0))
    return costs._replace(enter=np.minimum(costs.enter, most), leave=np.minimum(costs.leave, most))


class PipelineFilling(TableFilling):
    """The table of pipelines of one threshold.

    Parameters
    ----------
    tables
        The problem and the lattice.
    spec
        The pipelines to look for.
    """

    def __init__(self, tables: PipelineTables, spec: PipelineSearchSpec) -> None:
        self.tables, self.spec = tables, spec
        self.model = tables.model._replace(costs=tables.clipped(spec.threshold))
        self.table = new_table(tables.lattice.size, tables.space.count)
        self.table.value[0, 0] = 0.0

    def _sweep(self, budget: int) -> tuple[int, int]:
        tables = self.tables
        found: tuple[int, int] = sweep(
            tables.lattice, self.model, tables.space.states, self.spec, self.table.linked(), self.ideal,
            tables.lattice.size - 1, budget,
        )  # fmt: skip
        return found

    def best(self) -> tuple[float, list[Part]] | None:
        """Return the value and the stages of the best pipeline that holds all; None if there is none."""
        last = np.where(self.tables.space.final, self.table.value[-1], np.inf)
        state = int(last.argmin())
        if np.isinf(last[state]):
            return None
        stages = stages_in(self.table, self.tables, self.tables.lattice.size - 1, state)
        return pipeline_value(self.tables.problem, stages), stages


def new_table(ideals: int, states: int) -> PipelineTable:
    """Return a table without pipelines."""
    shape = ideals, states
    origin, copies = np.empty(shape, np.int32), np.empty(shape, np.int32)
    return PipelineTable(np.full(shape, np.inf), origin, np.empty(shape, np.int16), copies)


class Walked(Protocol):
    """The lattice and the states over which a table was filled."""

    lattice: Lattice
    space: StateSpace


def stages_in(table: PipelineTable, tables: Walked, ideal: int, state: int, first: int = 0) -> list[Part]:
    """Return the stages of a table that lead from ideal `first` to an ideal and a state."""
    stages = []
    while ideal != first:
        kind, copies = int(table.kind[ideal, state]), int(table.copies[ideal, state])
        before = int(table.origin[ideal, state])
        stages.append(Part(kind, tables.lattice.difference(ideal, before), copies))
        ideal, state = before, state - tables.space.step(kind, copies)
    return stages[::-1]


BYTES_PER_PAIR = 20
WEIGHT = 8  # of a state in the memory budget, so that no ideal takes long


class GroupTables:
    """The data that all fillings over one lattice share, for kinds that are in one group each.

    Values are upper bounds on those of the stages found: where a tensor may go to one of several stages, the
    slowest link counts.

    Parameters
    ----------
    problem, relaxation, lattice
        As for :class:`partitioner.methods.dp.pipeline_tables.PipelineTables`; the problem is one of
        :func:`partitioner.methods.dp.forms.by_group`.
    """

    upper = True

    def __init__(self, problem: PipelineProblem, relaxation: Relaxation, lattice: Lattice) -> None:
        self.problem, self.relaxation, self.lattice = problem, relaxation, lattice
        self.shared = PipelineTables(problem, relaxation, lattice)
        self.rest, pipeline = self.shared.rest, problem.pipeline
        group = pipeline.held.argmax(axis=0)
        below, above = _only_neighbours(lattice)
        unknown = problem.pipeline.unknown_links[int(self.upper)]
        self.ends = self.shared.model.ends._replace(
            linked=True, group=group, link=pipeline.link, unknown=unknown, upper=self.upper,
            one_below=below, one_above=above,
        )  # fmt: skip

    def filling(self, threshold: float, floor: float) -> GroupFilling:
        """Return a table of least largest loads up to a threshold; those up to the floor count as equal."""
        return GroupFilling(self, self.shared.spec(threshold, threshold, floor, summed=False))

    def summing(self, threshold: float, limit: float) -> GroupFilling:
        """Return a table of smallest sums of loads up to a limit, with no load above the threshold."""
        return GroupFilling(self, self.shared.spec(threshold, limit, 0.0, summed=True))

    def clipped(self, threshold: float) -> StageCosts:
        """Return the costs for a threshold; replicas exchange weights on the links of their group."""
        own = self.ends.link.diagonal()[self.ends.group]
        costs = self.shared.clipped(threshold)
        return costs._replace(bandwidth=costs.bandwidth / own)


class LowerGroupTables(GroupTables):
    """The same, with values that are lower bounds on those of all pipelines through their ideals."""

    upper = False


class GroupFilling(TableFilling):
    """The table of pipelines over explicit groups of one threshold.

    Parameters
    ----------
    tables
        The problem and the lattice.
    spec
        The pipelines to look for.
    """

    def __init__(self, tables: GroupTables, spec: PipelineSearchSpec) -> None:
        self.tables, self.spec = tables, spec
        costs, groups = tables.clipped(spec.threshold), len(tables.ends.link)
        self.model = tables.shared.model._replace(costs=costs, ends=tables.ends)
        self.table = _new_table(tables.lattice.size, groups * groups, tables.shared.space.count)
        self.table.value[0, :groups, 0] = 0.0

    def _sweep(self, budget: int) -> tuple[int, int]:
        tables, shared = self.tables, self.tables.shared
        found: tuple[int, int] = sweep(
            tables.lattice, self.model, shared.space.states, self.spec, self.table, self.ideal,
            tables.lattice.size - 1, budget,
        )  # fmt: skip
        return found

    def best(self) -> tuple[float, list[Part]] | None:
        """Return the value and the stages of the best pipeline that holds all; None if there is none.

        The value is that of the stages if tables give upper bounds, else the lower bound of the table.
        """
        last = np.where(self.tables.shared.space.final, self.table.value[-1], np.inf)
        pair, state = (int(i) for i in np.unravel_index(last.argmin(), last.shape))
        if np.isinf(last[pair, state]):
            return None
        stages = self._stages(pair, state)
        value = pipeline_value(self.tables.problem, stages) if self.tables.upper else float(last[pair, state])
        return value, stages

    def _stages(self, pair: int, state: int) -> list[Part]:
        tables, table, groups = self.tables, self.table, len(self.tables.ends.link)
        ideal, stages = tables.lattice.size - 1, []
        while ideal:
            at = ideal, pair, state
            kind, copies, before = int(table.kind[at]), int(table.copies[at]), int(table.origin[at])
            stages.append(Part(kind, tables.lattice.difference(ideal, before), copies))
            pair = int(table.before[at]) * groups + pair // groups
            ideal, state = before, state - tables.shared.space.step(kind, copies)
        return stages[::-1]


def group_state_bytes(problem: PipelineProblem) -> int:
    """Return the bytes that a table takes for each ideal, times :data:`WEIGHT` and :func:`heaviness`."""
    count = problem.states * len(problem.pipeline.link) ** 2
    return WEIGHT * BYTES_PER_PAIR * count * heaviness(count)


def _only_neighbours(lattice: Lattice) -> tuple[Ints, Ints]:
    """Return the only supernode below and the only one above every ideal, -1 if there are several or none."""
    below, above = np.full(lattice.size, NOWHERE), np.full(lattice.size, NOWHERE)
    alone = np.flatnonzero(np.diff(lattice.start) == 1)
    above[alone] = lattice.node[lattice.start[alone]]
    once = (np.bincount(lattice.to, minlength=lattice.size) == 1)[lattice.to]
    below[lattice.to[once]] = lattice.node[once]
    return below, above


def _new_table(ideals: int, pairs: int, states: int) -> LinkedTable:
    shape = ideals, pairs, states
    return LinkedTable(
        np.full(shape, np.inf), np.empty(shape, np.int32), np.empty(shape, np.int16),
        np.empty(shape, np.int32), np.empty(shape, np.int16),
    )  # fmt: skip
