"""Lower bounds for chains with two passes: the relaxation of both together, and of each alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation, relax
from partitioner.problem.problem import Problem


def relax_by_pass(problem: Problem) -> Relaxation:
    """Return the relaxation, with those of the forward and of the backward pass alone in `passes`.

    Its bound holds for the largest forward load plus the largest backward load: no device has a larger sum of
    both, and each is at least the bound of its own pass.
    """
    together = relax(problem)
    alone = tuple(relax(replace(problem, time=_only(problem, w))) for w in (0, 1))
    bound = max(together.bound, sum(each.bound for each in alone))
    return replace(together, bound=bound, passes=alone)


def _only(problem: Problem, pass_: int) -> np.ndarray:
    """Return the times without those of the other pass, shape (K, 2, n)."""
    time = np.zeros_like(problem.time)
    time[:, pass_] = problem.time[:, pass_]
    return time
