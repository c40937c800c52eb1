"""Lower bounds that need no solver."""

from __future__ import annotations

import time
from collections.abc import Callable

from partitioner.methods.cover.bound import cover_bound
from partitioner.methods.ip.search import Search
from partitioner.methods.relaxation import relax

COVER_SHARE = 0.5


def raise_bound(search: Search) -> None:
    """The fractional assignment, which takes no time and ignores transfers."""
    search.raise_bound(relax(search.problem).bound)


def raise_bound_by_covering(search: Search, listen: Callable[[], None]) -> None:
    """The covering relaxation, in half of the time that is left; `listen` is called in between."""
    settings = search.settings
    now = time.perf_counter()
    end = float("inf") if settings.deadline is None else now + COVER_SHARE * (settings.deadline - now)

    def stop() -> bool:
        listen()
        return search.over or time.perf_counter() > end

    relaxation = relax(search.problem)
    cover_bound(search.problem, relaxation, search.value, stop, search.raise_bound, settings.gap)
