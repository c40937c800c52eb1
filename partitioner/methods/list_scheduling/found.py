"""What a list scheduler returns, and how a method is made of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from partitioner.methods.method import OutOfTimeError, Settings
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks

PORTION = 5000  # tasks that kernels place between two looks at the clock, in a tenth of a second


@dataclass(frozen=True, eq=False)
class Found:
    """A placement with an order.

    Parameters
    ----------
    device
        Shape (n,): the device of every task.
    order
        All tasks in a topological order; every device runs its own in this order.
    estimate
        The makespan that the rules of the placer count on; infinity if they know no time.
    notes
        What a user should know.
    statistics
        Figures of the run.
    """

    device: Ints
    order: Ints
    estimate: float = float("inf")
    notes: tuple[str, ...] = ()
    statistics: Mapping[str, float] = field(default_factory=dict)


PlaceTasks = Callable[[Tasks, Settings], Found | None]  # None where the memory is full too early


def portions(n: int, settings: Settings) -> Iterator[slice]:
    """Yield slices that cover `n` tasks in order, with a look at the clock between them.

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
