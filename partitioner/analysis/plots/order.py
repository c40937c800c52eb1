"""The order of devices in pictures of a timeline."""

from __future__ import annotations

import numpy as np

from partitioner.schedule.table import FORWARD
from partitioner.schedule.timeline import Timeline
from partitioner.workload.graph import Ints


def pipeline_order(timeline: Timeline) -> Ints:
    """Return the positions of the devices, ordered by first forward stage, shape (d,).

    Devices without a forward stage come last.
    """
    table = timeline.table
    among = table.direction == FORWARD
    first = np.full(len(table.devices), np.iinfo(np.int64).max)
    np.minimum.at(first, table.row[among], table.stage[among])
    return np.argsort(first, kind="stable")
