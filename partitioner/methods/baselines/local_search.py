"""The paper's local search (Section 6): random placements, improved by the best single move."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.local_search.kernel import rate, refresh, shift, value_and_violation
from partitioner.methods.local_search.rounds import LocalSearch, PartLayout
from partitioner.methods.local_search.search import outcome_of
from partitioner.methods.method import Outcome, Settings, no_split
from partitioner.problem.variants import PartsProblem

RESTARTS = 10
TRIALS = 100_000
ROUNDING = 1e-9


def solve_baseline(problem: PartsProblem, settings: Settings) -> Outcome:
    """Improve ten random placements by single moves (paper, Section 6): method ``local_search_baseline``."""
    bound = relax(problem).bound
    if np.isinf(bound):
        return no_split(problem)
    search = LocalSearch(PartLayout(problem), settings.seed)
    for number in range(RESTARTS):
        search.state.place[:] = search.layout.random_place(search.random)
        settings.report_progress("local search", number, RESTARTS, search.value, bound)
        while not settings.expired and not descend(search.model, search.state, TRIALS):
            pass
        search.keep(search.state.place)
        if settings.expired:
            break
    return outcome_of(search, settings, bound)


@njit(cache=True, _nrt=False)
def descend(model, state, budget):
    """Make the best single move repeatedly: the one with the least violation of limits, then the least value.

    Returns
    -------
    bool
        True if no single move improves; False if `budget` moves were tried before that.
    """
    refresh(model, state)
    place, ledger = state.place, state.ledger
    n, devices = len(place), len(ledger)
    for d in range(devices):
        rate(model, ledger, d, 1.0, 0)
    (least, least_violation), tried = value_and_violation(ledger), 0
    while tried < budget:
        best, to = -1, -1
        for v in range(n):
            home = place[v]
            for step in range(1, devices + 1):
                a, b = place[v], (home + step) % devices
                shift(model, state, v, b)
                rate(model, ledger, a, 1.0, 0)
                rate(model, ledger, b, 1.0, 0)
                value, violation = value_and_violation(ledger)
                closer = violation < least_violation - ROUNDING or (
                    violation < least_violation + ROUNDING and value < least * (1 - ROUNDING)
                )
                if closer and b != home:
                    least, least_violation, best, to = value, violation, v, b
        tried += n * devices
        if best < 0:
            return True
        a = place[best]
        shift(model, state, best, to)
        rate(model, ledger, a, 1.0, 0)
        rate(model, ledger, to, 1.0, 0)
    return False
