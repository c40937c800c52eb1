"""Conversion of measured values to arrays; raises `WorkloadError` if it fails."""

from __future__ import annotations

from typing import Any

import numpy as np

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
