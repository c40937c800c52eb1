"""The better plan of two ways to make a graph, which are searched one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from partitioner.base.errors import InfeasibleError, NoPlanFound, PartitionerError
from partitioner.results.plan import Plan

Solve = Callable[..., Plan]  # of keywords of `solve` that replace those of the call


@dataclass(frozen=True)
class Choice:
    """An option of `solve` with two values, of which the better plan decides.

    Parameters
    ----------
    option
        Its name.
    subject
        What is made in one of two ways, with its verb.
    words
        Both values with their names in a note, that which is searched first before the other.
    first_share
        The share of the time that the first search has.
    """

    option: str
    subject: str
    words: Mapping[str, str]
    first_share: float

    def best_of_both(self, run: Solve, time_limit: float | None) -> Plan:
        """Return the better plan of both values; of equal ones that of the first value.

        Its bound is the weaker one of both searches, so that it holds for both kinds of plans.

        Parameters
        ----------
        run
            Calls `solve` with the keywords of the option and ``time_limit``.
        time_limit
            That of both calls together.

        Raises
        ------
        InfeasibleError, NoPlanFound
            If there is no plan of either kind, or none is found.
        """
        started = time.perf_counter()
        limit = None if time_limit is None else self.first_share * time_limit
        plans: dict[str, Plan] = {}
        ended: PartitionerError | None = None
        for number, value in enumerate(self.words):
            try:
                plans[value] = run(**{self.option: value}, time_limit=limit)
            except (InfeasibleError, NoPlanFound) as error:
                if number and not plans:
                    raise
                ended = error if isinstance(error, NoPlanFound) or ended is None else ended
            if time_limit is not None:
                left = time_limit - (time.perf_counter() - started)
                limit = max(left, (1 - self.first_share) * time_limit)
        if len(plans) == 2:
            plan = self._better(plans)
        else:
            (plan,) = plans.values()
        if isinstance(ended, NoPlanFound):  # plans of the other kind have no bound
            weakest = np.inf if plan.maximised else 0.0
            plan = replace(plan, bound=float(weakest), status="feasible", stop_reason="time_limit")
        options = {**plan.options, "time_limit": time_limit}
        return replace(plan, options=options, runtime_seconds=time.perf_counter() - started)

    def _better(self, plans: Mapping[str, Plan]) -> Plan:
        """Return the better plan, with a bound for both kinds and a note on the other one."""
        sign = -1 if next(iter(plans.values())).maximised else 1
        chosen = min(plans, key=lambda value: sign * plans[value].value)
        (left_out,) = (value for value in plans if value != chosen)
        plan, other = plans[chosen], plans[left_out]
        made = f"{self.subject} {self.words[chosen]}: {self.words[left_out]}"
        change = abs(other.value / plan.value - 1) if plan.value else 0.0
        more = f", {change:.1%} {'less' if sign < 0 else 'more'}" if plan.value else ""
        note = f"{made} the best plan found has {other.value:.6g}{more}"
        return bounded_by_both(plan, other.bound, other.stop_reason, note)


def bounded_by_both(plan: Plan, bound: float, stop_reason: str, note: str) -> Plan:
    """Return a plan, with a note, whose bound is the weaker one of its own and of another kind of plans.

    Parameters
    ----------
    plan, note
        The plan, and the note on the other kind.
    bound, stop_reason
        The bound on the objective of plans of the other kind, and why the search ended if it is the weaker
        one: then the plan is no longer proven.
    """
    weaker = max(bound, plan.bound) if plan.maximised else min(bound, plan.bound)
    notes = (*plan.notes, note)
    if weaker == plan.bound:
        return replace(plan, notes=notes)
    return replace(plan, bound=weaker, status="feasible", stop_reason=stop_reason, notes=notes)
