"""The baseline with everything on one device."""

from __future__ import annotations

import numpy as np

from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.loads import value_of
from partitioner.methods.method import Outcome, Part, Settings
from partitioner.problem.problem import Problem


def solve_single(problem: Problem, settings: Settings) -> Outcome:
    """Find the best device that can hold and run the whole graph: method ``single_device``."""
    bound = relax(problem).bound
    everything = np.arange(problem.n)
    fits = (problem.count > 0) & problem.allowed.all(axis=1) & (problem.size.sum() <= problem.memory)
    choices = [[Part(int(kind), everything)] for kind in np.flatnonzero(fits)]
    parts = min(choices, key=lambda parts: value_of(problem, parts), default=None)
    value = np.inf if parts is None else value_of(problem, parts)
    stop = "optimal" if value <= bound * (1 + 1e-12) else "heuristic"
    return Outcome(problem, parts, value, min(bound, value), stop, infeasible=np.isinf(bound))
