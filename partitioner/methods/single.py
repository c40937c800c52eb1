"""The baseline that needs no method: everything on one device."""

from __future__ import annotations

import numpy as np

from partitioner.methods.loads import largest_load
from partitioner.methods.method import Outcome, Settings, Stage
from partitioner.methods.relaxation import relax
from partitioner.preprocess.problem import Problem


def solve_single(problem: Problem, settings: Settings) -> Outcome:
    """Method ``single_device``: the best device that can hold and run the whole graph, if any can."""
    bound = relax(problem).bound
    everything = np.arange(problem.n)
    fits = (problem.count > 0) & problem.allowed.all(axis=1) & (problem.size.sum() <= problem.memory)
    choices = [[Stage(int(kind), everything)] for kind in np.flatnonzero(fits)]
    stages = min(choices, key=lambda stages: largest_load(problem, stages), default=None)
    value = np.inf if stages is None else largest_load(problem, stages)
    stop = "optimal" if value <= bound * (1 + 1e-12) else "heuristic"
    return Outcome(problem, stages, value, min(bound, value), stop, infeasible=np.isinf(bound))
