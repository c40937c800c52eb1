"""What a list scheduler returns, and how a method is made of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from partitioner.methods.method import Settings
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks


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
