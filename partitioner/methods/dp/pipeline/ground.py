"""All that tables over one lattice of ideals have in common, and one filling of such a table."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp.ideals import Lattice
from partitioner.methods.dp.pipeline.arrays import Costs, Hunt, Table
from partitioner.methods.dp.pipeline.kernel import sweep
from partitioner.methods.dp.pipeline.loads import least_work, pipeline_value
from partitioner.methods.dp.pipeline.model import burden_of, costs_of, demands_of, stage_growth
from partitioner.methods.dp.pipeline.states import StateSpace
from partitioner.methods.dp.weights import easiest_followers, remaining_weights, weights_above
from partitioner.methods.method import Part
from partitioner.problem.problem import Problem

SLACK = 1e-9


class PipelineGround:
    """All that the fillings over one lattice have in common.

    Parameters
    ----------
    problem, lattice
        The lattice is over the problem's supernodes.
    relaxation
        The problem's; its weights bound what the supernodes outside an ideal need.
    """

    def __init__(self, problem: Problem, relaxation: Relaxation, lattice: Lattice) -> None:
        self.problem, self.relaxation, self.lattice = problem, relaxation, lattice
        self.space = StateSpace(problem)
        self.costs = costs_of(problem)
        self.burden = burden_of(problem, self.space)
        self.demands = demands_of(problem)
        self.growth = stage_growth(problem)
        self.easiest = easiest_followers(lattice, self.growth)
        self.remaining = remaining_weights(lattice, relaxation.weight)
        self.rest = remaining_weights(lattice, least_work(problem))
        after = problem.successors
        self.above = weights_above(after.start, after.items, relaxation.weight, lattice.linear)
        self.open = np.ones(problem.n, dtype=bool)

    def filling(self, threshold: float, floor: float) -> Filling:
        """A table of smallest largest loads up to a threshold; those up to the floor are not told apart."""
        return Filling(self, self.hunt(threshold, threshold, floor, summed=False))

    def summing(self, threshold: float, limit: float) -> Filling:
        """A table of smallest sums of loads up to a limit, with no load above the threshold."""
        return Filling(self, self.hunt(threshold, limit, 0.0, summed=True))

    def clipped(self, threshold: float) -> Costs:
        """The costs for a threshold: one that is too large for any stage is as good as twice it.

        A cost of many orders of magnitude, such as one that stands for "never", would leave its
        rounding behind when it is taken away again.
        """
        fare = self.problem.fare[self.problem.pays]
        most = 2 * threshold * (self.problem.copies.max() / fare.min(initial=1.0))
        costs = self.costs
        return costs._replace(enter=np.minimum(costs.enter, most), leave=np.minimum(costs.leave, most))

    def hunt(self, threshold: float, limit: float, floor: float, summed: bool) -> Hunt:
        """What a filling looks for."""
        capacity = self.relaxation.capacity(threshold, self.space.free, self.problem.memory)
        return Hunt(
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


class Filling:
    """A table over the ideals of a lattice, filled from the empty ideal up.

    Parameters
    ----------
    ground
        The problem and the lattice.
    hunt
        What is looked for.

    Attributes
    ----------
    ideal
        The next ideal to extend; done at the last one.
    steps
        Steps walked up the lattice so far.
    """

    def __init__(self, ground: PipelineGround, hunt: Hunt) -> None:
        self.ground, self.hunt = ground, hunt
        self.costs = ground.clipped(hunt.threshold)
        self.table = new_table(ground.lattice.size, ground.space.count)
        self.table.value[0, 0] = 0.0
        self.ideal = 0
        self.steps = 0

    def advance(self, budget: int) -> None:
        """Walk on for about `budget` steps."""
        ground = self.ground
        self.ideal, steps = sweep(
            ground.lattice, self.costs, ground.burden, ground.demands, ground.space.states, self.hunt,
            self.table, self.ideal, ground.lattice.size - 1, budget,
        )  # fmt: skip
        self.steps += steps

    def best(self) -> tuple[float, list[Part]] | None:
        """The objective of the stages that the table holds for all, and these."""
        last = np.where(self.ground.space.final, self.table.value[-1], np.inf)
        state = int(last.argmin())
        if np.isinf(last[state]):
            return None
        stages = stages_in(self.table, self.ground, self.ground.lattice.size - 1, state)
        return pipeline_value(self.ground.problem, stages), stages


def new_table(ideals: int, states: int) -> Table:
    """An empty table."""
    shape = ideals, states
    return Table(
        np.full(shape, np.inf), np.empty(shape, np.int32), np.empty(shape, np.int8), np.empty(shape, np.int32)
    )


class Walked(Protocol):
    """What a table was filled on."""

    lattice: Lattice
    space: StateSpace


def stages_in(table: Table, ground: Walked, ideal: int, state: int, first: int = 0) -> list[Part]:
    """The stages that lead from ideal `first` to an ideal and a state of it."""
    stages = []
    while ideal != first:
        kind, copies = int(table.kind[ideal, state]), int(table.copies[ideal, state])
        before = int(table.origin[ideal, state])
        stages.append(Part(kind, ground.lattice.difference(ideal, before), copies))
        ideal, state = before, state - ground.space.step(kind, copies)
    return stages[::-1]
