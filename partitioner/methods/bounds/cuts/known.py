"""The problems for which the bound on cuts holds; nothing here loads a solver."""

from __future__ import annotations

from partitioner.problem.arrays import Bools
from partitioner.problem.measure import Measure
from partitioner.problem.variants import ChainProblem

MOST = 4_000  # supernodes


def holds(problem: ChainProblem) -> bool:
    """Whether the bound holds, and transfers cost anything.

    One kind of device pays for transfers, which are added to processing; there is one other device at most.
    """
    plain = problem.communication == "sequential" and problem.measure is Measure.LARGEST_LOAD
    free = (problem.count > 0) & ~problem.pays
    few = paying(problem).sum() == 1 and int(problem.count[free].sum()) <= 1
    costs = problem.pipeline is None and problem.nets.cost.sum() > 0
    return bool(plain and few and costs and problem.n <= MOST)


def paying(problem: ChainProblem) -> Bools:
    """Return whether each kind is present and pays for transfers, shape (K,)."""
    return (problem.count > 0) & problem.pays
