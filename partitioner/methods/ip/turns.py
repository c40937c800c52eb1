"""Local search and the covering bound in turns: better plans make it rise, and it ends the search."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from partitioner.methods.cover.bound import Covering
from partitioner.methods.ip.search import Search
from partitioner.methods.local_search.rounds import Search as Annealing
from partitioner.methods.local_search.search import improve

SHARE = 0.85  # of the time that is left
RATE, LONGEST = 1e-2, 60.0  # seconds of local search: of the first round for each supernode, of any round
COVER = 1.0  # seconds of covering for each second of local search
IDLE = 3  # rounds without progress before the solvers get both cores
PROGRESS = 1e-4


def take_turns(search: Search) -> None:
    """Improve parts and bound in rounds, each longer, until neither moves any more."""
    now = time.perf_counter()
    deadline = search.settings.deadline
    end = np.inf if deadline is None else now + SHARE * (deadline - now)
    covering = Covering(search.problem, search.bound)
    annealing = Annealing(search.problem, search.settings.seed)
    seconds, idle = RATE * search.problem.n, 0
    _polish(search, min(seconds, end - time.perf_counter()))
    while not search.over and idle < IDLE and time.perf_counter() < end:
        value, bound = search.value, search.bound
        _anneal(search, annealing, min(end, time.perf_counter() + seconds))
        stop = _stop(search, min(end, time.perf_counter() + COVER * seconds))
        ended = covering.rise(search.value, search.settings.gap, stop, search.raise_bound)
        moved = search.value < value * (1 - PROGRESS) or search.bound > bound * (1 + PROGRESS)
        idle = 0 if moved or not ended else idle + 1
        seconds = min(1.2 * seconds, LONGEST)


def _polish(search: Search, seconds: float) -> None:
    """Local search from the best parts known."""
    floor, seed = search.bound / (1 - search.gap), search.settings.seed
    found = improve(search.problem, search.parts, search.settings, seconds, seed=seed, floor=floor)
    if found is not None:
        search.offer(found[1])
    search.look()


def _anneal(search: Search, annealing: Annealing, end: float) -> None:
    """Local search from nothing, which goes on where it was: a start is often far from the best parts."""
    floor = search.bound / (1 - search.gap)

    def go_on() -> bool:
        late = time.perf_counter() >= end or search.settings.expired
        return not late and min(search.value, annealing.value) > floor

    annealing.run(go_on)
    if annealing.parts is not None:
        search.offer(annealing.parts)
    search.look()


def _stop(search: Search, end: float) -> Callable[[], bool]:
    def stop() -> bool:
        search.look()
        return search.over or time.perf_counter() > end

    return stop
