"""Pipelined inference."""

from __future__ import annotations

from typing import ClassVar

from partitioner.schedule.orders import rounds
from partitioner.schedule.passes import Passes
from partitioner.schedule.table import Table


class Inference:
    """Pipelined inference: in each round every stage serves the next sample (paper, Section 5.1, Figure 3a).

    Three devices, four samples::

        device 0   0F0  0F1  0F2  0F3  .    .
        device 1   .    1F0  1F1  1F2  1F3  .
        device 2   .    .    2F0  2F1  2F2  2F3

    A device with several virtual stages serves a sample with each of them in every round (Figure 3b).
    """

    name: ClassVar[str] = "inference"
    trains: ClassVar[bool | None] = False
    halves: ClassVar[bool] = False
    versions: ClassVar[bool] = False

    def table(self, passes: Passes, microbatches: int) -> Table:
        """Return a table of rounds, in which every virtual stage serves the next sample."""
        return rounds(passes, microbatches)
