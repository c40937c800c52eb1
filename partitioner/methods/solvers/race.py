"""Solvers side by side: some prove, some search the neighbourhood of the best parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from partitioner.methods.solvers.backends.backend import Answer, Capability, Limits
from partitioner.methods.solvers.messages import Job
from partitioner.methods.solvers.neighbourhood import Neighbourhoods
from partitioner.methods.solvers.search import MARGIN, PRECISION, Search
from partitioner.methods.solvers.worker_pool import Crew, Event, Worker

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
        """What the solver's values stand for."""


@dataclass(frozen=True, eq=False)
class Lap:
    """One solve, of the whole program or of a neighbourhood, and what was known when it began."""

    statement: Statement
    backend: Capability
    whole: bool
    known: tuple[float, float, int]
    ends: float


@dataclass(eq=False)
class Lane:
    """A core's worth of work: one solve after the other.

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
        Has the lane nothing left to do?
    searches
        False if it only proves, one backend after the other where the slice is no infinity.
    seed
        Seed of the lane.
    """

    backends: list[Capability]
    threads: int
    slice: float
    seed: int
    worker: Worker | None = None
    lap: Lap | None = None
    search_until: float = 0.0
    laps: int = 0
    done: bool = False
    searches: bool = True
    near: Neighbourhoods = field(init=False)

    def __post_init__(self) -> None:
        self.near = Neighbourhoods(np.random.default_rng(self.seed))


def lanes_of(backends: Sequence[Capability], workers: int, seed: int, searches: bool = True) -> list[Lane]:
    """One lane for each core, or one for all cores where the solver uses them itself.

    With `searches` False there are no neighbourhoods, and only as many lanes as backends.
    """
    first = backends[0]
    if first.parallel or workers == 1:
        slice_ = np.inf if first.parallel else SLICE
        return [Lane(list(backends), workers, slice_, seed, searches=searches)]
    if not searches:
        return [Lane([backend], 1, np.inf, seed + i) for i, backend in enumerate(backends[:workers])]
    proving = [Lane([backend], 1, SLICE, seed + i) for i, backend in enumerate(backends[:workers])]
    searching = range(len(proving), workers)
    return proving + [Lane([backends[i % len(backends)]], 1, 0.0, seed + i) for i in searching]


@dataclass(eq=False)
class Race:
    """Lanes at work on one search; `state` says how a task is put to a backend."""

    search: Search[Any]
    crew: Crew
    lanes: list[Lane]
    state: Callable[[Any, Capability], Statement]

    @property
    def backend(self) -> str:
        """The first solver, by which a run that asks none is named."""
        return self.lanes[0].backends[0].name if self.lanes and self.lanes[0].backends else "numba"

    def begin(self) -> None:
        """Let the first lane prove what it can while others look for first parts."""
        for lane in self.lanes[:1]:
            self._keep_busy(lane)
        self.search.look = self.listen

    def listen(self, seconds: float = 0.0) -> None:
        """Wait so long for a message, and take all that are there."""
        while (event := self.crew.next(seconds)) is not None:
            for lane in self.lanes:
                if lane.worker is event.worker and lane.lap is not None:
                    self._take(lane, lane.lap, event)
            seconds = 0.0

    def run(self) -> None:
        """Work until the search is over or no lane can prove anything more."""
        for lane in self.lanes[1:]:
            lane.search_until = time.perf_counter() + lane.slice / 2
        while not self.search.over and self.step():
            pass

    def step(self) -> bool:
        """Keep the lanes busy and listen for a moment; False once no lane can prove anything more.

        That is so, too, once none is at work and there is too little time to start a process.
        """
        for lane in self.lanes:
            self._keep_busy(lane)
        proving = any(not lane.done for lane in self.lanes if lane.slice > 0)
        if not proving or not any(lane.lap for lane in self.lanes):
            return False
        self.listen(LOOK)
        return True

    def end(self) -> None:
        """Note which solvers are still at work when the search is over."""
        for lane in self.lanes:
            if lane.lap is not None:
                self.search.words.setdefault(lane.lap.backend.name, "stopped")

    def _keep_busy(self, lane: Lane) -> None:
        lap = lane.lap
        if lap is not None:
            stale = lap.whole and lap.statement.cutoff > STALE * self.search.target
            if stale or time.perf_counter() > lap.ends + GRACE:
                self._abandon(lane)
        if lane.lap is None and not lane.done:
            self._start(lane)

    def _abandon(self, lane: Lane) -> None:
        if lane.worker is not None:
            lane.worker.kill()
        lane.worker = lane.lap = None

    def _start(self, lane: Lane) -> None:
        search, now = self.search, time.perf_counter()
        hired = lane.worker is not None and lane.worker.alive
        if not (hired or is_worth_while(search.settings.clock.left)):
            search.cut_short = True
            return
        may_search = lane.searches and search.best is not None and lane.slice < np.inf
        whole = not may_search or (now >= lane.search_until and lane.slice > 0)
        task = search.task() if whole else lane.near.task(search)
        seconds = min(max(lane.slice, SLICE) if whole else SEARCH_SECONDS, self._left())
        backend = lane.backends[lane.laps % len(lane.backends)]
        lane.laps += whole
        gap = max(0.0, search.settings.gap - 2 * PRECISION) if whole else SEARCH_GAP
        limits = Limits(None if np.isinf(seconds) else seconds, gap, lane.seed, lane.threads)
        lane.lap = Lap(self.state(task, backend), backend, whole, self._known(), now + seconds)
        job = Job(backend.place, lane.lap.statement.payload, limits)
        if lane.worker is None or not hired:
            lane.worker = self.crew.hire()
        lane.worker.give(job)

    def _left(self) -> float:
        """Seconds for a solver, less what it takes to hand over its answer."""
        left = self.search.settings.clock.left
        return max(left - min(2.0, 0.1 + 0.02 * left), 0.01) if np.isfinite(left) else left

    def _known(self) -> tuple[float, float, int]:
        return self.search.value, self.search.bound, self.search.refused

    def _take(self, lane: Lane, lap: Lap, event: Event) -> None:
        """Learn from a message, and end the lap if it is an answer."""
        message = event.message
        if message.values is not None:
            solution = lap.statement.solution(message.values)
            if not self.search.offer(solution):
                self.search.refuse(solution)
        if lap.whole:
            self.search.raise_bound(unscaled(message.bound, lap.statement))
        if isinstance(message, Answer):
            lane.lap = None
            self._conclude(lane, lap, message)

    def _conclude(self, lane: Lane, lap: Lap, answer: Answer) -> None:
        ended = answer.stop in ("optimal", "gap", "infeasible")
        if answer.stop == "failed":
            self._drop(lane, lap, answer)
        elif not lap.whole:
            lane.near.learn(ended)
            return
        elif ended and lap.known == self._known():
            lane.done = True
        elif not ended and lane.slice < np.inf:
            lane.search_until = time.perf_counter() + lane.slice
            lane.slice *= 2
        self.search.words[lap.backend.name] = answer.native

    def _drop(self, lane: Lane, lap: Lap, answer: Answer) -> None:
        """Go on without a backend that failed."""
        self.search.notes.append(f"backend {lap.backend.name} failed: {answer.native}")
        lane.backends.remove(lap.backend)
        lane.done = not lane.backends


def is_worth_while(seconds: float) -> bool:
    """Whether a process that is started now can do anything in so many seconds."""
    return seconds >= LEAST


def unscaled(bound: float, statement: Statement) -> float:
    """A solver's bound in the graph's unit; a solver knows nothing of what is above the cutoff."""
    return min(bound * statement.unit * (1 - MARGIN), statement.cutoff) if bound > 0 else 0.0
