"""ZB-V and DualPipeV: device i of p has stages i and 2 p - 1 - i."""

from __future__ import annotations

from typing import ClassVar

from partitioner.schedule.kinds.several_stages import table_of_rows
from partitioner.schedule.passes import Passes
from partitioner.schedule.table import Table
from partitioner.workload.virtual_stages.schedules import VIRTUAL


class ZeroBubbleV:
    """ZB-V: device i of p has stages i and 2 p - 1 - i, so that the loss is on the first device.

    Two devices, two stages each, two microbatches::

        device 0   0F0  0F1  .    3F0  3I0  3W0  3F1  3I1  3W1  0I0  0W0  .    0I1  0W1
        device 1   .    1F0  2F0  1F1  2F1  2I0  2W0  1I0  1W0  2I1  2W1  1I1  1W1  .

    Every device keeps the activations of at most 2 p samples, counted for each stage. The table is that of
    torch's ``ScheduleZBVZeroBubble``.
    """

    name: ClassVar[str] = "zbv"
    trains: ClassVar[bool | None] = True
    halves: ClassVar[bool] = True
    versions: ClassVar[bool] = False

    def table(self, passes: Passes, microbatches: int) -> Table:
        """Return the table of ZB-V."""
        return table_of_rows(self.name, VIRTUAL[self.name], passes, microbatches)


class DualPipeV(ZeroBubbleV):
    """DualPipeV: device i of p has stages i and 2 p - 1 - i, and forward and backward passes take turns.

    One device, two stages, two microbatches::

        device 0   0F0  1F0  0F1  1I0  1W0  1F1  0I0  0W0  1I1  1W1  0I1  0W1

    The table is that of torch's ``ScheduleDualPipeV``, but devices run one pass at a time: of two passes that
    torch overlaps, the forward pass comes first. All backward passes are in halves; those that torch runs
    whole have their halves one after the other. There must be 2 p microbatches or more.
    """

    name: ClassVar[str] = "dualpipev"
