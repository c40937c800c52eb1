"""Critical paths: of the tasks before they are placed, and of a schedule."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.task_arrays import NOWHERE, PartialSchedule, TaskArrays, arrives
from partitioner.methods.list_scheduling.timing import as_run
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks

OFF = -1


def critical_path(tasks: Tasks, rank: Floats) -> Ints:
    """Return the path from the entry of largest rank that always takes the successor of largest rank.

    Among equals the lowest number is taken.

    Parameters
    ----------
    tasks
        The tasks.
    rank
        Shape (n,): the rank of each task.

    Returns
    -------
    Ints
        The tasks of the path, producers first (FastT, Section 5.1: SET_CP).
    """
    path: Ints = along(tasks.before.start, tasks.after.start, tasks.after.items, rank)
    return path


def schedule_path(tasks: Tasks, device: Ints, order: Ints) -> Ints:
    """Return the critical path of a schedule: from the task that ends last back to what each waited for.

    Parameters
    ----------
    tasks
        The tasks.
    device, order
        As in :class:`partitioner.methods.list_scheduling.found.Found`.

    Returns
    -------
    Ints
        The tasks of the path in order of time. A task waited for the previous one on its device if it started
        when that ended, else for the producer of the input that arrived last.
    """
    arrays, state = as_run(tasks, device, order)
    previous = np.full(tasks.n, NOWHERE)
    for d in range(len(tasks.limit)):
        mine = order[device[order] == d]
        previous[mine[1:]] = mine[:-1]
    path: Ints = _backwards(arrays, state, previous)
    return path


@njit(cache=True, nogil=True)
def along(entry: Ints, start: Ints, after: Ints, rank: Floats) -> Ints:
    """Return :func:`critical_path`; the rows of producers start at `entry`, those of consumers at `start`."""
    v = NOWHERE
    for u in range(len(rank)):
        if entry[u] == entry[u + 1] and (v == NOWHERE or rank[u] > rank[v]):
            v = u
    path = [v for _ in range(0)]
    while v != NOWHERE:
        path.append(v)
        largest = NOWHERE
        for e in range(start[v], start[v + 1]):
            w = after[e]
            if largest == NOWHERE or (rank[w], -w) > (rank[largest], -largest):
                largest = w
        v = largest
    return np.array(path)


@njit(cache=True, nogil=True)
def _backwards(arrays: TaskArrays, state: PartialSchedule, previous: Ints) -> Ints:
    """Return the path back from the task that ends last to one that waited for nothing, in order of time."""
    v = int(np.argmax(state.finish))
    path = [v for _ in range(0)]
    while v != NOWHERE:
        path.append(v)
        v = _awaited(arrays, state, previous[v], v)
    return np.array(path)[::-1].copy()


@njit(cache=True, nogil=True)
def _awaited(arrays: TaskArrays, state: PartialSchedule, previous: int, v: int) -> int:
    """Return the task that task `v` waited for, ``NOWHERE`` if there is none."""
    if previous != NOWHERE and state.finish[previous] == state.start[v]:
        return previous
    latest, producer = -1.0, NOWHERE
    for e in range(arrays.before_start[v], arrays.before_start[v + 1]):
        u = arrays.before[e]
        arrival = arrives(arrays, state, u, arrays.before_tensor[e], state.device[v])
        if arrival > latest:
            latest, producer = arrival, u
    return producer
