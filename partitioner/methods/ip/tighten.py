"""Local search, which lowers the value, and the covering bound, at the same time until they meet."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

from partitioner.methods.bounds.cover.bound import Covering
from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.ip.descent import PROGRESS, Descent
from partitioner.methods.ip.splits import SplitSearch

LOOK = 0.05  # seconds between two readings of the clock while only the local search runs


def tighten(search: SplitSearch, relaxation: Relaxation) -> None:
    """Improve parts and bound until they meet, or neither makes progress."""
    descent = Descent(search)
    covering = Covering(search.problem, relaxation, descent.left)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(descent.run)
        try:
            while not (search.over or descent.idle or running.done()):
                stop = _stop(search, descent)
                covering.rise(search.value, search.settings.gap, stop, search.raise_bound)
                while not (stop() or descent.idle or running.done()):
                    wait([running], LOOK)
        finally:
            descent.leaving = True
    running.result()
    descent.hand_over()


def cover(search: SplitSearch, relaxation: Relaxation) -> None:
    """Improve only the bound, which holds for any limits on parts; local search does not obey such limits."""
    descent = Descent(search)

    def stop() -> bool:
        search.look()
        return search.over or descent.late

    covering = Covering(search.problem, relaxation, descent.left)
    covering.rise(search.value, search.settings.gap, stop, search.raise_bound)


def _stop(search: SplitSearch, descent: Descent) -> Callable[[], bool]:
    """Return a function that says whether the covering bound should start again, or end."""
    value = search.value

    def stop() -> bool:
        search.look()
        descent.hand_over()
        descent.give_way(1)
        return search.over or descent.late or search.value < value * (1 - PROGRESS)

    return stop
