"""The unit of which all times are multiples, so that better makespans are better by a unit."""

from __future__ import annotations

import numpy as np

from partitioner.methods.list_scheduling.ranks import transfer_lines
from partitioner.methods.list_scheduling.windows import along_lines
from partitioner.problem.tasks import Tasks

DIGITS = 6  # after the decimal point
PRECISION = 1e-12
EXACT = 1e-9  # bounds are computed to this precision
MOST_UNITS = 1e8  # in all times together: then sums of rounded times are closer to multiples than any two are


def unit_of(tasks: Tasks) -> float:
    """Return the largest unit of which all times and transfer times are multiples; 0 if none is found.

    Only units with at most `DIGITS` decimal places are found.
    """
    times = np.concatenate((tasks.time.ravel(), along_lines(transfer_lines(tasks)[0], tasks.cost).ravel()))
    times = times[np.isfinite(times) & (times > 0.0)]
    for digits in range(DIGITS + 1):
        scaled = times * 10.0**digits
        whole = np.rint(scaled)
        if not len(times) or scaled.sum() > MOST_UNITS:
            return 0.0
        if (np.abs(scaled - whole) <= PRECISION * scaled).all() and whole.min() >= 1:
            return float(np.gcd.reduce(whole.astype(np.int64)) / 10.0**digits)
    return 0.0


def rounded_up(bound: float, unit: float) -> float:
    """Return the least multiple of the unit that is not below the bound; the bound itself without a unit.

    Examples
    --------
    >>> rounded_up(2.1, 0.5), rounded_up(2.1, 0.0)
    (2.5, 2.1)
    """
    return float(np.ceil(bound / unit * (1 - EXACT)) * unit) if unit and np.isfinite(bound) else bound
