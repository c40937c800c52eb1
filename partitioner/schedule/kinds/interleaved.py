"""Interleaved 1F1B: several stages on each device."""

from __future__ import annotations

from typing import ClassVar

from partitioner.schedule.kinds.several_stages import table_of_rows
from partitioner.schedule.passes import Passes
from partitioner.schedule.table import Table
from partitioner.workload.virtual_stages.schedules import VIRTUAL


class Interleaved:
    """Interleaved 1F1B in Megatron's order: p devices, v stages each, stage k on device k mod p.

    Two devices, two stages each, two microbatches::

        device 0   0F0  0F1  2F0  2F1  .    2B0  .    2B1  0B0  0B1
        device 1   .    1F0  1F1  3F0  3B0  3F1  3B1  1B0  1B1  .

    Microbatches run in groups of p, or in as many larger groups of one size (torch). Device i of p runs
    2 (p - i - 1) + (v - 1) g forward passes, for groups of g, before forward and backward passes alternate.
    """

    name: ClassVar[str] = "interleaved"
    trains: ClassVar[bool | None] = True
    halves: ClassVar[bool] = False
    versions: ClassVar[bool] = False

    def table(self, passes: Passes, microbatches: int) -> Table:
        """Return the table in Megatron's order."""
        return table_of_rows(self.name, VIRTUAL["interleaved_1f1b"], passes, microbatches)
