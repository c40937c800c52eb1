"""List schedulers as methods: their makespan, or what their placement is worth by another objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.methods.list_scheduling.bound import makespan_bound
from partitioner.methods.list_scheduling.found import Found, PlaceTasks
from partitioner.methods.list_scheduling.timing import makespan
from partitioner.methods.method import Method, Outcome, Part, Settings, no_split
from partitioner.preprocess.problem import Ints, Problem
from partitioner.preprocess.tasks import Tasks


@dataclass(frozen=True)
class _Placed:
    """The method that runs one list scheduler."""

    place: PlaceTasks

    def __call__(self, problem: Problem, settings: Settings) -> Outcome:
        assert problem.tasks is not None
        bound = makespan_bound(problem)
        if np.isinf(bound):
            return no_split(problem)
        found = self.place(problem.tasks, settings)
        if found is None:
            note = "a task fitted on no device any more when its turn came"
            return Outcome(problem, None, np.inf, bound, "heuristic", notes=(note,))
        return timed(problem, settings, found, bound)


def as_method(place: PlaceTasks) -> Method:
    """The method that runs a list scheduler and times what it finds."""
    return _Placed(place)


def timed(problem: Problem, settings: Settings, found: Found, bound: float) -> Outcome:
    """What a placement is worth for objective ``"makespan"``."""
    assert problem.tasks is not None
    value = makespan(problem.tasks, found.device, found.order)
    known = {"estimate": found.estimate} if np.isfinite(found.estimate) else {}
    statistics = {**known, **found.statistics}
    return Outcome(
        problem,
        parts_at(problem.tasks, found.device),
        value,
        min(bound, value),
        settings.ended(bound, value),
        notes=found.notes,
        statistics=statistics,
        order=found.order,
    )


def parts_at(tasks: Tasks, device: Ints) -> list[Part]:
    """The tasks of every device in use."""
    return [
        Part(int(tasks.kind[d]), np.flatnonzero(device == d), devices=(int(tasks.index[d]),))
        for d in np.unique(device).tolist()
    ]
