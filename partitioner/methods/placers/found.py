"""What a list scheduler returns, and the type of its function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from partitioner.methods.method import OutOfTimeError, Settings
from partitioner.methods.placers.windows import along_lines
from partitioner.methods.units import common_unit
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks

PORTION = 5000  # tasks that kernels place, in a tenth of a second, between two readings of the clock


@dataclass(frozen=True, eq=False)
class Found:
    """A placement of tasks with the order in which they run.

    Parameters
    ----------
    device
        Shape (n,): the device of every task.
    order
        Shape (n,): all tasks in a topological order; every device runs its tasks in this order.
    estimate
        The makespan as the placer computes it; infinity if the placer does not compute times.
    notes
        What a user should know about the placement, each note a clause.
    statistics
        Figures of the run by name.
    """

    device: Ints
    order: Ints
    estimate: float = float("inf")
    notes: tuple[str, ...] = ()
    statistics: Mapping[str, float] = field(default_factory=dict)


PlaceTasks = Callable[[Tasks, Settings], Found | None]  # None: a task fitted nowhere at its turn


def portions(n: int, settings: Settings) -> Iterator[slice]:
    """Yield slices that cover `n` tasks in order; check between them whether the run should end.

    Raises
    ------
    OutOfTimeError
        If the run should end; the first slice is yielded in any case, so that small graphs are placed.

    Examples
    --------
    >>> list(portions(6000, Settings()))
    [slice(0, 5000, None), slice(5000, 10000, None)]
    """
    for begin in range(0, n, PORTION):
        if begin and settings.expired:
            raise OutOfTimeError
        yield slice(begin, begin + PORTION)


def root(parent: list[int], member: int) -> int:
    """Return the root of the member's set; the path to it is halved.

    Parameters
    ----------
    parent
        For each member one that is nearer to the root; for the root itself.
    member
        Any member of the set.
    """
    while parent[member] != member:
        parent[member] = parent[parent[member]]
        member = parent[member]
    return member


def time_unit(tasks: Tasks) -> float:
    """Return the largest unit of which all times and transfer times are multiples; 0 if none is found."""
    transfers = along_lines(tasks.links[0], tasks.cost)
    return common_unit(np.concatenate((tasks.time.ravel(), transfers.ravel())))
