"""Improvement of parts by local search within a limit on time or on moves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partitioner.base.clock import Clock
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.local_search.rounds import EFFORT, LocalSearch, PartLayout
from partitioner.methods.method import Outcome, Part, Settings, meets, no_split
from partitioner.problem.variants import PartsProblem


def solve_local_search(problem: PartsProblem, settings: Settings) -> Outcome:
    """Anneal from random placements, and from the given plan if there is one: method ``local_search``."""
    bound = relax(problem).bound
    if np.isinf(bound):
        return no_split(problem)
    search = LocalSearch(PartLayout(problem), settings.seed)
    if settings.incumbent is not None:
        search.offer(settings.incumbent)
    limit = EFFORT.rounds * EFFORT.shifts * problem.n if settings.deadline is None else None
    search.run(lambda: _goes_on(search, settings, bound, limit), limit)
    return outcome_of(search, settings, bound)


def outcome_of(search: LocalSearch, settings: Settings, bound: float) -> Outcome:
    """Return the outcome of a search."""
    value = search.value
    stop = settings.ended(bound, value)
    statistics = {"moves": float(search.shifts)}
    return Outcome(search.problem, search.parts, value, min(bound, value), stop, statistics=statistics)


def _goes_on(search: LocalSearch, settings: Settings, bound: float, limit: int | None) -> bool:
    settings.report_progress("local search", search.shifts, limit or 0, search.value, bound)
    return not (meets(bound, search.value, settings.gap) or settings.expired)


def improve(
    problem: PartsProblem,
    start: Sequence[Part] | None,
    settings: Settings,
    seconds: float,
    seed: int = 0,
    *,
    floor: float = 0.0,
    moves: int | None = None,
) -> tuple[float, list[Part]] | None:
    """Search for better parts, from given or from random ones, and return the best with their value.

    Parameters
    ----------
    problem
        A problem for a free or a convex split.
    start
        Parts to start from, which may break the limits; None for random ones.
    settings
        Say when to stop; nothing else of them is used.
    seconds
        Wall time after which to stop.
    seed
        The same seed and `moves` give the same parts.
    floor
        Stop once the value is at most this.
    moves
        Stop after that many moves of one supernode; None for no limit.

    Returns
    -------
    tuple or None
        The value and the parts, never worse than a feasible `start`; None if no parts were found that obey
        the limits.
    """
    search = LocalSearch(PartLayout(problem), seed)
    if start is not None:
        search.offer(start)
    clock = Clock(seconds)

    def go_on() -> bool:
        late = clock.expired or settings.expired
        return not late and search.value > floor

    search.run(go_on, moves)
    return None if search.parts is None else (search.value, search.parts)
