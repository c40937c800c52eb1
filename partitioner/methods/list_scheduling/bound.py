"""How early the last task can end at best."""

from __future__ import annotations

from partitioner.methods.latency.path import longest_path
from partitioner.methods.relaxation import relax
from partitioner.preprocess.problem import Problem


def makespan_bound(problem: Problem) -> float:
    """The larger of the longest path on the fastest devices and the work that the devices share.

    Infinity if some task may run nowhere, or memory is too small; transfers are left out.
    """
    return max(longest_path(problem), relax(problem).bound)
