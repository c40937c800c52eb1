"""The search for the least makespan that the stages of some pipeline do not refute.

What the devices that are left can take of the supernodes outside an ideal.

How much is remembered of each state: more and more paths, of more and more pipelines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from partitioner.methods.bounds.relaxation import SLACK, Relaxation
from partitioner.methods.dp.lattice import Lattice, remaining_weights
from partitioner.methods.dp.levels_tables import without_levels
from partitioner.methods.dp.linear import lattice_within
from partitioner.methods.dp.pipeline import model_for
from partitioner.methods.dp.pipeline_tables import PipelineTables
from partitioner.methods.dp.stages import read_of_node, relax_memory
from partitioner.methods.dp.turned import turned, turned_stages
from partitioner.methods.method import Part, Settings
from partitioner.methods.pipeline_bound._fill_drain_core import STREAM, TURNS, WAYS, StageFigures, sweep
from partitioner.methods.pipeline_bound.paths import (
    MakespanSpec,
    MakespanTable,
    PassSpine,
    RowEvents,
    no_rows,
    row_events,
    spine_of,
)
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.nets import build_nets
from partitioner.problem.pipeline import PipelineLimits
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.graph import Graph
from partitioner.workload.in_flight import HOLD_A_BATCH

TINY = 1e-12  # in place of 0 where a stage in series may take all of the makespan


def series_bound(problem: PipelineProblem, spine: PassSpine | None) -> float:
    """Return a lower bound on the makespan of every pipeline; 0 if nothing is known.

    A stage that holds none of the spine lies between two of its supernodes, and holds only what is neither
    before the first of them nor behind the second. All other stages wait for one another: with the loads
    L_1, L_2, ... and their sum S the makespan is at least L_1 + ... + M L_j for each of them, and
    S + (M - 1) L_j, of which 1F1B leaves out half a load for each stage behind j. So for each number of
    stages outside the series those in the series take at most a known multiple of the makespan, and all the
    work must be somewhere.

    Parameters
    ----------
    problem
        A problem with a schedule and a number of microbatches.
    spine
        Its spine; None if there is none.
    """
    schedule, samples = problem.pipeline.schedule or "", problem.pipeline.microbatches
    if schedule not in WAYS or samples is None or problem.copies.max() > 1:
        return 0.0
    if spine is None or not spine.returns or not spine.on.any():
        return 0.0
    free = without_levels(problem.relaxed())
    relaxation = relax_memory(free)
    if not np.isfinite(relaxation.bound):
        return 0.0
    room = float(relaxation.capacity(0.0, free.count, free.memory))
    prices = np.sort(np.repeat(relaxation.time_price, free.count))[::-1]
    need, between = relaxation.weight.sum() - room, _heaviest_between(spine, relaxation)
    outside = float(relaxation.weight[~spine.on].sum())
    least = np.inf
    for apart in range(len(prices)):
        rate = _rate(prices[: len(prices) - apart], samples, apart, WAYS[schedule].alone)
        least = min(least, (need - min(apart * between, outside)) / max(rate, TINY))
    return max(0.0, float(least))


def _heaviest_between(spine: PassSpine, relaxation: Relaxation) -> float:
    """Return the most weight that a stage can hold without a supernode of the spine."""
    rest = ~spine.on
    change = np.zeros(int(spine.on.sum()) + 2)
    np.add.at(change, spine.first[rest], relaxation.weight[rest])
    np.add.at(change, spine.last[rest] + 1, -relaxation.weight[rest])
    return float(change.cumsum().max())


def _rate(prices: Floats, samples: int, apart: int, way: int) -> float:
    """Return how much weight stages in series take at most for each unit of time of the makespan.

    Parameters
    ----------
    prices
        The prices of the time of their devices, largest first.
    samples, apart
        The number M of microbatches, and of the stages that are not in series.
    way
        What a path through the later stages leaves out.
    """
    places = np.arange(len(prices))
    before = float(prices @ (1 - 1 / samples) ** places) / samples
    left_out = np.minimum(places + apart, samples - 1) / 2 if way == TURNS else np.zeros(len(prices))
    shares = np.sort(1 / np.maximum(samples - 1 - left_out, TINY))[::-1]
    both = np.cumsum(prices * shares) / (1 + np.cumsum(shares))
    return min(before, float(both.max()))


def held_of(lattice: Lattice, on: Bools) -> Ints:
    """Return how many of some supernodes each ideal holds, shape (I,); `on` has shape (n,)."""
    held = np.zeros(lattice.size, dtype=np.int64)
    for ideal in range(1, lattice.size):
        held[ideal] = held[lattice.parent[ideal]] + on[lattice.added[ideal]]
    return held


def less_in_series(relaxation: Relaxation, free: Ints, limit: float, samples: int) -> Floats:
    """Return by how much less devices can take in stages in series than they have capacity, shape (S,).

    If every stage waits for the ones before it, M times its load and their loads are together at most the
    limit. So k stages take at most the limit times 1 - (1 - 1/M)^k, and their weight is largest if the
    devices whose time has the largest price take the largest parts.

    Parameters
    ----------
    relaxation
        The relaxation that gives prices to the time of devices.
    free
        Shape (S, K): numbers of devices by kind.
    limit, samples
        The makespan that is allowed, and the number M of microbatches.
    """
    less, before = np.zeros(len(free)), np.zeros(len(free))
    for k in np.argsort(-relaxation.time_price).tolist():
        after = before + free[:, k]
        parts = (1 - 1 / samples) ** before - (1 - 1 / samples) ** after
        less += relaxation.time_price[k] * limit * (free[:, k] / samples - parts)
        before = after
    return less


MOST_NUMBERS = 40_000_000  # in a table
MOST_DETAIL = 8


@dataclass(frozen=True, eq=False)
class DetailLevel:
    """The paths whose lengths are known, and for how many pipelines of a state.

    Parameters
    ----------
    rows
        The passes at which these paths change to other rows.
    returns
        Whether backward passes return.
    slots
        The number of pipelines.
    """

    rows: RowEvents
    returns: bool
    slots: int = 1

    @property
    def labels(self) -> int:
        """How many paths there are."""
        forward, backward = len(self.rows.forward), len(self.rows.backward)
        return forward * backward if self.returns else forward + backward

    @property
    def whole(self) -> int:
        """The number of the path from the first to the last pass."""
        return len(self.rows.backward) - 1 if self.returns else 0

    def numbers(self, states: int) -> int:
        """Return how many numbers a table has, for the number of states of all ideals."""
        return states * self.slots * (self.labels + 3)

    def table(self, ideals: int, states: int) -> MakespanTable:
        """Return the table in which only the empty ideal has been reached."""
        shape = ideals, states, self.slots
        table = MakespanTable(
            value=np.full(shape, np.inf),
            label=np.full((*shape, self.labels), np.inf),
            origin=np.empty(shape, np.int32),
            slot=np.empty(shape, np.int32),
            kind=np.empty(shape, np.int16),
            copies=np.empty(shape, np.int32),
            used=np.zeros(shape[:2], np.int64),
        )
        table.used[0, 0], table.value[0, 0], table.label[0, 0] = 1, 0.0, -np.inf
        if not self.returns:
            table.label[0, 0, :, -1:] = 0.0  # the last pass ends the schedule
        return table


def least_level() -> DetailLevel:
    """Return the level at which no path through later stages is known but the time of a sample."""
    return DetailLevel(no_rows(), returns=False)


def levels_of(problem: PipelineProblem, spine: PassSpine, states: int, fewer: bool) -> Iterator[DetailLevel]:
    """Yield the levels from the coarsest to the finest one whose table is not too large.

    Parameters
    ----------
    problem, spine
        The problem and its spine.
    states
        How many states all ideals have together.
    fewer
        Whether fewer devices may be behind a stage than its state says.
    """
    ahead, samples, before = _ahead(problem, spine), problem.pipeline.microbatches or 1, set()
    if ahead is None:
        yield least_level()
        return
    finest = min(_most_detail(problem, spine), max(ahead), samples - 1)
    for wanted, slots in ((0, 1), (finest, 4), (finest, 16), (finest, 64)):
        for detail in range(wanted, -1, -1):
            level = DetailLevel(row_events(samples, ahead, detail, fewer), spine.returns, slots)
            if level.numbers(states) <= MOST_NUMBERS or wanted == 0:
                if (detail, slots) not in before:
                    yield level
                before.add((detail, slots))
                break


def _most_detail(problem: PipelineProblem, spine: PassSpine) -> int:
    """Return how many passes next to the first and last ones can lengthen paths, at most MOST_DETAIL."""
    if problem.pipeline.schedule in HOLD_A_BATCH:
        return 0
    return MOST_DETAIL if spine.returns else 1


def _ahead(problem: PipelineProblem, spine: PassSpine) -> list[int] | None:
    """Return how many samples a stage is ahead, by the number of devices behind it; None if unknown."""
    devices, samples = int(problem.count.sum()), problem.pipeline.microbatches or 1
    if not spine.trains or problem.copies.max() > 1:
        return None
    if problem.pipeline.schedule in HOLD_A_BATCH:
        return [samples] * (devices + 1)
    if spine.returns:
        return list(range(devices + 1))
    return [1] * (devices + 1) if spine.together else None


MOST_IDEALS = 300_000
MOST_STEPS = 40_000_000
SLICE = 500_000
MOST_CHAINS = 4  # of a table that are simulated
COARSE = 2e-2  # of the value: the distance at which the search goes on to more paths
SHARE = 0.25  # of the distance at the beginning: the same with more paths
CLOSE = 1e-4  # of the limit: a difference between paths that is left out if tables have slots
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
    ended: bool = field(default=False, init=False)
    scarce: bool = field(default=False, init=False)
    known: set[object] = field(default_factory=set, init=False)

    def narrow(self) -> Iterator[list[Part]]:
        """Raise the bound towards the value, with more and more paths; yield the pipelines found on the way.

        Yields
        ------
        list of Part
            The stages of a pipeline, first to last, whose makespan may be below the value.
        """
        outside = None if self._closed(self.value) else self._outside(self.value)
        if outside is None:
            return
        states, near = self.lattice.size * self.tables.space.count, COARSE * self.value
        levels = list(levels_of(self.problem, self.spine, states, self.idle))
        for level in levels:
            self.scarce = level.slots == 1
            yield from self._halved(level, outside, 0.0 if level is levels[-1] else near)
            if self.ended or self._closed(self.value) or not self.scarce:
                return
            near = SHARE * (self.value - self.bound)

    def _halved(self, level: DetailLevel, outside: Floats, near: float) -> Iterator[list[Part]]:
        """Halve the distance between the bound and the least limit that a pipeline meets.

        Yielded are pipelines that meet a limit and may be better than the best one. The search ends if bound
        and limit are near and a finer level could tell more.
        """
        high = self.value
        while not self._closed(high := min(high, self.value), near if self.scarce else 0.0):
            limit = (self.bound + high) / 2
            table = self._filled(limit, level, outside)
            if table is None:
                return
            self.scarce |= bool((table.used == level.slots).any())
            if not table.used[-1].any():
                self.bound = limit
            else:
                high = limit
                yield from self._best(table, level)

    def _best(self, table: MakespanTable, level: DetailLevel) -> Iterator[list[Part]]:
        """Yield the pipelines of a table whose paths are shortest, unless they have been before."""
        last = table.label[-1, :, :, level.whole] if level.labels else table.value[-1]
        for place in np.argsort(last, axis=None)[:MOST_CHAINS].tolist():
            if last.flat[place] < self.value:
                stages = self._stages(table, *divmod(place, last.shape[1]))
                key = tuple((part.kind, part.replicas, part.nodes.tobytes()) for part in stages)
                if key not in self.known:
                    self.known.add(key)
                    yield turned_stages(stages, self.problem.n)

    def _closed(self, high: float, near: float = 0.0) -> bool:
        return high - self.bound <= max(near, NARROW * self.value)

    def _outside(self, limit: float) -> Floats | None:
        """Return the least times of the stages outside each ideal; None if the run must end."""
        least = np.full((2, self.lattice.size, int(self.problem.count.sum()) + 1), np.inf)
        least[:, -1] = 0.0
        table = least_level().table(1, 1)
        spec = self._spec(limit, least_level())
        return least if self._swept(spec, table, least, self.lattice.size - 2, -1) else None

    def _filled(self, limit: float, level: DetailLevel, outside: Floats) -> MakespanTable | None:
        """Return the table of the pipelines that nothing refutes at a limit; None if the run must end."""
        table = level.table(self.lattice.size, self.tables.space.count)
        return table if self._swept(self._spec(limit, level), table, outside, 0, 1) else None

    def _swept(
        self, spec: MakespanSpec, table: MakespanTable, outside: Floats, first: int, step: int
    ) -> bool:
        """Sweep the lattice from an ideal on; return False if the run must end before."""
        costs, last = self.tables.clipped(spec.most), self.lattice.size - 1
        costs = costs._replace(made=self.problem.nets.made, read=read_of_node(self.problem))
        model = StageFigures(costs, self.tables.model.memory, self.tables.space.states)
        while 0 <= first < last:
            self.ended = self.settings.expired or self.steps > MOST_STEPS
            if self.ended:
                return False
            first, steps = sweep(self.lattice, model, spec, table, outside, first, step, SLICE)
            self.steps += steps
        return True

    def _spec(self, limit: float, level: DetailLevel) -> MakespanSpec:
        """Return the arguments of the sweep for a limit."""
        tables, problem = self.tables, self.problem
        way, most = _way(problem, self.spine), limit * (1 + ROUNDING) / self.samples
        capacity = tables.relaxation.capacity(most, tables.space.free, problem.memory)
        in_series = less_in_series(tables.relaxation, tables.space.free, limit, self.samples)
        alone = way != STREAM and problem.copies.max() == 1  # of streams the sweep knows more
        capacity_on, memory = capacity - (in_series if alone else 0.0), tables.model.memory
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
            before=self.spine.before[::-1].copy(),
            after=self.spine.after[::-1].copy(),
            spine=held_of(self.lattice, self.spine.on[::-1]),
            rows=level.rows,
            whole=level.whole,
            close=CLOSE * limit if level.slots > 1 else 0.0,
            capacity=capacity + SLACK * (tables.relaxation.weight.sum() + capacity),
            capacity_on=capacity_on + SLACK * (tables.relaxation.weight.sum() + capacity),
            price=tables.space.free @ tables.relaxation.time_price,
            remaining=tables.remaining,
            remaining_on=remaining_weights(self.lattice, tables.relaxation.weight * self.spine.on[::-1]),
            above=tables.above,
            unused=tables.space.free.sum(axis=1),
            widest=np.where(problem.count > 0, problem.copies, 0),
            least_in_flight=float(memory.in_flight[:, 1:].min()),
            least_versions=float(memory.versions[:, 1:].min()),
        )

    def _stages(self, table: MakespanTable, state: int, slot: int) -> list[Part]:
        """Return the stages of the turned problem that lead to all ideals, a state and a slot."""
        stages, ideal = [], self.lattice.size - 1
        while ideal:
            place = ideal, state, slot
            kind, copies, before = (int(part[place]) for part in (table.kind, table.copies, table.origin))
            if copies:
                stages.append(Part(kind, self.lattice.difference(ideal, before), copies))
            ideal, slot = before, int(table.slot[place])
            state -= self.tables.space.step(kind, max(copies, 1))
        return stages[::-1]


def _way(problem: PipelineProblem, spine: PassSpine) -> int:
    """Return what the way through the later stages leaves out."""
    way = WAYS[problem.pipeline.schedule or ""]
    if not spine.returns:
        return STREAM
    return way.alone if problem.copies.max() == 1 else way.replicated


def fill_drain(
    graph: Graph,
    problem: PipelineProblem,
    apart: PipelineProblem,
    spine: PassSpine | None,
    settings: Settings,
    value: float,
) -> FillDrain | None:
    """Return the search for a bound; None if the ideals are too many or nothing is known of the schedule.

    Parameters
    ----------
    graph
        The graph that the problem is a contraction of.
    problem
        A problem with a schedule and a number of microbatches.
    apart
        The same problem, or the one in which no nodes that cost nothing have been merged.
    spine
        The spine of that one; None if there is none.
    settings
        Say when the run must end.
    value
        The least makespan that is known.
    """
    if problem.pipeline.schedule not in WAYS or problem.pipeline.microbatches is None:
        return None
    idle = apart is not problem
    if idle:
        together = spine is not None and spine.together
        merged = spine_of(graph, problem)
        spine = None if merged is None else merged._replace(together=together)
    if spine is None:
        return None
    free = without_levels(problem.relaxed())
    free = replace(free, nets=build_nets(graph, free.member, free.n, "passes"))
    free = turned(replace(free, pipeline=replace(free.pipeline, limits=PipelineLimits()), coarser=None))
    relaxation = relax_memory(free)
    lattice = lattice_within(free, settings, model_for(free), MOST_IDEALS)
    if lattice is None or np.isinf(relaxation.bound):
        return None
    tables = PipelineTables(free, relaxation, lattice)
    samples = free.pipeline.microbatches or 1
    bound = samples * relaxation.bound
    return FillDrain(free, spine, lattice, tables, settings, samples, idle, bound, value)
