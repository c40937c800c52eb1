"""The anytime search for chains, where the ideals do not fit the memory budget.

A state is an ideal I and the devices s in use; it leads to (J, s + one of k) for every stage J - I of load at
most the threshold t for which the rest may still fit the devices that are left:

    weight(outside J) <= capacity(t, devices outside s + one of k)

for three additive weights: those of the relaxation, and shares of a device of which no two, or no three, fit.
All attempts of a round have the same effort, which grows from round to round; they search from the first
stage and from the last one in turn. What an attempt cannot decide is left behind in its round only. Three
nodes of 4 on two devices at t = 5 each take more than half of a device, and 3 > 2: the bound is above 5.

The walk over the stages of a state is its own, not :func:`partitioner.methods.dp._walk_core.walk_of`, which
looks up the covers of an ideal in a lattice. Here there is none: an ideal is a hash and the supernodes that
are placed, what may follow is a list of those that wait for no other one, and a walk ends after some steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from partitioner.base.registry import imported
from partitioner.methods.bounds.cuts import holds
from partitioner.methods.bounds.relaxation import SLACK, Relaxation
from partitioner.methods.communication_kernel import SEQUENTIAL
from partitioner.methods.dp import _anytime_core as kernel
from partitioner.methods.dp._anytime_core import Demand, Expansion, Pool, SearchGraph, fill_slots
from partitioner.methods.dp.bracket import UNLIMITED, Asked, Decision
from partitioner.methods.dp.chain import clipped, growth_of, stage_model, used_devices
from partitioner.methods.dp.improvement import ChainImprovement
from partitioner.methods.dp.lattice import weights_above
from partitioner.methods.dp.linear import LinearBracket, LinearSearch
from partitioner.methods.loads import value_of
from partitioner.methods.method import ROUNDING, Outcome, Part, Settings, meets
from partitioner.methods.units import load_unit, rounded_up
from partitioner.problem.arrays import Floats
from partitioner.problem.problem import Problem
from partitioner.problem.variants import ChainProblem
from partitioner.workload.devices import COMMUNICATION_MODELS

if TYPE_CHECKING:
    from partitioner.methods.bounds.cuts import CutBound


SLOTS = 4  # slots for each state, a power of two
BYTES = 37 + 4 * SLOTS  # for each state, besides its ideal
BOUNDS = 3
KEPT = ("ideal", "key", "used", "kind", "parent", "priority", "one", "other")


class Effort(NamedTuple):
    """Limits of one attempt: steps in all, steps from one state, and stages from one state."""

    steps: int
    steps_each: int
    stages_each: int


@dataclass(frozen=True)
class AnytimeEffort:
    """How much each attempt searches.

    Parameters
    ----------
    first, growth, highest
        The limits of the attempts of the first round, their factors from round to round, and the largest.
    close
        A bracket of less than this fraction of the value is not halved again in the same round.
    rounds, most_rounds
        The rounds of a run whose work must not depend on the clock, and of any run.
    most, vectors
        Supernodes, and vectors of used devices, above which the search is not begun.
    cut_share
        The share of the time left for the bound of the cuts between stages.
    spread
        By how much the order of supernodes differs from one seed to the next.
    few
        Supernodes up to which their order looks at the weight of all that follows each.
    slice, room
        Steps between two looks at the clock, and states that arrays hold at first; neither changes a result.
    """

    first: Effort = field(default=Effort(steps=300_000, steps_each=300, stages_each=30))
    growth: Effort = field(default=Effort(steps=3, steps_each=2, stages_each=2))
    highest: Effort = field(default=Effort(steps=10**15, steps_each=10**9, stages_each=100_000))
    close: float = 1e-4
    rounds: int = 5
    most_rounds: int = 24
    most: int = 20_000
    vectors: int = 1_000_000
    cut_share: float = 0.2
    spread: float = 0.3
    few: int = 5_000
    slice: int = 400_000
    room: int = 1 << 14


EFFORT = AnytimeEffort()


def most_states(problem: Problem, memory_budget: int) -> int:
    """Return how many states the budget holds, with room for copying when the pool grows."""
    each = 8 * _words(problem) + BYTES
    return max(2, min(memory_budget // (2 * each), 2**31 // SLOTS - 1))


def empty_pool(problem: Problem, most: int) -> Pool:
    """Return a pool that holds the state of the empty ideal."""
    room = min(EFFORT.room, most)
    stages = int(problem.count.sum())
    pool = _pool(room, _words(problem), np.full(stages + 1, -1, np.int32))
    pool.top[0] = 0
    fill_slots(pool, 1)
    return pool


def grown(pool: Pool, count: int, most: int) -> Pool:
    """Return the pool with room for twice the states, at most `most`; it holds `count` states."""
    room, words = pool.ideal.shape
    larger = _pool(min(2 * room, most), words, pool.top)
    for name in KEPT:
        getattr(larger, name)[:count] = getattr(pool, name)[:count]
    fill_slots(larger, count)
    return larger


def work_space(problem: Problem) -> Expansion:
    """Return the work space for expanding states."""
    n, kinds, nets = problem.n, len(problem.count), len(problem.nets.cost)
    return Expansion(
        placed=np.zeros(n, np.bool_),
        missing=np.zeros(n, np.int64),
        candidate=np.zeros(n + 1, np.int64),
        position=np.zeros(n + 2, np.int64),
        ready=np.zeros(n + 2, np.int64),
        before=np.zeros(nets, np.int64),
        inside=np.zeros(nets, np.int64),
        compute=np.zeros((n + 2, kinds)),
        size=np.zeros(n + 2),
        transfer=np.zeros((n + 2, 3)),
        weight=np.zeros((n + 2, BOUNDS)),
        key=np.zeros(n + 2, np.uint64),
    )


def _words(problem: Problem) -> int:
    return -(-problem.n // 64)


def _pool(room: int, words: int, top: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Pool:
    """Return a pool without states."""
    slots = 1 << (room * SLOTS // 2).bit_length()
    return Pool(
        ideal=np.zeros((room, words), np.uint64),
        key=np.zeros(room, np.uint64),
        used=np.zeros(room, np.int32),
        kind=np.zeros(room, np.int16),
        parent=np.full(room, -1, np.int32),
        priority=np.zeros(room),
        one=np.full(room, -1, np.int32),
        other=np.full(room, -1, np.int32),
        alike=np.full(room, -1, np.int32),
        slot=np.full(slots, -1, np.int32),
        top=top,
    )


THIRD = 1 / 3


class DemandSource:
    """The demands of one problem at any threshold.

    Parameters
    ----------
    problem, relaxation
        The problem, and its relaxation, whose weights make the first bound.
    """

    def __init__(self, problem: Problem, relaxation: Relaxation) -> None:
        self.problem, self.relaxation = problem, relaxation
        _, self.left, self.following = used_devices(problem)
        self.growth = growth_of(problem)
        self.toll = _toll(problem, relaxation)

    def at(self, threshold: float) -> Demand:
        """Return what the threshold demands; loads may exceed it by the error of rounding."""
        threshold *= 1 + ROUNDING
        capacity = self.relaxation.capacity(threshold, self.left, self.problem.memory)
        capacity += SLACK * (self.relaxation.weight.sum() + capacity)
        shares = device_shares(self.problem, threshold)
        devices = self.left.sum(axis=1) + SLACK * (self.problem.n + self.problem.count.sum())
        return Demand(
            threshold=threshold,
            weight=np.vstack((self.relaxation.weight, shares)),
            capacity=np.vstack((capacity, *(devices for _ in shares))),
            toll=self.toll,
            left=self.left,
            following=self.following,
            growth=self.growth,
        )


def _toll(problem: Problem, relaxation: Relaxation) -> float:
    """Return what a cut net takes at least of the joint capacity of later devices, for each unit of its cost.

    One of them pays for it, so that it is the least over all kinds; 0 unless transfers add to the load.
    """
    if COMMUNICATION_MODELS.index(problem.communication) != SEQUENTIAL:
        return 0.0
    return float((relaxation.time_price * problem.transfer_factor)[problem.count > 0].min())


def device_shares(problem: Problem, threshold: float) -> Floats:
    """Return two shares of a device that every supernode needs at a threshold, shape (2, n).

    No two supernodes that take more than half of the threshold share a device, and no three that take more
    than a third; what takes exactly a half or a third counts as much of it (bounds 2 and 3 of assembly
    lines: Scholl and Becker 2006, Section 2.2.1).
    """
    time = problem.work()[problem.count > 0].min(axis=0)
    share = np.divide(time, threshold, out=np.where(time > 0, np.inf, 0.0), where=threshold > 0)
    above = [share > limit * (1 + SLACK) for limit in (0.5, 2 * THIRD, THIRD)]
    about = [share >= limit * (1 - SLACK) for limit in (0.5, 2 * THIRD, THIRD)]
    halves = np.select([above[0], about[0]], [1.0, 0.5])
    thirds = np.select([above[1], about[1], above[2], about[2]], [1.0, 2 * THIRD, 0.5, THIRD])
    return np.vstack((halves, thirds))


class Decider:
    """Decides whether chains exist, in one direction of the graph.

    Parameters
    ----------
    problem, relaxation
        The problem, and its relaxation, whose weights bound what the supernodes outside an ideal need.
    backwards
        Whether stages are made from the last one to the first.
    """

    def __init__(self, problem: Problem, relaxation: Relaxation, backwards: bool) -> None:
        after, before = problem.successors, problem.predecessors
        if backwards:
            after, before = before, after
            problem = replace(problem, successors=after, predecessors=before)
        self.problem, self.backwards, self.weight = problem, backwards, relaxation.weight
        self.demands = DemandSource(problem, relaxation)
        self.model = stage_model(problem)
        few = problem.n <= EFFORT.few
        self.tail = weights_above(after.start, after.items, self.weight, linear=False) if few else self.weight
        words = np.random.default_rng(0).integers(0, 2**64, problem.n, dtype=np.uint64)
        number = np.arange(problem.n)
        self.graph = SearchGraph(after.start, after.items, np.diff(before.start), number, words)

    def decide(self, threshold: float, effort: Effort, settings: Settings, seed: int) -> Decision:
        """Search for a chain in which no load exceeds the threshold, until the effort is spent.

        Another seed tries the supernodes in another order; seed 0 is the plain one. The answer does not name
        the value of the stages.
        """
        demand, model = self.demands.at(threshold), clipped(self.model, threshold)
        if (demand.weight.sum(axis=1) > demand.capacity[:, 0]).any():
            return Decision(complete=True)
        graph, space = self.graph._replace(order=self._order(seed)), work_space(self.problem)
        most = most_states(self.problem, settings.memory_budget)
        pool, at = empty_pool(self.problem, most), np.zeros(6, dtype=np.int64)
        at[kernel.COUNT], at[kernel.LAST] = 1, -1
        state, kinds = kernel.PAUSED, len(self.problem.count)
        while state in (kernel.PAUSED, kernel.FULL):
            steps = int(at[kernel.STEPS])
            no_room = state == kernel.FULL and len(pool.key) == most
            if no_room or steps >= effort.steps or settings.expired:
                return Decision(steps=steps)
            if state == kernel.FULL:
                pool = grown(pool, int(at[kernel.COUNT]), most)
            room = kinds + (effort.stages_each if len(pool.key) < most else 0)
            limits = np.array([min(steps + EFFORT.slice, effort.steps), *effort[1:], room])
            state = kernel.search(graph, model, demand, pool, space, at, limits)
        steps = int(at[kernel.STEPS])
        if state == kernel.FOUND:
            return Decision(self._stages(pool, int(at[kernel.LAST])), steps=steps)
        return Decision(complete=bool(at[kernel.CUT_SHORT] == 0), steps=steps)

    def _order(self, seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the order of candidates: what is heavy, and what much weight depends on, comes first."""
        key = sum(each / max(each.mean(), 1e-300) for each in (self.weight, self.tail))
        if seed:
            key = key * (1 + EFFORT.spread * np.random.default_rng(seed).random(self.problem.n))
        return np.argsort(-key, kind="stable")

    def _stages(self, pool: Pool, state: int) -> list[Part]:
        """Return the stages of the chain that leads to a state, in the order of the pipeline."""
        stages = []
        while pool.parent[state] >= 0:
            parent = int(pool.parent[state])
            bits = np.unpackbits((pool.ideal[state] ^ pool.ideal[parent]).view(np.uint8), bitorder="little")
            stages.append(Part(int(pool.kind[state]), np.flatnonzero(bits)))
            state = parent
        return stages if self.backwards else stages[::-1]


CUT_BOUND = "partitioner.methods.bounds.cuts:CutBound"  # imported when it is needed: it loads a solver


def solve_beyond(
    linear: LinearSearch[ChainProblem], settings: Settings, note: str, rounds: int = EFFORT.most_rounds
) -> Outcome:
    """Search on from the best linear chain, until the gap is closed or the run must end.

    Parameters
    ----------
    linear
        The search over linear orders, which has ended.
    settings
        The settings of the run from now on.
    note
        Says why not all ideals were searched.
    rounds
        How many rounds the search may take.
    """
    linear.settings, problem = settings, linear.problem
    search = AnytimeSearch(linear)
    if problem.n <= EFFORT.most and problem.states <= EFFORT.vectors:
        search.run(min(rounds, EFFORT.rounds) if settings.deterministic else rounds)
    proven = meets(linear.bound, linear.value)
    return Outcome(
        problem,
        linear.stages,
        linear.value,
        min(linear.bound, linear.value),
        "optimal" if proven else settings.ended(linear.bound, linear.value),
        infeasible=proven and linear.stages is None,
        notes=() if proven else (note,),
        statistics={
            "orders": linear.orders,
            "linear_value": search.linear_value,
            "attempts": search.attempts,
            "steps": linear.steps + search.steps,
        },
    )


class Attempt(NamedTuple):
    """The effort of one question, and the number of its round, which seeds the order of supernodes."""

    number: int
    effort: Effort


class AnytimeSearch(LinearBracket[Attempt]):
    """The best chain found so far, and a bound, which one attempt after another narrows.

    Parameters
    ----------
    linear
        The search over linear orders, which has the problem, its relaxation and the settings, and holds the
        bound, the best chain and its value.

    Attributes
    ----------
    steps, attempts
        How much was searched.
    """

    def __init__(self, linear: LinearSearch[ChainProblem]) -> None:
        super().__init__(linear, linear.settings)
        self.problem = problem = linear.problem
        self.unit, self.linear_value = load_unit(problem.relaxed), linear.value
        self.bound = rounded_up(self.bound, self.unit)
        self.improvement = ChainImprovement(linear)
        self.steps = self.attempts = 0
        self._relaxed = cache(lambda: Decider(problem.relaxed, linear.relaxation, backwards=False))
        self._decider = cache(lambda backwards: Decider(problem, linear.relaxation, backwards))

    @property
    def over(self) -> bool:
        """Whether the gap is closed or a limit is reached."""
        return self.closed or self.settings.expired or self.steps > self.settings.step_limit

    def run(self, rounds: int) -> None:
        """Search until the gap is closed, nothing better can be found, or the run must end."""
        self._count_cuts()
        effort = EFFORT.first
        for number in range(rounds):
            self.improvement.run(number)
            self.ask_by(self._halving, Attempt(number, effort))
            if self.over or self._finish(Attempt(number, effort)):
                return
            grown = (one * other for one, other in zip(effort, EFFORT.growth, strict=True))
            effort = Effort(*map(min, grown, EFFORT.highest))

    def _count_cuts(self) -> None:
        """Raise the bound by what the cuts between stages must cost."""
        problem = self.problem.relaxed
        if self.over or not holds(problem) or np.isinf(self.value):
            return
        limited = self.settings.for_share(EFFORT.cut_share)
        bound: type[CutBound] = imported(CUT_BOUND)
        raised = bound(problem, lambda: limited.expired).rise(self.bound, self.value)
        self.bound = min(rounded_up(raised, self.unit), self.value)

    def _halving(self, asked: Asked | None) -> float | None:
        """Return the threshold that halves the bracket above :attr:`low`, the bound first; None if narrow."""
        if asked is None:
            threshold = self.bound
        elif self.low == UNLIMITED or self.value < self.low + max(1.5 * self.unit, EFFORT.close * self.low):
            return None
        elif np.isinf(self.value):
            threshold = UNLIMITED
        elif self.unit == 0:
            threshold = self.middle()
        else:
            threshold = min(rounded_up(self.middle(), self.unit), self.value - self.unit)
        return threshold if threshold < self.value else None

    def _lowering(self, asked: Asked | None) -> float | None:
        """Return a threshold just below the value as long as that finds better chains."""
        ends = np.isinf(self.value) or (asked is not None and not asked.improved)
        return None if ends else self.value * (1 - 4 * ROUNDING)

    def _finish(self, attempt: Attempt) -> bool:
        """Look for anything better; return whether it is known that there is none."""
        asked = self.ask_by(self._lowering, attempt)
        return asked is not None and asked.decision.refuted

    def decide(self, threshold: float, effort: Attempt) -> Decision:
        """Return a chain within the threshold, searched forwards and backwards in turn."""
        decider = self._decider((effort.number + self.attempts) % 2 == 1)
        answer = decider.decide(threshold, effort.effort, self.settings, effort.number)
        self.attempts += 1
        self.steps += answer.steps
        return (
            answer if answer.stages is None else replace(answer, value=value_of(self.problem, answer.stages))
        )

    def take(self, answer: Decision) -> None:
        """Keep the chain found if it is better than the best one known."""
        if answer.stages is not None:
            self.linear.offer(answer.value, answer.stages)

    def ask(self, threshold: float, effort: Attempt) -> Decision:
        """Narrow the bracket by one attempt, and report the progress."""
        answer = super().ask(threshold, effort)
        self.settings.report_progress("attempts", self.attempts, 0, self.value, self.bound)
        return answer

    def refute(self, threshold: float, effort: Attempt) -> None:
        """Raise the bound if there is no chain of the user's graph within the threshold either."""
        if not self.problem.lossless:  # supernodes were merged at a risk
            relaxed = self._relaxed().decide(threshold, effort.effort, self.settings, 0)
            if not relaxed.refuted:
                return
        self.bound = max(self.bound, self._above(threshold))

    def _above(self, threshold: float) -> float:
        """Return a bound that follows if no chain keeps to a threshold."""
        if threshold >= UNLIMITED:
            return np.inf
        above = rounded_up(threshold * (1 + 4 * ROUNDING), self.unit)
        return self.value if meets(above, self.value) else above
