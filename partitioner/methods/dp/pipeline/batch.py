"""The least time of a batch: the sum of all loads, and the largest one for each further sample.

A table finds the pipeline with the smallest sum of loads among those without a load above a threshold.
That sum, and the lower end of an interval of largest loads, bound all pipelines in the interval. The
interval with the smallest bound is solved next and split, until no bound is below the best pipeline.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from partitioner.methods.dp.pipeline.loads import samples, stage_loads
from partitioner.methods.dp.pipeline.tables import PipelineTables
from partitioner.methods.dp.search import UNLIMITED, Bracket, Stopped
from partitioner.methods.method import ROUNDING, meets


class _Interval(NamedTuple):
    """The pipelines with a largest load above `low`, up to `high`, and a sum of loads from `total` on."""

    bound: float
    low: float
    high: float
    total: float


@dataclass(eq=False)
class BatchBracket(Bracket):
    """The search for the pipeline of a lattice with the least time for a batch."""

    tables: PipelineTables
    open: list[_Interval] = field(default_factory=list, init=False)

    def narrow(self, from_top: bool = False) -> None:
        """Find the best pipeline; then `complete` says whether the search ended without reaching a limit."""
        low = self.tables.relaxation.bound * (1 - ROUNDING)
        self._push(low, UNLIMITED, float(self.tables.rest[0]))
        try:
            while self.open:
                self.bound = max(self.bound, min(self.open[0].bound, self.value))
                if self.closed:
                    break
                self._ask(heapq.heappop(self.open))
            else:
                self.bound = self.value
            self.complete = True
        except Stopped:
            self._hurry()

    @property
    def further(self) -> int:
        """How often the largest load counts in addition to the sum."""
        return samples(self.tables.problem) - 1

    def _push(self, low: float, high: float, total: float) -> None:
        bound = total + self.further * low
        if low < high and bound < self.value * (1 - ROUNDING):
            heapq.heappush(self.open, _Interval(bound, low, high, total))

    def _ask(self, interval: _Interval) -> None:
        """Split an interval by the pipeline with the smallest sum among largest loads up to its upper end."""
        limit = min(self.value - self.further * interval.low, UNLIMITED)
        high = interval.high
        if self.further and np.isfinite(self.value):
            high = min(high, (self.value - interval.total) / self.further)
        found = self._filled(self.tables.summing(high, limit))
        if found is None:
            return
        value, stages = found
        loads = stage_loads(self.tables.problem, stages)
        if value < self.value:
            self.value, self.stages = value, stages
        largest, total = float(loads.max(initial=0.0)), float(loads.sum())
        self._split(interval.low, min(largest, high) * (1 - ROUNDING), total * (1 - ROUNDING))

    def _split(self, low: float, high: float, total: float) -> None:
        middle = (low + high) / 2
        if self.further == 0 or meets(low, high):
            return
        self._push(low, middle, total)
        self._push(middle, high, total)
