"""The tables over a lattice for explicit groups of devices, in the form that the brackets use."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp._fill_core import sweep
from partitioner.methods.dp._stages_core import NOWHERE
from partitioner.methods.dp.ideals import Lattice
from partitioner.methods.dp.pipeline.arrays import LinkedTable, PipelineSearchSpec
from partitioner.methods.dp.pipeline.loads import pipeline_value
from partitioner.methods.dp.pipeline.states import heaviness, state_count
from partitioner.methods.dp.pipeline.tables import PipelineTables
from partitioner.methods.dp.stages import StageCosts
from partitioner.methods.method import Part
from partitioner.problem.arrays import Floats
from partitioner.problem.variants import PipelineProblem

BYTES_PER_STATE = 20
WEIGHT = 8  # of a state in the memory budget, so that no ideal takes long


class GroupTables:
    """The data that all fillings over one lattice share, for kinds that are in one group each.

    Values are upper bounds on those of the stages found: where a tensor may go to one of several stages, the
    slowest link counts.

    Parameters
    ----------
    problem, relaxation, lattice
        As for :class:`partitioner.methods.dp.pipeline.tables.PipelineTables`; the problem is one of
        :func:`partitioner.methods.dp.pipeline.groups.split.by_group`.
    """

    upper = True

    def __init__(self, problem: PipelineProblem, relaxation: Relaxation, lattice: Lattice) -> None:
        self.problem, self.relaxation, self.lattice = problem, relaxation, lattice
        self.shared = PipelineTables(problem, relaxation, lattice)
        self.rest, pipeline = self.shared.rest, problem.pipeline
        group = pipeline.held.argmax(axis=0)
        below, above = _only_neighbours(lattice.start, lattice.node, lattice.to, lattice.size)
        unknown = unknown_factors(problem)[int(self.upper)]
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


class GroupFilling:
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

    def __init__(self, tables: GroupTables, spec: PipelineSearchSpec) -> None:
        self.tables, self.spec = tables, spec
        costs, groups = tables.clipped(spec.threshold), len(tables.ends.link)
        self.model = tables.shared.model._replace(costs=costs, ends=tables.ends)
        self.table = _new_table(tables.lattice.size, groups * groups, tables.shared.space.count)
        self.table.value[0, :groups, 0] = 0.0
        self.ideal = 0
        self.steps = 0

    def advance(self, budget: int) -> None:
        """Fill the table for about `budget` further steps."""
        tables, shared = self.tables, self.tables.shared
        self.ideal, steps = sweep(
            tables.lattice, self.model, shared.space.states, self.spec, self.table, self.ideal,
            tables.lattice.size - 1, budget,
        )  # fmt: skip
        self.steps += steps

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


def unknown_factors(problem: PipelineProblem) -> tuple[Floats, Floats]:
    """Return the least and the largest factor of a link from each group to another device, shape (G,) each.

    A link inside a group counts only if the group has several devices.
    """
    link = problem.pipeline.link
    held = problem.pipeline.held.sum(axis=1)
    real = np.where(np.eye(len(link), dtype=bool), held >= 2, True) & (held > 0)
    least = np.where(real, link, np.inf).min(axis=1)
    most = np.where(real, link, 0.0).max(axis=1)
    alone = ~real.any(axis=1)
    return np.where(alone, 1.0, least), np.where(alone, 1.0, most)


def group_state_bytes(problem: PipelineProblem) -> int:
    """Return the bytes that a table takes for each ideal, times :data:`WEIGHT` and :func:`heaviness`."""
    count = state_count(problem) * len(problem.pipeline.link) ** 2
    return WEIGHT * BYTES_PER_STATE * count * heaviness(count)


def is_exact(problem: PipelineProblem, lattice: Lattice) -> bool:
    """Whether the values of tables are those of the pipelines, neither more nor less.

    That is so if no group has links of two sorts, or if every tensor passes between two supernodes that
    follow each other in a linear lattice.
    """
    least, most = unknown_factors(problem)
    pins = problem.nets.pins
    if (least == most).all():
        return True
    if not lattice.linear or (np.diff(pins.start) != 2).any():
        return False
    ranks = lattice.rank[pins.items].reshape(-1, 2)
    return bool((abs(np.diff(ranks, axis=1)) == 1).all())


@njit(cache=True)
def _only_neighbours(start, node, to, size):  # type: ignore[no-untyped-def]
    """Return the only supernode below and the only one above every ideal, -1 if there are several or none."""
    count, one_below = np.zeros(size, np.int64), np.full(size, NOWHERE, np.int64)
    one_above = np.full(size, NOWHERE, np.int64)
    for ideal in range(size):
        if start[ideal + 1] - start[ideal] == 1:
            one_above[ideal] = node[start[ideal]]
        for e in range(start[ideal], start[ideal + 1]):
            count[to[e]] += 1
            one_below[to[e]] = node[e] if count[to[e]] == 1 else NOWHERE
    return one_below, one_above


def _new_table(ideals: int, pairs: int, states: int) -> LinkedTable:
    shape = ideals, pairs, states
    return LinkedTable(
        np.full(shape, np.inf), np.empty(shape, np.int32), np.empty(shape, np.int16),
        np.empty(shape, np.int32), np.empty(shape, np.int16),
    )  # fmt: skip
