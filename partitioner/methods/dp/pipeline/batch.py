"""The least time of a batch: the sum of all loads, and the largest one for each further sample.

A table finds the pipeline with the smallest sum of loads among those without a load above a threshold; the
intervals of largest loads in which a better one may be are those of
:mod:`partitioner.methods.dp.batch_intervals`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from partitioner.methods.dp.batch_intervals import BatchIntervals, LoadInterval
from partitioner.methods.dp.pipeline.loads import samples, stage_loads
from partitioner.methods.dp.pipeline.tables import PipelineTables
from partitioner.methods.dp.search import UNLIMITED, Bracket, Stopped
from partitioner.methods.method import ROUNDING


@dataclass(eq=False)
class BatchBracket(Bracket):
    """The search for the pipeline of a lattice with the least time for a batch."""

    tables: PipelineTables
    intervals: BatchIntervals = field(init=False)

    def narrow(self, from_top: bool = False) -> None:
        """Find the best pipeline; then `complete` says whether the search ended without reaching a limit."""
        self.intervals = BatchIntervals(samples(self.tables.problem) - 1)
        low = self.tables.relaxation.bound * (1 - ROUNDING)
        self.intervals.add(low, UNLIMITED, float(self.tables.rest[0]), self.value)
        try:
            while self.intervals.open:
                self.bound = max(self.bound, min(self.intervals.open[0].bound, self.value))
                if self.closed:
                    break
                self._ask(self.intervals.next())
            else:
                self.bound = self.value
            self.complete = True
        except Stopped:
            self._hurry()

    def _ask(self, interval: LoadInterval) -> None:
        """Split an interval by the pipeline with the smallest sum among largest loads up to its upper end."""
        limit = min(self.value - self.intervals.further * interval.low, UNLIMITED)
        high = self.intervals.highest(interval, self.value)
        found = self._filled(self.tables.summing(high, limit))
        if found is None:
            return
        value, stages = found
        loads = stage_loads(self.tables.problem, stages)
        if value < self.value:
            self.value, self.stages = value, stages
        largest, total = float(loads.max(initial=0.0)), float(loads.sum())
        rest = min(largest, high) * (1 - ROUNDING)
        self.intervals.split(interval, rest, total * (1 - ROUNDING), self.value)
