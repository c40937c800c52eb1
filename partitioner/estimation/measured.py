"""Measured values as arrays, and the relative deviation of estimates from them (Celeritas, Section 6.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.workload.graph import Floats


def measured(name: str, values: Any, dimensions: int) -> Floats:
    """Return the values as an array of floats of at least 0.

    Raises
    ------
    WorkloadError
        If the values are not an array of that many dimensions, or one is negative or not finite.
    """
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise flaw(name, shown(values), "must be numbers in rows of equal length") from None
    if array.ndim != dimensions:
        raise flaw(name, f"{array.ndim} dimensions", f"must have {dimensions}")
    bad = array[~(np.isfinite(array) & (array >= 0))]
    if len(bad):
        raise flaw(name, shown(float(bad[0])), "must be finite and at least 0")
    return array


def in_range(name: str, found: Floats) -> Floats:
    """Return the values that were computed from measurements, after a check that they are finite.

    Raises
    ------
    WorkloadError
        If a value is beyond the range of floating-point numbers.
    """
    if not np.isfinite(found).all():
        raise flaw(name, "", "values are too large or too near one another for a line")
    return found


def flaw(name: str, value: str, rule: str) -> WorkloadError:
    """Return the error for a rule that the measurements break."""
    return WorkloadError([Flaw("measurements", name, value, rule)])


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
