"""The unit of which all times of tasks are multiples, so that better makespans are better by a unit."""

from __future__ import annotations

import numpy as np

from partitioner.methods.list_scheduling.windows import along_lines
from partitioner.methods.units import common_unit
from partitioner.problem.tasks import Tasks


def time_unit(tasks: Tasks) -> float:
    """Return the largest unit of which all times and transfer times are multiples; 0 if none is found."""
    transfers = along_lines(tasks.links[0], tasks.cost)
    return common_unit(np.concatenate((tasks.time.ravel(), transfers.ravel())))
