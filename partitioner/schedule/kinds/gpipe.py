"""GPipe: all forward passes, then all backward passes."""

from __future__ import annotations

from typing import ClassVar

from partitioner.schedule.orders import rounds
from partitioner.schedule.passes import Passes
from partitioner.schedule.table import FORWARD, Table


class GPipe:
    """GPipe: the whole batch runs forward, then backward, then the weights change (paper, Figure 4a).

    Three devices, three microbatches::

        device 0   0F0  0F1  0F2  .    .    .    .    0B0  0B1  0B2
        device 1   .    1F0  1F1  1F2  .    .    1B0  1B1  1B2  .
        device 2   .    .    2F0  2F1  2F2  2B0  2B1  2B2  .    .

    On splits that are not a chain both phases run in rounds, in which each virtual stage serves one sample.
    """

    name: ClassVar[str] = "gpipe"
    trains: ClassVar[bool | None] = True
    halves: ClassVar[bool] = False
    versions: ClassVar[bool] = False

    def table(self, passes: Passes, microbatches: int) -> Table:
        """Return a table of rounds of forward passes, then rounds of backward passes."""
        return rounds(passes, microbatches, (passes.direction != FORWARD).astype(int))
