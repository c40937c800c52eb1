"""The unit of all costs of a problem: what every load is a multiple of."""

from __future__ import annotations

import numpy as np

from partitioner.problem.problem import Problem

DIGITS = 7  # decimal places that are looked for
LARGEST = 2.0**50
EXACT = 1e-12


def unit_of(problem: Problem) -> float:
    """Return a number that all times and transfers are multiples of; 0 if none is found.

    Only decimal fractions are looked for, which is how people write costs.
    """
    factors = problem.transfer_factor[problem.pays]
    transfers = (factors[:, None] * problem.nets.cost).ravel()
    costs = np.concatenate((problem.time[:, :, :].sum(axis=1)[problem.allowed], transfers))
    costs = costs[costs > 0]
    for scale in 10.0 ** np.arange(DIGITS):
        scaled = costs * scale
        whole = np.rint(scaled)
        if len(costs) and scaled.max() < LARGEST and (np.abs(scaled - whole) <= EXACT * scaled).all():
            return float(np.gcd.reduce(whole.astype(np.int64)) / scale)
    return 0.0


def rounded_up(bound: float, unit: float) -> float:
    """Return the least multiple of the unit that is not below the bound; the bound itself if there is none.

    Examples
    --------
    >>> rounded_up(7.2, 0.5), rounded_up(7.5, 0.5), rounded_up(7.2, 0.0)
    (7.5, 7.5, 7.2)
    """
    if unit <= 0 or not np.isfinite(bound):
        return bound
    return float(np.ceil(bound / unit * (1 - EXACT)) * unit)
