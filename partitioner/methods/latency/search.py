"""Local search for latency: simulated annealing on the exact time of one sample, in rounds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from partitioner.methods.latency._search_core import anneal
from partitioner.methods.latency._timing_core import LatencyControl
from partitioner.methods.latency.greedy import file_order, fill
from partitioner.methods.latency.layout import (
    SubgraphLayout,
    latency,
    layout_of,
    model_of,
    obeys,
    outcome_of,
    ranked,
    scratch_of,
    state_of,
)
from partitioner.methods.latency.path import longest_path
from partitioner.methods.local_search.rounds import Length
from partitioner.methods.method import Outcome, Settings, meets, no_split
from partitioner.methods.places import places_of
from partitioner.problem.arrays import Floats
from partitioner.problem.orders import depth_first
from partitioner.problem.variants import SampleProblem


@dataclass(frozen=True)
class LayoutAnnealingEffort:
    """How long a round of annealing is, and how it begins and ends.

    Measured on the eleven inference workloads of `instances/`, three seeds and 20,000 moves each
    (``scripts/effort_values.py layouts``): at half and at twice its value no field changes the mean of the
    latencies by more than 0.04 %. `rounds` and `visits` do not come into play there.

    Parameters
    ----------
    rounds
        Rounds of a run without a time limit.
    moves
        Moves for each node in the first rounds.
    chunk
        Moves at one temperature, at most.
    visits
        Nodes and edges between two readings of the clock, about a fifth of a second.
    hot
        The first temperature of a round from a greedy split, as a fraction of its latency.
    cold
        The last temperature of a round, as a fraction of the latency.
    warm
        The first temperatures of rounds from the best layout, of which one is drawn.
    ties
        The weights of the sum of the lengths of all units, of which one is drawn.
    again
        Of three rounds, the number of the one that starts from the best layout.
    strict
        The least penalty for memory above the limits, as a fraction of the latency.
    stricter, laxer
        The factor of the penalty after moves that end above a limit, and after others.
    mixes
        Shape (2, 5): cumulated shares of the kinds of moves, of which one row is drawn.
    """

    rounds: int = 60
    moves: int = 100
    chunk: int = 5_000
    visits: int = 20_000_000
    hot: float = 0.05
    cold: float = 0.0002
    warm: tuple[float, ...] = (0.003, 0.01, 0.03)
    ties: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1)
    again: int = 1
    strict: float = 0.02
    stricter: float = 1.3
    laxer: float = 0.9
    mixes: Floats = field(
        default_factory=lambda: np.cumsum([[0.3, 0.2, 0.2, 0.15, 0.05], [0.15, 0.3, 0.3, 0.15, 0.05]], axis=1)
    )


EFFORT = LayoutAnnealingEffort()


def solve_latency_search(problem: SampleProblem, settings: Settings) -> Outcome:
    """Anneal from greedy splits, and from the given plan if there is one: method ``latency_search``."""
    bound = longest_path(problem)
    if np.isinf(bound):
        return no_split(problem)
    search = LatencySearch(problem, settings.seed)
    if settings.incumbent is not None and settings.incumbent_subgraph is not None:
        search.offer(SubgraphLayout(places_of(problem, settings.incumbent), settings.incumbent_subgraph))
    limit = EFFORT.rounds * EFFORT.moves * problem.n if settings.deadline is None else None
    search.run(lambda: _goes_on(search, settings, bound, limit), limit)
    stop = settings.ended(bound, search.value)
    statistics = {"moves": float(search.moves)}
    return outcome_of(problem, search.layout, search.value, bound, stop, statistics=statistics)


def _goes_on(search: LatencySearch, settings: Settings, bound: float, limit: int | None) -> bool:
    settings.report_progress("local search", search.moves, limit or 0, search.value, bound)
    return not (meets(bound, search.value, settings.gap) or settings.expired)


class LatencySearch:
    """A local search in progress.

    Parameters
    ----------
    problem
        A problem for latency.
    seed
        Seed of everything random.

    Attributes
    ----------
    value, layout
        The best layout that obeys the limits and its latency; None and infinity if there is none yet.
    moves, rounds
        The number of moves tried, and of rounds, so far.
    """

    def __init__(self, problem: SampleProblem, seed: int) -> None:
        self.problem, self.random = problem, np.random.default_rng(seed)
        self.model = model_of(problem, problem.subgraphs)
        self.bits = self.random.integers(1, 2**63, 1, dtype=np.uint64)
        self.value: float = np.inf
        self.layout: SubgraphLayout | None = None
        self.moves = self.rounds = 0
        self._length = Length(EFFORT.moves * problem.n)
        visits = problem.n + len(problem.successors.items)  # of each move
        self.chunk = min(EFFORT.chunk, max(1, EFFORT.visits // max(1, visits)))

    def offer(self, layout: SubgraphLayout) -> None:
        """Keep a layout if it obeys the rules and is the best so far."""
        if obeys(self.problem, layout):
            value = latency(self.problem, layout)
            if value < self.value:
                self.value, self.layout = value, SubgraphLayout(layout.place, ranked(self.problem, layout))

    def run(self, go_on: Callable[[], bool], limit: int | None = None) -> None:
        """Run rounds while `go_on` returns True, up to a limit on the moves."""
        limit = sys.maxsize if limit is None else limit
        while self.moves < limit and self.problem.n and go_on():
            fresh = self.layout is None or self.rounds % 3 != EFFORT.again
            start = self._fresh() if fresh else self.layout
            if start is None:
                return
            warm = EFFORT.hot if fresh else float(self.random.choice(EFFORT.warm))
            before = self.value
            self._round(start, warm, limit, go_on)
            self.rounds += 1
            self._length.learn(self.value < before)

    def _round(self, start: SubgraphLayout, warm: float, limit: int, go_on: Callable[[], bool]) -> None:
        """Anneal from temperature `warm` to `EFFORT.cold`, with a random energy and mix of moves."""
        self.offer(start)
        model, state, scratch = self.model, state_of(self.model, start), scratch_of(self.model)
        begin, end = self.moves, min(self.moves + self._length.moves, limit)
        tie, mix = float(self.random.choice(EFFORT.ties)), self.random.choice(EFFORT.mixes)
        strict = EFFORT.strict
        scale = latency(self.problem, start)
        best, value = np.stack([state.place, state.unit]), np.array([self.value])
        while self.moves < end and go_on():
            temperature = scale * warm * (EFFORT.cold / warm) ** ((self.moves - begin) / self._length.moves)
            control = LatencyControl(temperature, strict * scale, tie, mix)
            budget = min(self.chunk, end - self.moves)
            anneal(model, state, scratch, control, self.bits, best, value, budget)
            self.moves += budget
            violated = (state.held > model.room).any()
            strict = min(strict * EFFORT.stricter, 1e6) if violated else strict * EFFORT.laxer
            strict = max(strict, EFFORT.strict)
            if value[0] < self.value:
                self.offer(layout_of(model, best[0], best[1]))
                value[0] = self.value

    def _fresh(self) -> SubgraphLayout | None:
        """Return a greedy split along a random order; it may exceed the memory if none obeys it."""
        chain = self.problem.chain
        order = depth_first(chain.successors, chain.predecessors, self.random.random(chain.n)).tolist()
        if self.layout is None and self.rounds == 0:
            order = file_order(self.problem)
        share = min(1.0, self.random.uniform(0.7, 1.2)) if self.rounds else 1.0
        memory, total = self.problem.memory, self.problem.size.sum()
        for room in (share * memory, memory, memory + 0.3 * total, memory + total):
            found = fill(replace(self.problem, memory=room), order)
            if found is not None:
                return found
        return None
