"""Solvers side by side: some prove, some search the neighbourhood of the best parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from partitioner.methods.solvers.backends.backend import Answer, Capability, SolverLimits
from partitioner.methods.solvers.messages import Job
from partitioner.methods.solvers.neighbourhood import Neighbourhoods
from partitioner.methods.solvers.search import MARGIN, PRECISION, Search
from partitioner.methods.solvers.worker_pool import Event, Worker, WorkerPool

LOOK = 0.05  # seconds between looks at the clock
GRACE = 2.0  # seconds by which a solver may overrun its own limit
LEAST = 1.0  # seconds: with less left no process is started any more
SLICE = 10.0  # seconds of the first proof that takes turns with neighbourhoods
SEARCH_SECONDS = 3.0  # for one neighbourhood
SEARCH_GAP = 1e-3
STALE = 1.01  # a proof starts anew when the value has fallen by this factor


class Statement(Protocol):
    """A task as a solver takes it."""

    @property
    def payload(self) -> Any:
        """What the solver is given."""

    @property
    def unit(self) -> float:
        """The time that is 1 to the solver."""

    @property
    def cutoff(self) -> float:
        """The solver finds no solution above this value."""

    def solution(self, values: Any) -> Any:
        """Return the solution that the solver's values stand for."""


@dataclass(frozen=True, eq=False)
class SolverRun:
    """One solve, of the whole program or of a neighbourhood, and what was known when it began."""

    statement: Statement
    backend: Capability
    whole: bool
    known: tuple[float, float, int]
    ends: float


@dataclass(eq=False)
class Slot:
    """What one core runs: one solve after the other.

    Parameters
    ----------
    backends
        Taken in turn.
    threads
        Cores for each solve.
    slice
        Seconds of a proof before neighbourhoods are searched for as long, then twice that: infinity
        to prove all the time, zero to search all the time.
    search_until
        When the next proof begins.
    done
        Whether the slot has nothing left to do.
    searches
        False if it only proves, one backend after the other where the slice is no infinity.
    seed
        Seed of the slot.
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
    """Return one slot for each core, or one for all cores where the solver uses them itself.

    With `searches` False there are no neighbourhoods, and only as many slots as backends.
    """
    first = backends[0]
    if first.parallel or workers == 1:
        slice_ = np.inf if first.parallel else SLICE
        return [Slot(list(backends), workers, slice_, seed, searches=searches)]
    if not searches:
        return [Slot([backend], 1, np.inf, seed + i) for i, backend in enumerate(backends[:workers])]
    proving = [Slot([backend], 1, SLICE, seed + i) for i, backend in enumerate(backends[:workers])]
    searching = range(len(proving), workers)
    return proving + [Slot([backends[i % len(backends)]], 1, 0.0, seed + i) for i in searching]


@dataclass(eq=False)
class SolverPortfolio:
    """Slots that work on one search; `state` says how a task is put to a backend."""

    search: Search[Any]
    pool: WorkerPool
    slots: list[Slot]
    state: Callable[[Any, Capability], Statement]

    @property
    def backend(self) -> str:
        """The first solver, which names a run in which no solver has answered."""
        return self.slots[0].backends[0].name if self.slots and self.slots[0].backends else "numba"

    def begin(self) -> None:
        """Let the first slot prove what it can while others look for first parts."""
        for slot in self.slots[:1]:
            self._keep_busy(slot)
        self.search.look = self.listen

    def listen(self, seconds: float = 0.0) -> None:
        """Wait for a message for at most `seconds`, and take all that have come."""
        while (event := self.pool.next(seconds)) is not None:
            for slot in self.slots:
                if slot.worker is event.worker and slot.run is not None:
                    self._take(slot, slot.run, event)
            seconds = 0.0

    def run(self) -> None:
        """Work until the search is over or no slot can prove anything more."""
        for slot in self.slots[1:]:
            slot.search_until = time.perf_counter() + slot.slice / 2
        while not self.search.over and self.step():
            pass

    def step(self) -> bool:
        """Keep the slots busy and listen for a moment; False once no slot can prove anything more.

        That is so, too, once none is at work and there is too little time to start a process.
        """
        for slot in self.slots:
            self._keep_busy(slot)
        proving = any(not slot.done for slot in self.slots if slot.slice > 0)
        if not proving or not any(slot.run for slot in self.slots):
            return False
        self.listen(LOOK)
        return True

    def end(self) -> None:
        """Note which solvers are still at work when the search is over."""
        for slot in self.slots:
            if slot.run is not None:
                self.search.words.setdefault(slot.run.backend.name, "stopped")

    def _keep_busy(self, slot: Slot) -> None:
        run = slot.run
        if run is not None:
            stale = run.whole and run.statement.cutoff > STALE * self.search.target
            if stale or time.perf_counter() > run.ends + GRACE:
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
        seconds = min(max(slot.slice, SLICE) if whole else SEARCH_SECONDS, self._left())
        backend = slot.backends[slot.runs % len(slot.backends)]
        slot.runs += whole
        gap = max(0.0, search.settings.gap - 2 * PRECISION) if whole else SEARCH_GAP
        limits = SolverLimits(None if np.isinf(seconds) else seconds, gap, slot.seed, slot.threads)
        slot.run = SolverRun(self.state(task, backend), backend, whole, self._known(), now + seconds)
        job = Job(backend.place, slot.run.statement.payload, limits)
        if slot.worker is None or not ready:
            slot.worker = self.pool.start()
        slot.worker.submit(job)

    def _left(self) -> float:
        """Seconds for a solver, less what it takes to hand over its answer."""
        left = self.search.settings.clock.left
        return max(left - min(2.0, 0.1 + 0.02 * left), 0.01) if np.isfinite(left) else left

    def _known(self) -> tuple[float, float, int]:
        return self.search.value, self.search.bound, self.search.refused

    def _take(self, slot: Slot, run: SolverRun, event: Event) -> None:
        """Learn from a message, and end the run if it is an answer."""
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
        """Go on without a backend that failed."""
        self.search.notes.append(f"backend {run.backend.name} failed: {answer.native}")
        slot.backends.remove(run.backend)
        slot.done = not slot.backends


def is_worth_while(seconds: float) -> bool:
    """Whether a process that is started now can do anything in that many seconds."""
    return seconds >= LEAST


def unscaled(bound: float, statement: Statement) -> float:
    """Return a solver's bound in the graph's unit; a solver knows nothing of what is above the cutoff."""
    return min(bound * statement.unit * (1 - MARGIN), statement.cutoff) if bound > 0 else 0.0
