"""One sample after another, without a pipeline."""

from __future__ import annotations

from typing import ClassVar

from partitioner.schedule.orders import one_by_one
from partitioner.schedule.passes import Passes
from partitioner.schedule.table import Table


class SingleStream:
    """One sample at a time: the next sample begins when the previous one has ended (paper, Figure 2).

    Three devices, two samples of inference::

        device 0   0F0  .    .    0F1  .    .
        device 1   .    1F0  .    .    1F1  .
        device 2   .    .    2F0  .    .    2F1
    """

    name: ClassVar[str] = "single_stream"
    trains: ClassVar[bool | None] = None
    halves: ClassVar[bool] = False
    versions: ClassVar[bool] = False

    def table(self, passes: Passes, microbatches: int) -> Table:
        """Return a table of one sample after another; passes of a sample may run in parallel."""
        return one_by_one(passes, microbatches)
