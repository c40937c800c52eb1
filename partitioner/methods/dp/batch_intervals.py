"""The least sum of loads plus several times the largest one, by intervals of the largest load.

The pipeline with the smallest sum of loads among those without a load above a threshold is known for any
threshold. That sum, and the lower end of an interval of largest loads, bound all pipelines in the interval.
The interval with the smallest bound is asked next and split, until no bound is below the best pipeline.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from partitioner.methods.method import ROUNDING, meets


class LoadInterval(NamedTuple):
    """The pipelines with a largest load above `low`, up to `high`, and a sum of loads from `total` on."""

    bound: float
    low: float
    high: float
    total: float


@dataclass(eq=False)
class BatchIntervals:
    """The intervals in which a better pipeline than the best one known may be.

    Parameters
    ----------
    further
        How often the largest load counts in addition to the sum.
    open
        The intervals, as a heap: the first one has the least bound.

    Examples
    --------
    >>> intervals = BatchIntervals(3)
    >>> intervals.add(2.0, 8.0, 4.0, np.inf)
    >>> intervals.split(intervals.next(), 6.0, 7.0, 26.0)
    >>> [(interval.low, interval.high, interval.bound) for interval in intervals.open]
    [(2.0, 4.0, 13.0), (4.0, 6.0, 19.0)]
    """

    further: int
    open: list[LoadInterval] = field(default_factory=list)

    def add(self, low: float, high: float, total: float, value: float) -> None:
        """Add an interval unless its bound is not below the value of the best pipeline."""
        bound = total + self.further * low
        if low < high and bound < value * (1 - ROUNDING):
            heapq.heappush(self.open, LoadInterval(bound, low, high, total))

    def next(self) -> LoadInterval:
        """Remove and return the interval with the least bound."""
        return heapq.heappop(self.open)

    def highest(self, interval: LoadInterval, value: float) -> float:
        """Return the largest load that a pipeline of an interval can have if it is better than `value`."""
        if self.further and np.isfinite(value):
            return min(interval.high, (value - interval.total) / self.further)
        return interval.high

    def split(self, interval: LoadInterval, high: float, total: float, value: float) -> None:
        """Add the halves of what is left of an interval: up to `high`, with sums from `total` on."""
        middle = (interval.low + high) / 2
        if self.further == 0 or meets(interval.low, high):
            return
        self.add(interval.low, middle, total, value)
        self.add(middle, high, total, value)
