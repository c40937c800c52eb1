"""Method ``local_search``, with the relaxation's lower bound."""

from __future__ import annotations

import numpy as np

from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.local_search.layouts import PartLayout
from partitioner.methods.local_search.rounds import SHIFTS_PER_NODE, LocalSearch
from partitioner.methods.method import Outcome, Settings, meets, no_split
from partitioner.problem.variants import PartsProblem

ROUNDS = 15


def solve_local_search(problem: PartsProblem, settings: Settings) -> Outcome:
    """Anneal from random placements, and from the given plan if there is one: method ``local_search``."""
    bound = relax(problem).bound
    if np.isinf(bound):
        return no_split(problem)
    search = LocalSearch(PartLayout(problem), settings.seed)
    if settings.incumbent is not None:
        search.offer(settings.incumbent)
    limit = ROUNDS * SHIFTS_PER_NODE * problem.n if settings.deadline is None else None
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
