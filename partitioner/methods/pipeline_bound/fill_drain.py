"""A lower bound on the makespan of pipelines: the least one that the stages of some pipeline do not refute.

A limit T is refuted if no chain of stages has, for each of its stages j, only paths of at most T:

    times of the stages before j + M loads of j <= T, and all paths through the passes of j and behind it

First what stages outside an ideal take is found from the other end: the longest path through them is a bound
by itself, and refutes most chains early. The limit is bracketed from below, and how much is remembered of
each state grows from level to level: more and more paths, of more and more pipelines. For two equal stages of
load 1 and M = 4 samples without a backward pass T = 4 is refuted, since the second stage waits for 1: the
bound is 5.

Where ideals are many, searches go before in which light supernodes are left out, but for those that surely
lie inside a stage: shared Inception-v3 has 3,098 ideals for 36,596 without a tenth of the work, and under
GPipe, 8 microbatches, 20 s, its gap is 4.5 % for 30.1 %.

Without it 39 of 41 pipelines have a lower bound or a longer makespan (scripts/ablations.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from partitioner.methods.bounds.relaxation import SLACK, relax
from partitioner.methods.dp._walk_core import new_path
from partitioner.methods.dp.bracket import Bracket, Decision, Stopped
from partitioner.methods.dp.forms import turned_stages
from partitioner.methods.dp.lattice import Lattice, remaining_weights
from partitioner.methods.dp.linear import lattice_within
from partitioner.methods.dp.pipeline import model_for
from partitioner.methods.dp.pipeline_tables import PipelineTables
from partitioner.methods.dp.reduced import Reduced, left_out
from partitioner.methods.dp.stages import read_of_node
from partitioner.methods.method import Part, Settings
from partitioner.methods.pipeline_bound._fill_drain_core import LONGEST, new_tally, sweep
from partitioner.methods.pipeline_bound.paths import (
    EFFORT,
    LEAST,
    STREAM,
    WAYS,
    Between,
    DetailLevel,
    MakespanSpec,
    MakespanTable,
    PassSpine,
    held_of,
    levels_of,
    spine_of,
)
from partitioner.methods.pipeline_bound.series import least_outside, less_in_series
from partitioner.problem.arrays import Floats, Ints, rows_of
from partitioner.problem.nets import build_nets
from partitioner.problem.pipeline import PipelineLimits
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.graph import Graph

ROUNDING = 1e-9
GOLDEN = 0.6180339887498949  # whose multiples are spread evenly between whole numbers


@dataclass(eq=False)
class FillDrain:
    """A bracket of the least makespan that no stage refutes, and pipelines that meet thresholds in it.

    Parameters
    ----------
    problem
        The problem, turned and without what is no part of the bound: limits and levels.
    spine, lattice, tables
        Its spine and its lattice, and the arrays of pipelines over it.
    between
        What is left out and lies between supernodes.
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
    fewer
        What the problem leaves out of the whole one; None if that is nothing.
    finer
        The number of ideals of the next search, which leaves out less; 0 if there is none.
    met
        The least limit that the last level did not refute, at first infinity.
    look
        Called from time to time; it may lower `value`. None: nothing.
    """

    problem: PipelineProblem
    spine: PassSpine
    lattice: Lattice
    tables: PipelineTables
    between: Between
    settings: Settings
    samples: int
    idle: bool
    bound: float
    value: float
    fewer: Reduced | None = None
    finer: int = 0
    steps: int = 0
    look: Callable[[], None] | None = None
    met: float = field(default=np.inf, init=False)
    most_steps: float = field(default_factory=lambda: EFFORT.most_steps, init=False)
    ended: bool = field(default=False, init=False)
    scarce: bool = field(default=False, init=False)
    known: set[object] = field(default_factory=set, init=False)
    began: float = field(default=np.inf, init=False)

    @property
    def way(self) -> int:
        """What the way through the later stages leaves out."""
        way = WAYS[self.problem.pipeline.schedule or ""]
        if not self.spine.returns:
            return STREAM
        return way.alone if self.problem.copies.max() == 1 else way.replicated

    def narrow(self) -> Iterator[list[Part]]:
        """Raise the bound towards the value, with more and more paths; yield the pipelines found on the way.

        Yields
        ------
        list of Part
            The stages of a pipeline, first to last, whose makespan may be below the value.
        """
        self.began = self.settings.clock.left
        outside = None if self.closed(self.value) else self._outside(self.value)
        if outside is None:
            return
        if self.way == STREAM:  # whose paths leave nothing out
            self.bound = max(self.bound, min(self.value, float(outside[0, 0, LONGEST]) * (1 - ROUNDING)))
        states, near = self.lattice.size * self.tables.space.count, EFFORT.coarse * self.value
        levels = list(levels_of(self.problem, self.spine, states, self.idle))
        for level in levels:
            self.scarce = level.slots == 1
            yield from self._bracketed(level, outside, 0.0 if level is levels[-1] else near)
            if self.ended or self.closed(self.value) or not self.scarce or self._gives_way():
                return
            near = EFFORT.share * (self.value - self.bound)

    def _gives_way(self) -> bool:
        """Whether the next search, which leaves out less, has time for what this one has done so far."""
        clock = self.settings.clock
        counted = self.settings.deterministic or clock.deadline is None
        spent, left = (self.steps, EFFORT.most_steps) if counted else (self.began - clock.left, clock.left)
        return bool(0 < spent * (self.finer / self.lattice.size) ** EFFORT.growth <= left)

    def _bracketed(self, level: DetailLevel, outside: Floats, near: float) -> Iterator[list[Part]]:
        """Narrow the distance between the bound and the least limit that a pipeline meets.

        Yielded are pipelines that meet a limit and may be better than the best one. The search ends if bound
        and limit are near and a finer level could tell more.
        """
        limits = LimitBracket(self, outside, near, EFFORT.spread if level.slots == EFFORT.slots[0] else 0)
        try:
            for asked in limits.questions(lambda _: limits.next_limit(), level):
                self.bound = limits.bound
                for table in asked.decision.stages or ():
                    yield from self._best(table, level)
        except Stopped:
            return

    def _best(self, table: MakespanTable, level: DetailLevel) -> Iterator[list[Part]]:
        """Yield the pipelines of a table whose paths are shortest, unless they have been before."""
        last = table.length[:, -1, :, level.whole]
        for place in np.argsort(last, axis=None)[: EFFORT.most_chains].tolist():
            if last.flat[place] < self.value:
                stages = self._stages(table, *divmod(place, last.shape[1]))
                key = tuple((part.kind, part.replicas, part.nodes.tobytes()) for part in stages)
                if key not in self.known:
                    self.known.add(key)
                    stages = turned_stages(stages, self.problem.n)
                    yield stages if self.fewer is None else self.fewer.stages_of(stages)

    def closed(self, high: float, near: float = 0.0) -> bool:
        """Whether a limit is as close to the bound as is asked."""
        return high - self.bound <= max(near, EFFORT.narrow * self.value)

    def _outside(self, limit: float) -> Floats | None:
        """Return the least times of the stages outside each ideal; None if the run must end.

        Where the time is limited it is limited in place of steps from then on. If there were too many, the
        least times are lower bounds where the longest paths outside would not be read.
        """
        least = np.full((self.tables.space.count, self.lattice.size, 3), np.inf)
        least[:, -1] = 0.0
        table, spec, first = LEAST.table(1, 1), self._spec(limit, LEAST), self.lattice.size - 2
        first, ended = self._swept(spec, table, least, first, -1), self.settings.expired
        if ended or self.settings.deadline is None or self.settings.deterministic:
            return least if first < 0 else None
        self.most_steps = np.inf
        if first < 0 or self.way == STREAM:
            return least if self._swept(spec, table, least, first, -1) < 0 else None
        unused = self.tables.space.free.sum(axis=1)
        by_number = least_outside(self.problem, self.spine, self.lattice, spec.spine, spec.most)
        return np.asarray(by_number[unused])

    def filled(self, limit: float, level: DetailLevel, outside: Floats) -> MakespanTable | None:
        """Return the table of the pipelines that nothing refutes at a limit; None if the run must end."""
        table = level.table(self.lattice.size, self.tables.space.count)
        reached = self._swept(self._spec(limit, level), table, outside, 0, 1)
        return table if reached == self.lattice.size - 1 else None

    def _swept(self, spec: MakespanSpec, table: MakespanTable, outside: Floats, first: int, step: int) -> int:
        """Sweep the lattice from an ideal on; return the one that is next, where the run must end."""
        costs, last = self.tables.clipped(spec.most), self.lattice.size - 1
        costs = costs._replace(made=self.problem.nets.made, read=read_of_node(self.problem))
        if self.problem.pipeline.closing:  # while stages before it still work, which the paths count
            costs = costs._replace(added=False)
        memory, states = self.tables.model.memory, self.tables.space.states
        tally = new_tally(costs, memory, states, spec, table, outside, step < 0)
        path = new_path(self.problem.n)
        while 0 <= first < last:
            self.ended = self.settings.expired or self.steps > self.most_steps
            if self.ended:
                break
            first, steps = sweep(self.lattice, tally, path, first, step, EFFORT.slice)
            self.steps += steps
            if self.look is not None:
                self.look()
        return first

    def _spec(self, limit: float, level: DetailLevel) -> MakespanSpec:
        """Return the arguments of the sweep for a limit."""
        tables, problem = self.tables, self.problem
        most = limit * (1 + ROUNDING) / self.samples
        relaxation, free = tables.relaxation, tables.space.free
        capacity = relaxation.capacity(most, free, problem.memory)
        taken = relaxation.capacity(most, problem.count - free, problem.memory)
        in_series = less_in_series(relaxation, free, limit, self.samples)
        alone = self.way != STREAM and problem.copies.max() == 1  # of streams the sweep knows more
        capacity_on, memory = capacity - (in_series if alone else 0.0), tables.model.memory
        forward, backward = (np.where(problem.allowed, problem.time[:, w], np.inf) for w in (0, 1))
        return MakespanSpec(
            way=self.way,
            returns=self.spine.returns,
            turns=self.spine.returns and self.spine.trains,
            idle=self.idle,
            samples=self.samples,
            limit=limit * (1 + ROUNDING),
            most=most,
            forward=forward,
            backward=backward,
            between=self.between,
            before=self.spine.before[::-1].copy(),
            after=self.spine.after[::-1].copy(),
            spine=held_of(self.lattice, self.spine.on[::-1]),
            rows=level.rows,
            whole=level.whole,
            close=EFFORT.close * limit if level.slots > 1 else 0.0,
            capacity=capacity + SLACK * (relaxation.weight.sum() + capacity),
            taken=taken + SLACK * (relaxation.weight.sum() + taken),
            capacity_on=capacity_on + SLACK * (relaxation.weight.sum() + capacity),
            price=free @ relaxation.time_price,
            remaining=tables.remaining,
            remaining_on=remaining_weights(self.lattice, relaxation.weight * self.spine.on[::-1]),
            above=tables.above,
            widest=np.where(problem.count > 0, problem.copies, 0),
            least_in_flight=float(memory.in_flight[:, 1:].min()),
            least_versions=float(memory.versions[:, 1:].min()),
        )

    def _stages(self, table: MakespanTable, state: int, slot: int) -> list[Part]:
        """Return the stages of the turned problem that lead to all ideals, a state and a slot."""
        stages, ideal = [], self.lattice.size - 1
        while ideal:
            before, slot, kind, copies = table.last[state, ideal, slot].tolist()
            if copies:
                stages.append(Part(kind, self.lattice.difference(ideal, before), copies))
            ideal = before
            state -= self.tables.space.step(kind, max(copies, 1))
        return stages[::-1]


class LimitBracket(Bracket[DetailLevel]):
    """The bound, and the least limit that a pipeline meets as far as one level of detail knows.

    What is found of a limit is the table of the pipelines that meet it, of which a simulation may show a
    makespan below it.

    Parameters
    ----------
    whole
        The search that this one is a step of.
    outside, near
        The least times of stages outside each ideal; and the distance at which a finer level could tell more.
    spread
        The steps for limits spread between the bound and the best makespan, from the second limit on.
    """

    def __init__(self, whole: FillDrain, outside: Floats, near: float, spread: int) -> None:
        self.settings, self.bound, self.value, self.stages = whole.settings, whole.bound, whole.value, None
        self.whole, self.outside, self.near, self.start = whole, outside, near, whole.bound
        self.spread, self.asked, self.steps = float(spread), 0, np.inf

    def next_limit(self) -> float | None:
        """Return a limit between bound and value, and above the bound; None if they are near.

        After those that are spread, the first step from the bound is a third of the way to the value, or half
        of that to the limit that a coarser level did not refute. Steps double while limits are refuted, at
        most halfway to the value: tables of limits that are met take longest.
        """
        whole = self.whole
        if self.steps <= self.spread and self.asked < EFFORT.limits and not whole.closed(whole.value):
            self.spread, self.asked = self.spread - self.steps, self.asked + 1
            return self.bound + (self.asked * GOLDEN % 1) * (whole.value - self.bound)
        self.value = min(self.value, whole.value)
        if whole.closed(self.value, self.near if whole.scarce else 0.0):
            return None
        risen = self.bound - self.start
        first = (whole.met - self.start) / 2 if whole.met > self.start else np.inf
        step = risen if risen > 0 else min(first, (self.value - self.bound) / 3)
        return self.bound + min(step, (self.value - self.bound) / 2)

    def decide(self, threshold: float, effort: DetailLevel) -> Decision:
        """Return the table of the pipelines that nothing refutes at a limit.

        Raises
        ------
        Stopped
            If the run must end.
        """
        before = self.whole.steps
        table = self.whole.filled(threshold, effort, self.outside)
        if table is None:
            raise Stopped
        self.steps = self.whole.steps - before
        self.whole.scarce |= bool(np.isfinite(table.length[:, :, -1, 0]).any())
        if np.isinf(table.length[:, -1, 0, 0]).all():
            return Decision(complete=True)
        self.whole.met = min(threshold, self.value)
        return Decision([table], threshold, complete=True)


@dataclass(frozen=True, eq=False)
class FillDrainModel:
    """What the searches for a bound share.

    Parameters
    ----------
    problem
        The problem without what is no part of the bound: limits and levels.
    spine
        Its spine.
    idle
        Whether supernodes that cost nothing have been merged, so that a stage may hold none of those left.
    settings
        Say when the run must end.
    """

    problem: PipelineProblem
    spine: PassSpine
    idle: bool
    settings: Settings

    @classmethod
    def of(
        cls,
        graph: Graph,
        problem: PipelineProblem,
        apart: PipelineProblem,
        spine: PassSpine | None,
        settings: Settings,
    ) -> FillDrainModel | None:
        """Return what the searches share; None if nothing is known of the schedule.

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
        free = problem.relaxed.without_levels
        free = replace(free, nets=build_nets(graph, free.member, free.n, "passes"))
        free = replace(free, pipeline=replace(free.pipeline, limits=PipelineLimits()), coarser=None)
        return cls(free, spine, idle, settings)

    def searches(self, bound: float, value: float) -> Iterator[FillDrain]:
        """Yield the search, before it those that leave out light supernodes, most of them first.

        A search of the rest has a bound that holds for all, since leaving out supernodes makes no stage
        longer; of a stage that held these alone there is an idle device left. There is none if the ideals are
        too many, and those of the rest if they can be fewer yet.

        Parameters
        ----------
        bound, value
            A lower bound on the makespan, and the least one that is known.
        """
        whole = self.search(value)
        found = [] if whole is None else [whole]
        for share in sorted(EFFORT.light) if found or self.idle else ():
            many = found[-1].lattice.size if found else EFFORT.most_ideals
            if many <= EFFORT.few or self.settings.expired:
                break
            fewer = self.search(value, share) if bound < (1 - EFFORT.lost * share) * value else None
            if fewer is not None and fewer.lattice.size <= EFFORT.fewer * many:
                fewer.finer = many if found else 0
                found.append(fewer)
        yield from reversed(found)

    def search(self, value: float, share: float = 0.0) -> FillDrain | None:
        """Return the search that leaves out a share of the work; None if the ideals are too many."""
        problem, spine, fewer = self.problem, self.spine, None
        triples = np.zeros((0, 3), dtype=np.int64)
        if share:
            problem, fewer = left_out(problem, share, spine.on)
            spine, triples = spine.of(fewer.kept), fewer.between
        between = between_of(self.problem, triples, problem)
        problem = replace(problem, nets=problem.nets.joined(triples[:, 1:], problem.n))
        turned = problem.turned()
        relaxation = relax(turned.lightest)
        lattice = lattice_within(turned, self.settings, model_for(turned), EFFORT.most_ideals)
        if lattice is None or np.isinf(relaxation.bound):
            return None
        tables = PipelineTables(turned, relaxation, lattice)
        samples = turned.pipeline.microbatches or 1
        idle, bound = self.idle or fewer is not None, samples * relaxation.bound
        return FillDrain(
            turned, spine, lattice, tables, between, self.settings, samples, idle, bound, value, fewer
        )


def between_of(whole: PipelineProblem, triples: Ints, rest: PipelineProblem) -> Between:
    """Return what lies between supernodes of the turned rest of a problem.

    Parameters
    ----------
    whole
        The problem.
    triples
        Shape (m, 3): see :attr:`Reduced.between`.
    rest
        The rest, to whose nets those of the pairs of supernodes will be added.
    """
    light, before, _ = triples.T
    rows = rows_of(rest.n - 1 - before, np.arange(len(light)), rest.n)
    times = np.where(whole.allowed[:, None], whole.time, np.inf)[:, :, light[rows.items]]
    forward, backward = (np.ascontiguousarray(times[:, way]) for way in (0, 1))
    return Between(rows.start, len(rest.nets.cost) + rows.items, forward, backward)
