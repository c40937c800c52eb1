"""DPOS, the list scheduler of FastT (Section 5.1, Algorithm 1)."""

from __future__ import annotations

import numpy as np

from partitioner.methods.list_scheduling.engine import found
from partitioner.methods.list_scheduling.fastt.critical import OFF, critical_path
from partitioner.methods.list_scheduling.fastt.kernel import place_all
from partitioner.methods.list_scheduling.fastt.runs import descending
from partitioner.methods.list_scheduling.found import Found
from partitioner.methods.list_scheduling.method import as_method
from partitioner.methods.list_scheduling.ranks import largest_rank
from partitioner.methods.list_scheduling.task_arrays import arrays_of, new_state
from partitioner.methods.method import Settings
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks


def place_dpos(tasks: Tasks, settings: Settings) -> Found | None:
    """Place the tasks by Device Placement and Operation Sequencing, see :func:`dpos`."""
    return dpos(tasks, settings.placing.reserve_memory)


def dpos(
    tasks: Tasks,
    reserve: bool = True,
    path: Ints | None = None,
    cutoff: float = np.inf,
    tail: Floats | None = None,
) -> Found | None:
    """Place the tasks by decreasing rank (:func:`largest_rank`).

    A task of the critical path goes to the critical-path device. That is the device on which the tasks of
    the remaining path that its memory holds, in order of the path, take the least time on average; ties,
    which the paper leaves open, go to the device that holds more of them, then to the lower number. When a
    task of the path does not fit there any more, also because others were placed there, the device is chosen
    again. Any other task goes where it finishes first, idle slots included; line 20 of Algorithm 1, which
    writes EST for a finish, is read as EFT. The first task of a group decides for the whole group. The bound
    of Theorem 1 does not hold for this rule: a task of the path may wait for its device while others idle.

    Parameters
    ----------
    tasks
        The tasks.
    reserve
        See :class:`partitioner.methods.list_scheduling.task_arrays.TaskArrays`.
    path
        The tasks to treat as the critical path, in order; None: :func:`critical_path`; empty: every task
        goes where it finishes first.
    cutoff, tail
        Give up once a task ends at `cutoff` minus its `tail` or later; `tail`, shape (n,), is the least time
        from the end of each task to the end of all.

    Returns
    -------
    Found or None
        None if some task fits nowhere when its turn comes, or the cutoff was reached.
    """
    rank = largest_rank(tasks)
    # No consumer's rank is above its producer's, and tasks are numbered in a topological order.
    order = descending(rank)
    path = critical_path(tasks, rank) if path is None else path
    place = np.full(tasks.n, OFF)
    place[path] = np.arange(len(path))
    arrays, state = arrays_of(tasks, reserve), new_state(tasks)
    tail = np.zeros(tasks.n) if tail is None else tail
    return found(state) if place_all(arrays, state, order, path, place, cutoff, tail) else None


solve_dpos = as_method(place_dpos)
