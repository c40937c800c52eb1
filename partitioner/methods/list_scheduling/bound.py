"""How early the last task can end at best."""

from __future__ import annotations

import numpy as np

from partitioner.methods.latency.path import best_times
from partitioner.methods.list_scheduling.ranks import bottom_level
from partitioner.methods.relaxation import relax
from partitioner.preprocess.problem import Problem


def makespan_bound(problem: Problem) -> float:
    """The larger of the longest path on the fastest devices and the work that the devices share.

    Infinity if some task may run nowhere, or memory is too small; transfers are left out.
    """
    assert problem.tasks is not None
    level = bottom_level(problem.tasks, best_times(problem), np.zeros(len(problem.tasks.cost)))
    return max(float(level.max(initial=0.0)), relax(problem).bound)
