"""Local search and the covering bound in turns: better plans make it rise, and it ends the search."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from partitioner.methods.cover.bound import Covering
from partitioner.methods.ip.search import Search
from partitioner.methods.local_search.search import improve

SHARE = 0.85  # of the time that is left
RATE, LONGEST = 1e-2, 60.0  # seconds of local search: of the first round for each supernode, of any round
COVER = 2.0  # seconds of covering for each second of local search
IDLE = 3  # rounds without progress before the solvers get both cores
PROGRESS = 1e-4


def take_turns(search: Search) -> None:
    """Improve parts and bound in rounds, each longer, until neither moves any more."""
    now = time.perf_counter()
    deadline = search.settings.deadline
    end = np.inf if deadline is None else now + SHARE * (deadline - now)
    covering = Covering(search.problem, search.bound)
    seconds, turn, idle = RATE * search.problem.n, 0, 0
    while not search.over and idle < IDLE and time.perf_counter() < end:
        value, bound = search.value, search.bound
        _improve(search, min(seconds, end - time.perf_counter()), turn)
        stop = _stop(search, min(end, time.perf_counter() + COVER * seconds))
        ended = covering.rise(search.value, search.settings.gap, stop, search.raise_bound)
        moved = search.value < value * (1 - PROGRESS) or search.bound > bound * (1 + PROGRESS)
        idle = 0 if moved or not ended else idle + 1
        seconds, turn = min(1.2 * seconds, LONGEST), turn + 1


def _improve(search: Search, seconds: float, turn: int) -> None:
    """Local search, mostly from nothing: a good start is often far from the best parts."""
    floor = search.bound / (1 - search.gap)
    start = None if turn % 3 else search.parts
    seed = search.settings.seed + turn
    found = improve(search.problem, start, search.settings, seconds, seed=seed, floor=floor)
    if found is not None:
        search.offer(found[1])
    search.look()


def _stop(search: Search, end: float) -> Callable[[], bool]:
    def stop() -> bool:
        search.look()
        return search.over or time.perf_counter() > end

    return stop
