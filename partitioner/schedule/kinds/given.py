"""A schedule that the user gives as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from partitioner.schedule.passes import Passes
from partitioner.schedule.table import INPUT, Table


@dataclass(frozen=True, eq=False)
class Given:
    """A table that the user gives, such as one read from a file; it is checked before it runs.

    Two devices, two microbatches::

        device 0   0F0  0F1  .    0B0  .    0B1
        device 1   .    1F0  1B0  1F1  1B1  .
    """

    rows: Table
    name: ClassVar[str] = "table"
    trains: ClassVar[bool | None] = None
    versions: ClassVar[bool] = False

    @property
    def halves(self) -> bool:
        """Whether the table runs the backward pass in two halves."""
        return bool((self.rows.direction >= INPUT).any())

    def table(self, passes: Passes, microbatches: int) -> Table:
        """Return the given table, whatever the passes."""
        return self.rows
