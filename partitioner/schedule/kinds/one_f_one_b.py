"""1F1B with a flush: forward and backward passes in turn."""

from __future__ import annotations

from typing import ClassVar

from partitioner.schedule.orders import around, in_turns, lanes, rounds, table_of
from partitioner.schedule.passes import Passes
from partitioner.schedule.table import Table


class OneForwardOneBackward:
    """1F1B: stage i of p runs p - i forward passes, then backward and forward passes in turn (Megatron).

    Three devices, four microbatches, one batch::

        device 0   0F0  0F1  0F2  .    .    0B0  0F3  0B1  .    0B2  .    0B3
        device 1   .    1F0  1F1  .    1B0  1F2  1B1  1F3  1B2  .    1B3  .
        device 2   .    .    2F0  2B0  2F1  2B1  2F2  2B2  2F3  2B3  .    .

    With replicas :func:`partitioner.schedule.stash.held` gives the number of forward passes ahead (Piper).
    On splits that are not a chain every virtual stage, forward or backward, serves a sample in each round.
    """

    name: ClassVar[str] = "1f1b"
    trains: ClassVar[bool | None] = True
    halves: ClassVar[bool] = False
    versions: ClassVar[bool] = False

    def table(self, passes: Passes, microbatches: int) -> Table:
        """Return passes in turns if each stage has a device of its own, else a table of rounds."""
        if not passes.line:
            return rounds(passes, microbatches)
        behind = {lead: after for lead, (_, after) in around(passes).items()}
        rows = [
            in_turns(lane, -(-behind[lane.lead] // len(passes.replicas[lane.lead])))
            for lane in lanes(passes, microbatches)
        ]
        return table_of(passes, rows)
