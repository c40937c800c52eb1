"""ZB-H1: the computation of the weights' gradients fills the pauses of 1F1B."""

from __future__ import annotations

from typing import ClassVar

from partitioner.schedule.kinds.kind import require_pairs
from partitioner.schedule.kinds.several_stages import table_of_rows
from partitioner.schedule.orders import around, in_turns, lanes, table_of
from partitioner.schedule.passes import Passes
from partitioner.schedule.table import Table
from partitioner.workload.virtual_stages.schedules import VIRTUAL


class ZeroBubbleH1:
    """ZB-H1: 1F1B in which stage i computes the weights' gradients i microbatches after the inputs'.

    Three devices, four microbatches; W waits for no other device, so that the last ones fill the drain::

        device 0   0F0  0F1  0F2  .    .    0I0  0W0  0F3  0I1  0W1  0I2  0W2  0I3  0W3
        device 1   .    1F0  1F1  .    1I0  1F2  1I1  1W0  1F3  1I2  1W1  1I3  1W2  1W3
        device 2   .    .    2F0  2I0  2F1  2I1  2F2  2I2  2W0  2F3  2I3  2W1  2W2  2W3

    Each device keeps the activations of at most p samples, as the first device does under 1F1B: on stage i
    p - i samples wait for the gradients of their inputs, and i samples for those of the weights.

    With v stages on each device, stage k on device k mod p, it is interleaved (ZB1P, torch's
    ``ScheduleInterleavedZeroBubble``): device i runs p - i - 1 + (v - 1) p forward passes ahead.
    """

    name: ClassVar[str] = "zb-h1"
    trains: ClassVar[bool | None] = True
    halves: ClassVar[bool] = True
    versions: ClassVar[bool] = False

    def table(self, passes: Passes, microbatches: int) -> Table:
        """Return a table of forward passes, gradients of inputs and gradients of weights in turn."""
        require_pairs(self.name, passes)
        if not passes.line:
            return table_of_rows(self.name, VIRTUAL["zb_h1"], passes, microbatches)
        near, rows = around(passes), []
        for lane in lanes(passes, microbatches):
            ahead, behind = near[lane.lead]
            count = len(passes.replicas[lane.lead])
            rows.append(in_turns(lane, -(-behind // count), -(-ahead // count)))
        return table_of(passes, rows)
