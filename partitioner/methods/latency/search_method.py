"""Method ``latency_search``, with the critical path as lower bound."""

from __future__ import annotations

import numpy as np

from partitioner.methods.latency.layout import SubgraphLayout, outcome_of
from partitioner.methods.latency.path import longest_path
from partitioner.methods.latency.search import MOVES_PER_NODE, LatencySearch
from partitioner.methods.method import Outcome, Settings, meets, no_split
from partitioner.methods.places import places_of
from partitioner.problem.variants import SampleProblem

ROUNDS = 60


def solve_latency_search(problem: SampleProblem, settings: Settings) -> Outcome:
    """Anneal from greedy splits, and from the given plan if there is one: method ``latency_search``."""
    bound = longest_path(problem)
    if np.isinf(bound):
        return no_split(problem)
    search = LatencySearch(problem, settings.seed)
    if settings.incumbent is not None and settings.incumbent_subgraph is not None:
        search.offer(SubgraphLayout(places_of(problem, settings.incumbent), settings.incumbent_subgraph))
    limit = ROUNDS * MOVES_PER_NODE * problem.n if settings.deadline is None else None
    search.run(lambda: _goes_on(search, settings, bound, limit), limit)
    stop = settings.ended(bound, search.value)
    statistics = {"moves": float(search.moves)}
    return outcome_of(problem, search.layout, search.value, bound, stop, statistics=statistics)


def _goes_on(search: LatencySearch, settings: Settings, bound: float, limit: int | None) -> bool:
    settings.report_progress("local search", search.moves, limit or 0, search.value, bound)
    return not (meets(bound, search.value, settings.gap) or settings.expired)
