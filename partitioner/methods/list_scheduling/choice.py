"""Where the next task goes."""

from __future__ import annotations

from dataclasses import dataclass

from partitioner.problem.arrays import Floats
from partitioner.problem.tasks import Tasks
from partitioner.workload.graph import Bools

EARLIEST_FINISH, EARLIEST_START, FILL = 0, 1, 2
CHOOSERS = {"earliest_finish": EARLIEST_FINISH, "earliest_start": EARLIEST_START, "fill": FILL}


@dataclass(frozen=True, eq=False)
class Choice:
    """What a chooser of the user's is given.

    Parameters
    ----------
    tasks
        All tasks and devices.
    task
        The number of the one to be placed.
    fits
        Shape (D,): whether it may go there, by its group, the memory that is left and its kinds; one is True.
    start, finish
        Shape (D,): when it would start and finish there; infinity where it does not fit.
    previous
        The device of the task placed before; 0 for the first one.
    """

    tasks: Tasks
    task: int
    fits: Bools
    start: Floats
    finish: Floats
    previous: int
