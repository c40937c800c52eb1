"""Method ``exact``: the portfolio's plan, then a search of all schedules until one is proven to be optimal.

The search leaves out that transfers wait for one another. With contention it therefore proves a lower bound,
and its schedules are timed anew; the bound may be below the optimum even when the search has ended.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.methods.exact_makespan.both_ways import SearchBothWays
from partitioner.methods.list_scheduling.plan_value import timed
from partitioner.methods.list_scheduling.portfolio import solve_portfolio
from partitioner.methods.method import Outcome, Settings, no_split
from partitioner.problem.variants import OperatorNodes

LARGEST = 60  # operators of a graph that is searched
STEPS = 200_000  # without a time limit, and in a deterministic run
TOO_LARGE = f"the graph has more than {LARGEST} operators: no schedules were searched beyond the portfolio"
CUT_SHORT = "the exact search ended after {} steps; with time_limit it goes on until the time is over"


def solve_exact_makespan(problem: OperatorNodes, settings: Settings) -> Outcome:
    """Return the optimal plan, or the best one and a bound when the time is over: method ``exact``."""
    outcome = solve_portfolio(problem, settings)
    if outcome.infeasible or outcome.stop_reason in ("optimal", "gap") or settings.expired:
        return outcome
    if problem.tasks.n > LARGEST:
        return replace(outcome, notes=(*outcome.notes, TOO_LARGE))
    search = SearchBothWays(problem, settings, outcome.value, outcome.bound)
    endless = settings.seconds_left is not None and not settings.deterministic
    search.run(np.inf if endless else STEPS)
    if search.best is None and search.value == np.inf:
        if search.ended:
            return no_split(problem)
        return replace(outcome, bound=search.bound, stop_reason=settings.stop_reason)
    notes = outcome.notes
    if not search.ended and not settings.expired:
        notes = (*notes, CUT_SHORT.format(f"{search.steps:,}"))
    if search.best is not None:
        outcome = timed(problem, settings, search.best, search.bound)
    bound = min(search.bound, outcome.value)
    return replace(
        outcome,
        bound=bound,
        stop_reason=settings.ended(bound, outcome.value),
        notes=notes,
        statistics={**outcome.statistics, "steps": float(search.steps)},
    )
