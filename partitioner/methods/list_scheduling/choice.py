"""The rules for the device of the next task, and what a rule of the user's is given."""

from __future__ import annotations

from dataclasses import dataclass

from partitioner.problem.arrays import Floats
from partitioner.problem.tasks import Tasks
from partitioner.workload.graph import Bools

EARLIEST_FINISH, EARLIEST_START, FILL = 0, 1, 2
CHOOSERS = {"earliest_finish": EARLIEST_FINISH, "earliest_start": EARLIEST_START, "fill": FILL}


@dataclass(frozen=True, eq=False)
class Choice:
    """The argument of a user's function that chooses the device of a task.

    Parameters
    ----------
    tasks
        All tasks and devices.
    task
        The number of the task to be placed.
    fits
        Shape (D,): whether the task may go to each device, by its group, the memory left and its kinds; at
        least one is True.
    start, finish
        Shape (D,): when the task would start and finish on each device; infinity where it does not fit.
    previous
        The device of the task placed before; 0 for the first one.
    """

    tasks: Tasks
    task: int
    fits: Bools
    start: Floats
    finish: Floats
    previous: int
