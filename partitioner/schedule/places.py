"""The positions of passes in a table."""

from __future__ import annotations

import numpy as np

from partitioner.schedule.passes import Passes
from partitioner.schedule.table import DIRECTIONS, Table
from partitioner.workload.graph import Ints


def kinds_of(table: Table, passes: Passes) -> Ints:
    """Return which of a sample's passes each pass of the table is, shape (n,); -1 if it is none of them."""
    stages = max(int(passes.stage.max(initial=0)), int(table.stage.max(initial=0))) + 1
    known = np.full((len(DIRECTIONS), stages), -1, dtype=np.int64)
    known[passes.direction, passes.stage] = np.arange(len(passes))
    return np.asarray(known[table.direction, table.stage])


def positions(table: Table, kinds: Ints, passes: Passes, microbatches: int) -> Ints:
    """Return the position of each pass in the table, shape (passes of a sample, microbatches).

    The position is -1 for a pass that is missing.
    """
    where = np.full((len(passes), microbatches), -1, dtype=np.int64)
    sound = (kinds >= 0) & (table.microbatch < microbatches)
    where[kinds[sound], table.microbatch[sound]] = np.flatnonzero(sound)
    return where
