"""The unit of which all costs are multiples: then loads and makespans are multiples of it, too."""

from __future__ import annotations

import numpy as np

from partitioner.problem.arrays import Floats
from partitioner.problem.problem import Problem

DIGITS = 6  # after the decimal point
PRECISION = 1e-12
EXACT = 1e-9  # bounds are computed to this precision
MOST_UNITS = 1e8  # in all costs together: then sums of rounded costs are closer to multiples than any two are


def common_unit(costs: Floats) -> float:
    """Return the largest unit of which all costs are multiples; 0 if none is found.

    Only units with at most `DIGITS` decimal places are found, and costs of 0 and infinity do not count.

    Examples
    --------
    >>> common_unit(np.array([0.75, 1.5, 0.0])), common_unit(np.array([1 / 3, 1.0]))
    (0.75, 0.0)
    """
    costs = costs[np.isfinite(costs) & (costs > 0.0)]
    for digits in range(DIGITS + 1):
        scaled = costs * 10.0**digits
        whole = np.rint(scaled)
        if not len(costs) or scaled.sum() > MOST_UNITS:
            return 0.0
        if (np.abs(scaled - whole) <= PRECISION * scaled).all() and whole.min() >= 1:
            return float(np.gcd.reduce(whole.astype(np.int64)) / 10.0**digits)
    return 0.0


def load_unit(problem: Problem) -> float:
    """Return a unit of which all loads of a problem are multiples; 0 if none is found."""
    transfers = np.multiply.outer(problem.transfer_factor[problem.pays], problem.nets.cost)
    return common_unit(np.concatenate((problem.work().ravel(), transfers.ravel())))


def rounded_up(bound: float, unit: float) -> float:
    """Return the least multiple of the unit that is not below the bound; the bound itself without a unit.

    Examples
    --------
    >>> rounded_up(2.1, 0.5), rounded_up(2.5, 0.5), rounded_up(2.1, 0.0)
    (2.5, 2.5, 2.1)
    """
    return float(np.ceil(bound / unit * (1 - EXACT)) * unit) if unit and np.isfinite(bound) else bound
