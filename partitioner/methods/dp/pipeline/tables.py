"""The data that all tables over one lattice share, and a table with the methods that fill it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp._fill_core import sweep
from partitioner.methods.dp.batch_intervals import BatchIntervals, LoadInterval
from partitioner.methods.dp.bracket import UNLIMITED, Stopped, TableBracket
from partitioner.methods.dp.ideals import Lattice
from partitioner.methods.dp.pipeline.arrays import PipelineSearchSpec, PipelineTable
from partitioner.methods.dp.pipeline.loads import least_work, pipeline_value, samples, stage_loads
from partitioner.methods.dp.pipeline.states import StateSpace
from partitioner.methods.dp.stages import (
    StageCosts,
    StageTerms,
    costs_of,
    memory_model_of,
    one_group,
    stage_growth,
    stage_limits_of,
)
from partitioner.methods.dp.weights import easiest_followers, remaining_weights, weights_above
from partitioner.methods.method import ROUNDING, Part
from partitioner.problem.variants import PipelineProblem


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
        limit = min(self.value - self.intervals.further * interval.low, UNLIMITED)
        high = self.intervals.highest(interval, self.value)
        found = self._filled(self.tables.summing(high, limit))
        if found is None:
            return
        value, stages = found
        loads = stage_loads(self.tables.problem, stages)
        if value < self.value:
            self.value, self.stages = value, stages
        largest, total = float(loads.max(initial=0.0)), float(loads.sum())
        rest = min(largest, high) * (1 - ROUNDING)
        self.intervals.split(interval, rest, total * (1 - ROUNDING), self.value)


SLACK = 1e-9


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


class PipelineFilling:
    """A table over the ideals of a lattice, filled from the empty ideal up.

    Parameters
    ----------
    tables
        The problem and the lattice.
    spec
        The pipelines to look for.

    Attributes
    ----------
    ideal
        The next ideal to extend; at the last one the table is filled.
    steps
        Steps walked up the lattice so far.
    """

    def __init__(self, tables: PipelineTables, spec: PipelineSearchSpec) -> None:
        self.tables, self.spec = tables, spec
        self.model = tables.model._replace(costs=tables.clipped(spec.threshold))
        self.table = new_table(tables.lattice.size, tables.space.count)
        self.table.value[0, 0] = 0.0
        self.ideal = 0
        self.steps = 0

    def advance(self, budget: int) -> None:
        """Fill the table for about `budget` further steps."""
        tables = self.tables
        self.ideal, steps = sweep(
            tables.lattice, self.model, tables.space.states, self.spec, self.table.linked(), self.ideal,
            tables.lattice.size - 1, budget,
        )  # fmt: skip
        self.steps += steps

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
