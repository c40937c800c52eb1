"""Methods made of list schedulers, for every objective.

What a list scheduler returns, and the type of its function.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.methods.method import Method, Outcome, OutOfTimeError, Settings, no_split, out_of_time
from partitioner.methods.placers.first_fit import place_within_memory
from partitioner.methods.placers.found import PlaceTasks
from partitioner.methods.placers.plan_value import bound_of, improved, plan_value
from partitioner.problem.variants import AnyOperators

FULL = "the rules of the placer and a packing by size found no placement within the memory"


@dataclass(frozen=True)
class ListMethod:
    """The method that runs one list scheduler."""

    place: PlaceTasks

    def __call__(self, problem: AnyOperators, settings: Settings) -> Outcome:
        """Place the tasks, and return the value of the placement, or of a better one if `refine` is set.

        If the rules of the placer leave a task over, any placement that fits in memory is taken.
        """
        bound = bound_of(problem)
        if np.isinf(bound):
            return no_split(problem)
        try:
            found = self.place(problem.tasks, settings)
        except OutOfTimeError:
            return out_of_time(problem, settings, bound)
        if found is None:
            found, impossible = place_within_memory(problem.tasks, settings)
            if found is None:
                return no_room(problem, settings, bound, impossible)
        value = improved if settings.placing.refine else plan_value
        return value(problem, settings, found, bound)


def no_room(problem: AnyOperators, settings: Settings, bound: float, impossible: bool) -> Outcome:
    """Return the outcome of a run without a placement; `impossible` says that there is provably none."""
    if impossible:
        return no_split(problem)
    return Outcome(problem, None, np.inf, bound, settings.stop_reason, notes=(FULL,))


def as_method(place: PlaceTasks) -> Method:
    """Return the method that runs a list scheduler and computes the value of its placement."""
    return ListMethod(place)
