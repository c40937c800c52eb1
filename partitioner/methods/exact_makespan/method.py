"""Method ``exact``: a search of all schedules until one is proven to be optimal, or the time is over.

A short search comes first, which is enough for most graphs of up to ten operators. If it is not, the
portfolio runs, and the search goes on for schedules that are better than its plan.

The search leaves out that transfers wait for one another. With contention it therefore proves a lower bound,
and its schedules are timed anew; the bound may be below the optimum even when the search has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from partitioner.methods.exact_makespan.both_ways import SearchBothWays
from partitioner.methods.method import Outcome, Settings, meets, no_split
from partitioner.methods.placers.plan_value import bound_of, timed
from partitioner.methods.placers.portfolio import solve_portfolio
from partitioner.problem.variants import OperatorNodes


@dataclass(frozen=True)
class ExactMakespanEffort:
    """Which graphs are searched, and how long.

    Measured at half and at twice each value on 21 task graphs with known optima and 40 random graphs of up to
    24 operators: half the `steps` raise the mean of the task graphs' makespans by 0.8 %; nothing else changes
    a value or a bound.

    Parameters
    ----------
    largest
        The most operators of a graph that is searched.
    first
        Steps before the portfolio runs.
    steps
        Steps in all, without a time limit and in a deterministic run.
    """

    largest: int = 60
    first: int = 20_000
    steps: int = 200_000


EFFORT = ExactMakespanEffort()


TOO_LARGE = (
    f"the graph has more than {EFFORT.largest} operators: no schedules were searched beyond the portfolio"
)
CONTENTION = "the exact search left out that transfers wait for one another: its bound may be too low"
CUT_SHORT = "the exact search ended after {} steps; with time_limit it goes on until the time is over"


def solve_exact_makespan(problem: OperatorNodes, settings: Settings) -> Outcome:
    """Return the optimal plan, or the best one and a bound when the time is over: method ``exact``."""
    if problem.tasks.n > EFFORT.largest:
        outcome = solve_portfolio(problem, settings)
        return replace(outcome, notes=(*outcome.notes, TOO_LARGE))
    bound = bound_of(problem)
    if np.isinf(bound):
        return no_split(problem)
    search = SearchBothWays(problem, settings, bound)
    if settings.incumbent is None:
        search.run(EFFORT.first)
    if search.ended and np.isinf(search.value):
        return no_split(problem)
    if meets(search.bound, search.value, settings.gap):
        return _outcome(problem, settings, search, None)
    outcome = solve_portfolio(problem, settings)
    if outcome.infeasible:
        return outcome
    search.improve_on(outcome.value)
    timeless = settings.seconds_left is None or settings.deterministic
    search.run(EFFORT.steps if timeless else np.inf)
    if search.ended and np.isinf(search.value):
        return no_split(problem)
    return _outcome(problem, settings, search, outcome)


def _outcome(
    problem: OperatorNodes, settings: Settings, search: SearchBothWays, known: Outcome | None
) -> Outcome:
    """Return the best plan of the search, or the known outcome if as good, with the bound of the search."""
    outcome = known
    if search.best is not None and (known is None or search.best_value < known.value):
        outcome = timed(problem, settings, search.best, search.bound)
    assert outcome is not None
    bound = min(max(search.bound, outcome.bound), outcome.value)
    stop = settings.ended(bound, outcome.value)
    notes = () if known is None else known.notes
    if stop == "heuristic":
        notes = (*notes, CONTENTION if search.ended else CUT_SHORT.format(f"{search.steps:,}"))
    figures = {**outcome.statistics, "steps": float(search.steps)}
    return replace(outcome, bound=bound, stop_reason=stop, notes=notes, statistics=figures)
