"""Method ``latency_ip``: quick plans and bounds, then local search and solvers at the same time.

The state of a run for latency: its best layout and its bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from partitioner.base.clock import Clock
from partitioner.methods.dispensable import dispensable
from partitioner.methods.ip.solve import within
from partitioner.methods.ip.turns import Turns
from partitioner.methods.latency.greedy import file_order, fill
from partitioner.methods.latency.integer_program import LatencyProgram, formulate
from partitioner.methods.latency.layout import SubgraphLayout, latency, obeys, outcome_of
from partitioner.methods.latency.path import longest_path
from partitioner.methods.latency.search import LatencySearch
from partitioner.methods.latency.sequence.method import solve_sequence
from partitioner.methods.latency.serial_bound import bound_of
from partitioner.methods.method import Outcome, Settings
from partitioner.methods.places import places_of
from partitioner.methods.solvers.backends.backend import Capability
from partitioner.methods.solvers.backends.catalogue import candidates, pick
from partitioner.methods.solvers.portfolio import EFFORT as PORTFOLIO
from partitioner.methods.solvers.portfolio import Slot, SolverPortfolio
from partitioner.methods.solvers.search import Search
from partitioner.methods.solvers.worker_pool import WorkerPool
from partitioner.problem.variants import SampleProblem


@dataclass(eq=False)
class LayoutSearch(Search[SubgraphLayout]):
    """A search whose solutions are layouts."""

    problem: SampleProblem

    def plan_value(self, solution: SubgraphLayout) -> float:
        """Return the latency; infinity if the layout breaks a rule."""
        return latency(self.problem, solution) if obeys(self.problem, solution) else float("inf")

    def task(self) -> LatencyProgram:
        """Return the integer program of the layouts with a latency of at most `target`."""
        return formulate(self.problem, self.target, self.bound)

    def found(self, stop_reason: str) -> Outcome:
        """Return the outcome with the best layout, its latency and the bound."""
        return outcome_of(self.problem, self.best, self.value, self.bound, stop_reason)


LOCAL = "local search"


@dataclass(frozen=True)
class LatencyEffort:
    """How the time of method ``latency_ip`` is shared.

    Parameters
    ----------
    moves
        Moves for each node of a local search in a deterministic run.
    polish
        Seconds for each node of the first local search.
    stated, stating
        Coefficients of the integer program that are formulated in a second, and the largest share of the time
        that is left which that may take.
    sequence_share, sequence_seconds
        Limits for sequences: the share of the time that is left, and seconds.
    """

    moves: int = 1_000
    polish: float = 1e-2
    stated: int = 400_000
    stating: float = 0.25
    sequence_share: float = 0.4
    sequence_seconds: float = 120.0


EFFORT = LatencyEffort()


def solve_latency(problem: SampleProblem, settings: Settings) -> Outcome:
    """Find plans and bounds that take seconds, then run solvers and local search: method ``latency_ip``.

    Raises
    ------
    BackendUnavailable
        If the named backend is not installed, or its licence does not cover a program of this size.
    """
    candidates(settings.backend)
    quick = settings.backend.replace("auto", "numba")
    search = LayoutSearch(problem, settings, longest_path(problem))
    if search.bound < np.inf:
        search.raise_bound(bound_of(problem, settings))
        if search.over:
            return search.outcome(quick)
        annealing = LatencySearch(problem, settings.seed)
        for layout in _starts(search, annealing):
            search.offer(layout)
            if search.over:
                return search.outcome(quick)
        _portfolio(search, annealing)
    return search.outcome("+".join(search.words) or quick)


def _starts(search: LayoutSearch, annealing: LatencySearch) -> Iterator[SubgraphLayout]:
    """Yield the given layout, the greedy split, that of a local search, and the best sequence of blocks."""
    problem, settings = search.problem, search.settings
    if settings.incumbent is not None and settings.incumbent_subgraph is not None:
        yield SubgraphLayout(places_of(problem, settings.incumbent), settings.incumbent_subgraph)
    greedy = fill(problem, file_order(problem))
    yield from [greedy] if greedy is not None else []
    yield from _annealed(search, annealing, EFFORT.polish * problem.n)
    sequence = None
    with dispensable(settings, "sequences of blocks", search.left_out, search.best is not None):
        sequence = solve_sequence(problem, within(settings, EFFORT.sequence_share, EFFORT.sequence_seconds))
    if sequence is not None and sequence.parts is not None and sequence.subgraph is not None:
        yield SubgraphLayout(places_of(problem, sequence.parts), sequence.subgraph)


def _annealed(search: LayoutSearch, annealing: LatencySearch, seconds: float) -> Iterator[SubgraphLayout]:
    fixed = search.settings.deterministic
    clock, limit = (
        (Clock(), annealing.moves + EFFORT.moves * search.problem.n) if fixed else (Clock(seconds), None)
    )
    if search.best is not None:
        annealing.offer(search.best)
    with dispensable(search.settings, LOCAL, search.left_out, search.best is not None):
        annealing.run(lambda: not clock.expired and _goes_on(search, annealing), limit)
    yield from [annealing.layout] if annealing.layout is not None else []


def _goes_on(search: LayoutSearch, annealing: LatencySearch) -> bool:
    floor = search.bound / (1 - search.gap)
    return not search.settings.expired and min(search.value, annealing.value) > floor


def _portfolio(search: LayoutSearch, annealing: LatencySearch) -> None:
    """Run solvers, while a thread continues the local search if there is a core for it."""
    settings = search.settings
    if _seconds_to_state(search.problem) > EFFORT.stating * settings.clock.left:
        search.cut_short = True
        for layout in _annealed(search, annealing, np.inf):
            search.offer(layout)
        return
    chosen, note = pick(settings.backend, search.task().program)
    backends = list(chosen)
    search.notes += [note] if note else []
    if settings.deterministic:
        _in_turns(search, annealing, backends)
        return
    anneals = settings.workers > 1 and not settings.compiled_enough
    threads = max(1, settings.workers - anneals) if backends[0].parallel else 1
    slots = [Slot(backends, threads, PORTFOLIO.slice, settings.seed, searches=False)]
    if search.best is not None:
        annealing.offer(search.best)
    done: list[bool] = []
    with closing(WorkerPool()) as pool, ThreadPoolExecutor(1) as executor:
        portfolio = SolverPortfolio(search, pool, slots, _stated)
        if anneals:
            executor.submit(annealing.run, lambda: not done and _goes_on(search, annealing))
        try:
            while not search.over and portfolio.step():
                _take(search, annealing)
        finally:
            done.append(True)
        portfolio.end()
    _take(search, annealing)


def _seconds_to_state(problem: SampleProblem) -> float:
    """Return approximately how long it takes to formulate the integer program."""
    places = problem.count.sum() * problem.subgraphs * (1 + problem.backward.any())
    return float(
        places * (problem.n + len(problem.successors.items) + len(problem.nets.pins.items)) / EFFORT.stated
    )


def _in_turns(search: LayoutSearch, annealing: LatencySearch, backends: list[Capability]) -> None:
    """Run solvers and local search one after another, none of them limited by time."""

    def anneal() -> None:
        for layout in _annealed(search, annealing, 0.0):
            search.offer(layout)

    with closing(WorkerPool()) as pool:
        Turns(search, pool, backends, _stated, searches=False, between=anneal).run()


def _take(search: LayoutSearch, annealing: LatencySearch) -> None:
    if annealing.layout is not None and annealing.value < search.value:
        search.offer(annealing.layout)


def _stated(program: LatencyProgram) -> LatencyProgram:
    """Return the program itself: the task of a search for latency is stated already."""
    return program
