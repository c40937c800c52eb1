"""The relative deviation of estimates from measurements (Celeritas, Section 6.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from partitioner.estimation.measured import flaw, measured
from partitioner.workload.graph import Floats


def relative_deviation(estimate: ArrayLike, actual: ArrayLike) -> Floats:
    """Return |estimate - actual| / actual for every node, shape (nodes,).

    If the actual value is 0, the deviation is 0 for an estimate of 0, else infinity.

    Raises
    ------
    WorkloadError
        If lengths differ, or a value is negative or not finite.

    Examples
    --------
    >>> relative_deviation([11.0, 0.0, 1.0], [10.0, 0.0, 0.0]).tolist()
    [0.1, 0.0, inf]
    """
    guess, truth = measured("estimate", estimate, 1), measured("actual", actual, 1)
    if len(guess) != len(truth):
        raise flaw("estimate", f"{len(guess)} values", f"must be as many as the {len(truth)} actual ones")
    gap = np.abs(guess - truth)
    return np.divide(gap, truth, out=np.where(gap > 0, np.inf, 0.0), where=truth > 0)
