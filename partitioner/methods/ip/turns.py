"""Solvers one after another, each limited by a count of its work: the same run on every machine.

What :mod:`partitioner.methods.solvers.portfolio` does at the same time, limited by the clock, is done here in
a fixed order. Only the answer of a solve counts, not what the solver reports before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from partitioner.methods.bounds.cover import Covering
from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.ip.descent import EFFORT as DESCENT
from partitioner.methods.ip.splits import SplitSearch
from partitioner.methods.local_search.rounds import EFFORT as ANNEALING
from partitioner.methods.local_search.rounds import LocalSearch, PartLayout
from partitioner.methods.solvers.backends.backend import Answer, Capability, Job, News, SolverLimits
from partitioner.methods.solvers.neighbourhood import Neighbourhoods
from partitioner.methods.solvers.portfolio import EFFORT as PORTFOLIO
from partitioner.methods.solvers.portfolio import Statement, unscaled
from partitioner.methods.solvers.search import PRECISION, Search
from partitioner.methods.solvers.worker_pool import Worker, WorkerPool


@dataclass(frozen=True)
class TurnsEffort:
    """The length of each turn, as a count of work.

    Measured at half and at twice each value on ten random graphs of up to 24 nodes, free splits: values and
    bounds stay as they are. CPU seconds, about 3.2, are 1.9 with half the `patience` and 5.2 with twice it.

    Parameters
    ----------
    steps
        Steps of the covering bound in a turn.
    rounds
        Rounds of annealing in a turn, of the length of the first ones.
    patience
        Turns without progress before the end.
    first_proof
        The limit on the nodes of the first proof; each further round has twice as many.
    search_nodes, neighbourhoods
        The limit on the nodes of a neighbourhood, and how many there are between two proofs.
    """

    steps: int = 40
    rounds: int = 2
    patience: int = 3
    first_proof: int = 200
    search_nodes: int = 200
    neighbourhoods: int = 4


EFFORT = TurnsEffort()


def tighten_in_turns(search: SplitSearch, relaxation: Relaxation) -> None:
    """Improve parts and bound in turn until they meet, or neither has improved for some turns."""
    problem = search.problem
    covering = Covering(problem, relaxation, memory=search.settings.memory_budget)
    annealing = LocalSearch(PartLayout(problem), search.settings.seed)
    if search.best is not None:
        annealing.offer(search.best)
    idle = 0
    while not search.over and idle < EFFORT.patience:
        value, bound = search.value, search.bound
        annealing.run(
            _goes_on(search, annealing), annealing.shifts + EFFORT.rounds * ANNEALING.shifts * problem.n
        )
        if annealing.parts is not None and annealing.value < search.value:
            search.offer(annealing.parts)
        covering.rise(search.value, search.settings.gap, _counted(search), search.raise_bound)
        moved = search.value < value * (1 - DESCENT.progress) or search.bound > bound * (1 + DESCENT.progress)
        idle = 0 if moved else idle + 1


def _goes_on(search: SplitSearch, annealing: LocalSearch) -> Callable[[], bool]:
    floor = search.bound / (1 - search.gap)
    return lambda: not search.settings.expired and min(search.value, annealing.value) > floor


def _counted(search: SplitSearch) -> Callable[[], bool]:
    left = EFFORT.steps

    def stop() -> bool:
        nonlocal left
        left -= 1
        return left < 0 or search.over

    return stop


ENDED = ("optimal", "gap", "infeasible")


@dataclass(eq=False)
class Turns:
    """A run of proofs and neighbourhoods in turn, until the gap is closed or no solver can prove more.

    Parameters
    ----------
    search, pool, state
        As for :class:`partitioner.methods.solvers.portfolio.SolverPortfolio`.
    backends
        The solvers, used in turn.
    searches
        Whether neighbourhoods are searched, too.
    between
        Function called after every proof, for other work that is limited by steps.
    """

    search: Search[Any]
    pool: WorkerPool
    backends: list[Capability]
    state: Callable[[Any], Statement]
    searches: bool = True
    between: Callable[[], None] = lambda: None
    worker: Worker | None = None
    near: Neighbourhoods = field(init=False)

    def __post_init__(self) -> None:
        self.near = Neighbourhoods(np.random.default_rng(self.search.settings.seed))

    def run(self) -> None:
        """Run solves until the search is over or no backend can prove anything more."""
        effort = EFFORT.first_proof
        while not self.search.over and self.backends:
            for backend in tuple(self.backends):
                if self._proof(backend, effort) or self.search.over:
                    return
                self.between()
                self._neighbourhoods(backend)
            effort *= 2

    def _proof(self, backend: Capability, effort: int) -> bool:
        """Solve the whole program within an effort; return True if further proofs cannot achieve more."""
        search = self.search
        known = search.value, search.bound, search.refused
        gap = max(0.0, search.settings.gap - 2 * PRECISION)
        statement = self.state(search.task())
        answer = self._answer(statement, backend, gap, effort)
        if answer is None:
            return True
        if answer.stop == "failed":
            search.notes.append(f"backend {backend.name} failed: {answer.native}")
            self.backends.remove(backend)
            return False
        search.words[backend.name] = answer.native
        search.raise_bound(unscaled(answer.bound, statement))
        return answer.stop in ENDED and known == (search.value, search.bound, search.refused)

    def _neighbourhoods(self, backend: Capability) -> None:
        for _ in range(EFFORT.neighbourhoods if self.searches else 0):
            if self.search.over or self.search.best is None:
                return
            statement = self.state(self.near.task(self.search))
            answer = self._answer(statement, backend, PORTFOLIO.search_gap, EFFORT.search_nodes)
            self.near.learn(answer is not None and answer.stop in ENDED)

    def _answer(self, statement: Statement, backend: Capability, gap: float, effort: int) -> Answer | None:
        """Return the answer of a solver after offering its solution; None if the run must end before."""
        limits = SolverLimits(None, gap, self.search.settings.seed, 1, effort)
        if self.worker is None or not self.worker.alive:
            self.worker = self.pool.start()
        self.worker.submit(Job(backend.place, statement.program, limits))
        message: Answer | News | None = None
        while not isinstance(message, Answer) and not self.search.settings.expired:
            event = self.pool.next(PORTFOLIO.look)
            if event is not None and event.worker is self.worker:
                message = event.message if event.message.values is not None else message
                message = event.message if isinstance(event.message, Answer) else message
        if message is not None and message.values is not None:
            self._offer(statement.solution(message.values))
        return message if isinstance(message, Answer) else None

    def _offer(self, solution: Any) -> None:
        if not self.search.offer(solution):
            self.search.refuse(solution)
