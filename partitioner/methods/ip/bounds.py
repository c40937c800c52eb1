"""Lower bounds that need no solver."""

from __future__ import annotations

from collections.abc import Callable

from partitioner.methods.ip.search import Search
from partitioner.methods.method import Settings
from partitioner.methods.relaxation import relax
from partitioner.preprocess.problem import Problem


def _relaxation(problem: Problem, value: float, settings: Settings) -> float:
    return relax(problem).bound


Bound = Callable[[Problem, float, Settings], float]
PROVIDERS: tuple[Bound, ...] = (_relaxation,)  # each is given the best value so far


def raise_bound(search: Search) -> None:
    """Let every provider raise the bound of a search, cheapest first, until the search is over."""
    for provider in PROVIDERS:
        search.raise_bound(provider(search.problem, search.value, search.settings))
        if search.over:
            return
