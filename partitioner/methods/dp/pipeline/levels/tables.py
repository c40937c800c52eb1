"""The tables over a lattice for devices in groups, in the form that the brackets use."""

from __future__ import annotations

from dataclasses import replace

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp.ideals import Lattice
from partitioner.methods.dp.pipeline.levels.chain import Chain, Known
from partitioner.methods.dp.pipeline.levels.flat import Remainders
from partitioner.methods.dp.pipeline.levels.labels import Label, Stretch
from partitioner.methods.dp.pipeline.levels.layout import layout_of
from partitioner.methods.dp.pipeline.levels.prices import no_prices
from partitioner.methods.dp.pipeline.levels.search_target import SearchTarget
from partitioner.methods.dp.pipeline.levels.segment import Segments
from partitioner.methods.dp.pipeline.loads import pipeline_value
from partitioner.methods.dp.pipeline.states import BYTES_PER_STATE, state_count
from partitioner.methods.method import Part
from partitioner.problem.variants import PipelineProblem

FEW_STATES = 64


class LevelsTables:
    """The source of tables, as :class:`partitioner.methods.dp.pipeline.tables.PipelineTables`, for levels."""

    def __init__(self, problem: PipelineProblem, relaxation: Relaxation, lattice: Lattice) -> None:
        self.problem, self.relaxation, self.lattice = problem, relaxation, lattice
        self.segments = Segments(problem, relaxation, lattice)
        self.rest = self.segments.rest
        self.remainders = None
        if not lattice.linear or state_count(problem) <= FEW_STATES:
            self.remainders = Remainders(problem, relaxation, lattice, self.segments.layout)
        self._known: Known = {}

    def filling(self, threshold: float, floor: float) -> LevelsFilling:
        """Return a search of least largest loads up to a threshold; those up to the floor count as equal."""
        return LevelsFilling(self, self._target(threshold, threshold, floor, summed=False), self._known)

    def summing(self, threshold: float, limit: float) -> LevelsFilling:
        """Return a search of least sums of loads up to a limit, with no load above the threshold."""
        return LevelsFilling(self, self._target(threshold, limit, 0.0, summed=True), {})

    def _target(self, threshold: float, limit: float, floor: float, summed: bool) -> SearchTarget:
        if self.remainders is None:
            return SearchTarget(threshold, limit, floor, summed)
        outside = self.remainders.outside(threshold, limit, floor, summed)
        return SearchTarget(threshold, limit, floor, summed, self.remainders.by_groups(outside), outside)


class LevelsFilling:
    """A search of chains through all groups, which are extended from the empty ideal up.

    Attributes
    ----------
    ideal
        The next ideal to extend; at the last one the search is complete.
    steps
        The approximate number of steps so far.
    """

    def __init__(self, tables: LevelsTables, target: SearchTarget, known: Known) -> None:
        self.tables = tables
        layout, problem = tables.segments.layout, tables.problem
        whole = Stretch(
            len(layout.slowdown), 0, tables.lattice.size - 1, 0, layout.groups, 0, no_prices(problem.nets)
        )
        self.chain = Chain(tables.segments, whole, target, known)

    @property
    def ideal(self) -> int:
        """The next ideal to extend."""
        return self.chain.ideal

    @property
    def steps(self) -> int:
        """The approximate number of steps so far."""
        return self.chain.steps

    def advance(self, budget: int) -> None:
        """Continue for about `budget` steps."""
        self.chain.advance(budget)

    def best(self) -> tuple[float, list[Part]] | None:
        """Return the value and the stages of the best chain that holds all; None if there is none."""
        limits, groups = self.tables.problem.pipeline.limits, self.tables.segments.layout.groups
        ends = [
            end
            for end in self.chain.ends()
            if end.label.stages == limits.stages and (end.label.position == groups or not limits.all_devices)
        ]
        if not ends:
            return None
        best: Label = min(ends, key=lambda end: end.value).label
        stages = self.chain.stages(best)
        return pipeline_value(self.tables.problem, stages), stages


def group_bytes(problem: PipelineProblem) -> int:
    """Return the bytes that a search over levels takes for each ideal, in addition to the lattice."""
    group = replace(problem, count=layout_of(problem).size)
    return BYTES_PER_STATE * state_count(group) + problem.n
