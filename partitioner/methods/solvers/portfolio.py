"""The portfolio of solvers on one search: some prove bounds, some search neighbourhoods of the best plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from partitioner.methods.solvers.backends.backend import Answer, Capability, Job, SolverLimits
from partitioner.methods.solvers.neighbourhood import Neighbourhoods
from partitioner.methods.solvers.program import Program
from partitioner.methods.solvers.search import MARGIN, PRECISION, Search
from partitioner.methods.solvers.worker_pool import Event, Worker, WorkerPool


@dataclass(frozen=True)
class PortfolioEffort:
    """How the time of solvers is shared between proofs and neighbourhoods.

    Parameters
    ----------
    look, grace, least
        Seconds between two readings of the clock, by which a solver may overrun its own limit, and with less
        than which left no process is started.
    slice, search_seconds
        Seconds of the first proof where proofs alternate with neighbourhoods, and of one neighbourhood.
    search_gap
        The relative gap at which the search of a neighbourhood ends.
    stale
        A proof starts again when the value has fallen by this factor.
    """

    look: float = 0.05
    grace: float = 2.0
    least: float = 1.0
    slice: float = 10.0
    search_seconds: float = 3.0
    search_gap: float = 1e-3
    stale: float = 1.01


EFFORT = PortfolioEffort()


class Statement(Protocol):
    """A task in the form that a solver takes."""

    @property
    def program(self) -> Program:
        """The program that the solver is given."""

    @property
    def unit(self) -> float:
        """The time that is 1 in the solver's program."""

    @property
    def cutoff(self) -> float:
        """The solver finds no solution above this value."""

    def solution(self, values: Any) -> Any:
        """Return the solution that the solver's values describe."""


@dataclass(frozen=True, eq=False)
class SolverRun:
    """One solve, of the whole program or of a neighbourhood.

    `known` is the value, the bound and the number of refused solutions when it began; `ends` is the reading
    of ``time.perf_counter`` when it should end.
    """

    statement: Statement
    backend: Capability
    whole: bool
    known: tuple[float, float, int]
    ends: float


@dataclass(eq=False)
class Slot:
    """A core, or all cores, on which one solve runs after the other.

    Parameters
    ----------
    backends
        The solvers, used in turn.
    threads
        Cores for each solve.
    slice
        Seconds of a proof, after which neighbourhoods are searched for as long; both then double.
        Infinity means only proofs, zero means only neighbourhoods.
    search_until
        Reading of ``time.perf_counter`` at which the next proof begins.
    done
        Whether the slot has nothing left to do.
    searches
        False if there are only proofs, by one backend after the other where `slice` is finite.
    seed
        Seed of the solves and of the choice of neighbourhoods.
    """

    backends: list[Capability]
    threads: int
    slice: float
    seed: int
    worker: Worker | None = None
    run: SolverRun | None = None
    search_until: float = 0.0
    runs: int = 0
    done: bool = False
    searches: bool = True
    near: Neighbourhoods = field(init=False)

    def __post_init__(self) -> None:
        self.near = Neighbourhoods(np.random.default_rng(self.seed))


def slots_of(backends: Sequence[Capability], workers: int, seed: int, searches: bool = True) -> list[Slot]:
    """Return one slot for each core, or a single slot if the solver uses several cores itself.

    If `searches` is False there are no neighbourhoods, and at most as many slots as backends.
    """
    first = backends[0]
    if first.parallel or workers == 1:
        slice_ = np.inf if first.parallel else EFFORT.slice
        return [Slot(list(backends), workers, slice_, seed, searches=searches)]
    if not searches:
        return [Slot([backend], 1, np.inf, seed + i) for i, backend in enumerate(backends[:workers])]
    proving = [Slot([backend], 1, EFFORT.slice, seed + i) for i, backend in enumerate(backends[:workers])]
    searching = range(len(proving), workers)
    return proving + [Slot([backends[i % len(backends)]], 1, 0.0, seed + i) for i in searching]


@dataclass(eq=False)
class SolverPortfolio:
    """Slots that work on one search; `state` turns a task into a statement."""

    search: Search[Any]
    pool: WorkerPool
    slots: list[Slot]
    state: Callable[[Any], Statement]

    @property
    def backend(self) -> str:
        """The name of the first solver, for a run in which none has answered; ``"numba"`` without slots."""
        return self.slots[0].backends[0].name if self.slots and self.slots[0].backends else "numba"

    def begin(self) -> None:
        """Start a proof on the first slot, to run while other code searches for a first plan."""
        for slot in self.slots[:1]:
            self._keep_busy(slot)
        self.search.look = self.listen

    def listen(self, seconds: float = 0.0) -> None:
        """Wait at most `seconds` for a message, and process all messages that have come."""
        while (event := self.pool.next(seconds)) is not None:
            for slot in self.slots:
                if slot.worker is event.worker and slot.run is not None:
                    self._take(slot, slot.run, event)
            seconds = 0.0

    def run(self) -> None:
        """Run solves until the search is over or no slot can prove anything more."""
        for slot in self.slots[1:]:
            slot.search_until = time.perf_counter() + slot.slice / 2
        while not self.search.over and self.step():
            pass

    def step(self) -> bool:
        """Start solves on free slots and wait shortly for messages; return False if no slot can prove more.

        It is also False if no solve is running and there is too little time to start a process.
        """
        for slot in self.slots:
            self._keep_busy(slot)
        proving = any(not slot.done for slot in self.slots if slot.slice > 0)
        if not proving or not any(slot.run for slot in self.slots):
            return False
        self.listen(EFFORT.look)
        return True

    def end(self) -> None:
        """Record which solvers are still running at the end of the search."""
        for slot in self.slots:
            if slot.run is not None:
                self.search.words.setdefault(slot.run.backend.name, "stopped")

    def _keep_busy(self, slot: Slot) -> None:
        run = slot.run
        if run is not None:
            stale = run.whole and run.statement.cutoff > EFFORT.stale * self.search.target
            if stale or time.perf_counter() > run.ends + EFFORT.grace:
                self._abandon(slot)
        if slot.run is None and not slot.done:
            self._start(slot)

    def _abandon(self, slot: Slot) -> None:
        if slot.worker is not None:
            slot.worker.kill()
        slot.worker = slot.run = None

    def _start(self, slot: Slot) -> None:
        search, now = self.search, time.perf_counter()
        ready = slot.worker is not None and slot.worker.alive
        if not (ready or is_worth_while(search.settings.clock.left)):
            search.cut_short = True
            return
        may_search = slot.searches and search.best is not None and slot.slice < np.inf
        whole = not may_search or (now >= slot.search_until and slot.slice > 0)
        task = search.task() if whole else slot.near.task(search)
        seconds = min(max(slot.slice, EFFORT.slice) if whole else EFFORT.search_seconds, self._left())
        backend = slot.backends[slot.runs % len(slot.backends)]
        slot.runs += whole
        gap = max(0.0, search.settings.gap - 2 * PRECISION) if whole else EFFORT.search_gap
        limits = SolverLimits(None if np.isinf(seconds) else seconds, gap, slot.seed, slot.threads)
        slot.run = SolverRun(self.state(task), backend, whole, self._known(), now + seconds)
        job = Job(backend.place, slot.run.statement.program, limits)
        if slot.worker is None or not ready:
            slot.worker = self.pool.start()
        slot.worker.submit(job)

    def _left(self) -> float:
        """Return the seconds for a solver, without the time that passing on its answer takes."""
        left = self.search.settings.clock.left
        return max(left - min(2.0, 0.1 + 0.02 * left), 0.01) if np.isfinite(left) else left

    def _known(self) -> tuple[float, float, int]:
        return self.search.value, self.search.bound, self.search.refused

    def _take(self, slot: Slot, run: SolverRun, event: Event) -> None:
        """Pass the solution and the bound of a message to the search; end the run if it is an answer."""
        message = event.message
        if message.values is not None:
            solution = run.statement.solution(message.values)
            if not self.search.offer(solution):
                self.search.refuse(solution)
        if run.whole:
            self.search.raise_bound(unscaled(message.bound, run.statement))
        if isinstance(message, Answer):
            slot.run = None
            self._conclude(slot, run, message)

    def _conclude(self, slot: Slot, run: SolverRun, answer: Answer) -> None:
        ended = answer.stop in ("optimal", "gap", "infeasible")
        if answer.stop == "failed":
            self._drop(slot, run, answer)
        elif not run.whole:
            slot.near.learn(ended)
            return
        elif ended and run.known == self._known():
            slot.done = True
        elif not ended and slot.slice < np.inf:
            slot.search_until = time.perf_counter() + slot.slice
            slot.slice *= 2
        self.search.words[run.backend.name] = answer.native

    def _drop(self, slot: Slot, run: SolverRun, answer: Answer) -> None:
        """Remove a backend that failed, with a note."""
        self.search.notes.append(f"backend {run.backend.name} failed: {answer.native}")
        slot.backends.remove(run.backend)
        slot.done = not slot.backends


def is_worth_while(seconds: float) -> bool:
    """Whether a process that is started now can achieve anything in so little time as `seconds`."""
    return seconds >= EFFORT.least


def unscaled(bound: float, statement: Statement) -> float:
    """Return a solver's bound in the graph's unit, at most the cutoff, above which it proves nothing."""
    return min(bound * statement.unit * (1 - MARGIN), statement.cutoff) if bound > 0 else 0.0
