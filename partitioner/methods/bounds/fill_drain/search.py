"""The search for the least makespan that the stages of some pipeline do not refute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from partitioner.methods.bounds.fill_drain.arrays import MakespanSpec, MakespanTables
from partitioner.methods.bounds.fill_drain.kernel import sweep
from partitioner.methods.bounds.fill_drain.paths import REFERENCES, STREAM, TURNS, WAYS
from partitioner.methods.bounds.fill_drain.spine import PassSpine, spine_of
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp.ideals import Lattice
from partitioner.methods.dp.lattice_limits import lattice_within
from partitioner.methods.dp.pipeline.arrays import PipelineTable
from partitioner.methods.dp.pipeline.levels.flat import without_levels
from partitioner.methods.dp.pipeline.model import least_memory
from partitioner.methods.dp.pipeline.solve import model_for
from partitioner.methods.dp.pipeline.tables import SLACK, PipelineTables, new_table
from partitioner.methods.dp.pipeline.turned import turned, turned_stages
from partitioner.methods.method import Part, Settings
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.pipeline import PipelineLimits
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.graph import Graph

MOST_IDEALS = 300_000
MOST_STEPS = 40_000_000
SLICE = 2_000_000
NARROW = 5e-4  # of the value: the distance of bound and value at which the search ends
ROUNDING = 1e-9


@dataclass(eq=False)
class FillDrain:
    """A bracket of the least makespan that no stage refutes, and pipelines that meet thresholds in it.

    Parameters
    ----------
    problem
        The problem, turned and without what is no part of the bound: limits and levels.
    spine, lattice, tables
        Its spine and its lattice, and the arrays of pipelines over it.
    settings
        Say when the run must end.
    samples
        The number of microbatches.
    idle
        Whether supernodes that cost nothing have been merged, so that a stage may hold none of those left.
    bound
        A lower bound on the makespan of every pipeline.
    value
        The least makespan that is known, which whoever simulates pipelines may lower.
    """

    problem: PipelineProblem
    spine: PassSpine
    lattice: Lattice
    tables: PipelineTables
    settings: Settings
    samples: int
    idle: bool
    bound: float
    value: float
    steps: int = 0

    def narrow(self) -> Iterator[list[Part]]:
        """Raise the bound towards the value; yield the pipelines found on the way.

        Yields
        ------
        list of Part
            The stages of a pipeline, first to last, whose makespan may be below the value.
        """
        high = self.value
        if high - self.bound <= NARROW * high:
            return
        least = self._least_outside(high)
        while least is not None and (high := min(high, self.value)) - self.bound > NARROW * self.value:
            middle = (self.bound + high) / 2
            table = self._filled(middle, least)
            if table is None:
                return
            last = table.value[-1]
            if np.isinf(last).all():
                self.bound = middle
            else:
                high = middle
                yield turned_stages(self._stages(table, int(last.argmin())), self.problem.n)

    def _least_outside(self, limit: float) -> Floats | None:
        """Return the least time of a sample of the stages outside each ideal; None if the run must end."""
        least = np.full((self.lattice.size, int(self.problem.count.sum()) + 1), np.inf)
        least[-1] = 0.0
        spec = self._spec(limit)
        known = MakespanTables(np.empty((len(spec.reference), 1, 1)), least)
        return least if self._swept(spec, new_table(1, 1), known, self.lattice.size - 2, -1) else None

    def _filled(self, limit: float, least: Floats) -> PipelineTable | None:
        """Return the table of the pipelines that nothing refutes at a limit; None if the run must end."""
        spec, table = self._spec(limit), new_table(self.lattice.size, self.tables.space.count)
        gain = np.full((len(spec.reference), *table.value.shape), np.inf)
        table.value[0, 0], gain[:, 0, 0] = 0.0, -np.inf
        return table if self._swept(spec, table, MakespanTables(gain, least), 0, 1) else None

    def _swept(
        self, spec: MakespanSpec, table: PipelineTable, known: MakespanTables, first: int, step: int
    ) -> bool:
        """Sweep the lattice from an ideal on; return False if the run must end before."""
        costs, last = self.tables.clipped(spec.most), self.lattice.size - 1
        while 0 <= first < last:
            if self.settings.expired or self.steps > MOST_STEPS:
                return False
            first, steps = sweep(
                self.lattice, costs, self.tables.memory_model, self.tables.space.states, spec, table, known,
                first, step, SLICE,
            )  # fmt: skip
            self.steps += steps
        return True

    def _spec(self, limit: float) -> MakespanSpec:
        """Return the arguments of the sweep for a limit."""
        tables, problem = self.tables, self.problem
        most = limit * (1 + ROUNDING) / self.samples
        capacity = tables.relaxation.capacity(most, tables.space.free, problem.memory)
        memory = tables.memory_model
        way, stages = _way(problem, self.spine), int(problem.count.sum())
        detours = len(REFERENCES) if way == TURNS and problem.copies.max() == 1 else 1
        forward, backward = (np.where(problem.allowed, problem.time[:, w], np.inf) for w in (0, 1))
        return MakespanSpec(
            way=way,
            returns=self.spine.returns,
            turns=self.spine.returns and self.spine.trains,
            idle=self.idle,
            samples=self.samples,
            limit=limit * (1 + ROUNDING),
            most=most,
            forward=forward,
            backward=backward,
            spine=_held(self.lattice, self.spine.on[::-1]),
            reference=np.array(REFERENCES[:detours]) * limit / (self.samples + stages - 1),
            capacity=capacity + SLACK * (tables.relaxation.weight.sum() + capacity),
            remaining=tables.remaining,
            above=tables.above,
            unused=tables.space.free.sum(axis=1),
            widest=np.where(problem.count > 0, problem.copies, 0),
            least_in_flight=float(memory.in_flight[:, 1:].min()),
            least_versions=float(memory.versions[:, 1:].min()),
        )

    def _stages(self, table: PipelineTable, state: int) -> list[Part]:
        """Return the stages of the turned problem that lead to all ideals and a state."""
        stages, ideal = [], self.lattice.size - 1
        while ideal:
            kind, copies = int(table.kind[ideal, state]), int(table.copies[ideal, state])
            before = int(table.origin[ideal, state])
            if copies:
                stages.append(Part(kind, self.lattice.difference(ideal, before), copies))
            ideal, state = before, state - self.tables.space.step(kind, max(copies, 1))
        return stages[::-1]


def _way(problem: PipelineProblem, spine: PassSpine) -> int:
    """Return what the way through the later stages leaves out."""
    way = WAYS[problem.pipeline.schedule or ""]
    if not spine.returns:
        return STREAM
    return way.alone if problem.copies.max() == 1 else way.replicated


def fill_drain(
    graph: Graph, problem: PipelineProblem, settings: Settings, value: float, idle: bool
) -> FillDrain | None:
    """Return the search for a bound; None if the ideals are too many or nothing is known of the schedule.

    Parameters
    ----------
    graph
        The graph that the problem is a contraction of.
    problem
        A problem with a schedule and a number of microbatches.
    settings
        Say when the run must end.
    value
        The least makespan that is known.
    idle
        Whether supernodes that cost nothing have been merged.
    """
    if problem.pipeline.schedule not in WAYS or problem.pipeline.microbatches is None:
        return None
    spine = spine_of(graph, problem)
    if spine is None:
        return None
    free = without_levels(problem.relaxed())
    free = turned(replace(free, pipeline=replace(free.pipeline, limits=PipelineLimits()), coarser=None))
    relaxation = relax(replace(free, relaxed_size=least_memory(free)))
    lattice = lattice_within(free, settings, model_for(free), MOST_IDEALS)
    if lattice is None or np.isinf(relaxation.bound):
        return None
    tables = PipelineTables(free, relaxation, lattice)
    samples = free.pipeline.microbatches or 1
    bound = samples * relaxation.bound
    return FillDrain(free, spine, lattice, tables, settings, samples, idle, bound, value)


def _held(lattice: Lattice, on: Bools) -> Ints:
    """Return how many of some supernodes each ideal holds, shape (I,)."""
    held = np.zeros(lattice.size, dtype=np.int64)
    for ideal in range(1, lattice.size):
        held[ideal] = held[lattice.parent[ideal]] + on[lattice.added[ideal]]
    return held
