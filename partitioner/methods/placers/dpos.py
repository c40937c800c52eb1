"""DPOS, the list scheduler of FastT (Section 5.1, Algorithm 1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.method import Settings
from partitioner.methods.placers.engine import found
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.method import as_method
from partitioner.methods.placers.ranks import largest_rank
from partitioner.methods.placers.task_arrays import (
    NOWHERE,
    PartialSchedule,
    TaskArrays,
    arrays_of,
    arrives,
    book,
    new_state,
    start_times,
)
from partitioner.methods.placers.timing import as_run
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks
from partitioner.workload.graph import Bools

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
    start, after = tasks.after.start, tasks.after.items
    first = np.lexsort((after, -rank[after], tasks.after.owners()))  # by falling rank within each row
    following = np.full(tasks.n, NOWHERE)
    leads = np.diff(start) > 0
    following[leads] = after[first[start[:-1][leads]]]
    entries, next_of, path = np.flatnonzero(np.diff(tasks.before.start) == 0), following.tolist(), list[int]()
    v = int(entries[np.argmax(rank[entries])]) if len(entries) else NOWHERE
    while v != NOWHERE:
        path.append(v)
        v = next_of[v]
    return np.array(path, dtype=np.int64)


def schedule_path(tasks: Tasks, device: Ints, order: Ints) -> Ints:
    """Return the critical path of a schedule: from the task that ends last back to what each waited for.

    Parameters
    ----------
    tasks
        The tasks.
    device, order
        As in :class:`partitioner.methods.placers.found.Found`.

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
def _backwards(arrays: TaskArrays, state: PartialSchedule, previous: Ints) -> Ints:
    """Return the path back from the task that ends last to one that waited for nothing, in order of time."""
    n, v = len(state.finish), 0
    for u in range(1, n):
        if state.finish[u] > state.finish[v]:
            v = u
    path, begin = np.empty(n, dtype=np.int64), n
    while v != NOWHERE:
        begin -= 1
        path[begin] = v
        u = previous[v]
        if u != NOWHERE and state.finish[u] == state.start[v]:
            v = u
            continue
        # it waited for the producer of the input that arrived last
        latest, awaited = -1.0, NOWHERE
        for e in range(arrays.before_start[v], arrays.before_start[v + 1]):
            arrival = arrives(arrays, state, arrays.before[e], arrays.before_tensor[e], state.device[v])
            if arrival > latest:
                latest, awaited = arrival, arrays.before[e]
        v = awaited
    return path[begin:].copy()


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
        See :class:`partitioner.methods.placers.task_arrays.TaskArrays`.
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
    state = dpos_schedule(tasks, reserve, path, cutoff, tail)
    return None if state is None else found(state)


def dpos_schedule(
    tasks: Tasks,
    reserve: bool = True,
    path: Ints | None = None,
    cutoff: float = np.inf,
    tail: Floats | None = None,
) -> PartialSchedule | None:
    """Return the schedule of :func:`dpos`, or None."""
    rank = largest_rank(tasks)
    # No consumer's rank is above its producer's, and tasks are numbered in a topological order.
    order = np.argsort(-rank, kind="stable")
    path = critical_path(tasks, rank) if path is None else path
    critical = CriticalPath(
        task=path,
        place=np.full(tasks.n, OFF),
        tail=np.zeros(tasks.n) if tail is None else tail,
        bound=np.zeros(len(tasks.group_size), dtype=bool),
        start=np.empty(len(tasks.limit)),
    )
    critical.place[path] = np.arange(len(path))
    state = new_state(tasks)
    return state if _place_all(arrays_of(tasks, reserve), state, order, critical, cutoff) else None


class CriticalPath(NamedTuple):
    """The critical path, and scratch space.

    Parameters
    ----------
    task
        The tasks of the path, in order.
    place
        Shape (n,): the place of each task on the path, or ``OFF``.
    tail
        Shape (n,): the least time from the end of each task to the end of all.
    bound
        Shape (groups,): False, but while a device is filled: whether a task of the group is on it.
    start
        Shape (D,): when a task could start.
    """

    task: Ints
    place: Ints
    tail: Floats
    bound: Bools
    start: Floats


@njit(cache=True, nogil=True, _nrt=False)
def _place_all(
    arrays: TaskArrays, state: PartialSchedule, order: Ints, critical: CriticalPath, cutoff: float
) -> bool:
    """Place all tasks; return False if some task fits nowhere, or the cutoff is reached."""
    start, chosen = critical.start, NOWHERE
    for v in order:
        g, to = arrays.group[v], NOWHERE
        if state.home[g] == NOWHERE and critical.place[v] != OFF:
            free = chosen != NOWHERE and arrays.group_allowed[chosen, g]
            if not free or arrays.group_size[g] > state.room[chosen]:
                chosen = _critical_device(arrays, state, critical, critical.place[v])
            to = chosen
        else:
            start_times(arrays, state, v, start)
            best = np.inf
            for d in range(len(start)):
                if start[d] + arrays.time[d, v] < best:
                    best, to = start[d] + arrays.time[d, v], d
        if to == NOWHERE:
            return False
        book(arrays, state, v, to)
        if state.finish[v] + critical.tail[v] >= cutoff:
            return False
    return True


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def _critical_device(arrays: TaskArrays, state: PartialSchedule, critical: CriticalPath, first: int) -> int:
    """Return the device on which the tasks that it can hold of the path take the least time on average.

    It holds tasks from place `first` on, in order; those whose group is already on another device are left
    out.
    """
    best, most, chosen = np.inf, 0, NOWHERE
    path, bound = critical.task, critical.bound
    for d in range(len(state.room)):
        room, count, total, i = state.room[d], 0, 0.0, first
        while i < len(path):
            v = path[i]
            g = arrays.group[v]
            home = state.home[g]
            if home in (NOWHERE, d):
                need = 0.0 if arrays.reserve else arrays.size[v]
                if home == NOWHERE and not bound[g]:
                    if not arrays.group_allowed[d, g] or arrays.group_size[g] > room:
                        break
                    need = arrays.group_size[g] if arrays.reserve else arrays.size[v]
                if need > room:
                    break
                bound[g] = True
                room, count, total = room - need, count + 1, total + arrays.time[d, v]
            i += 1
        for j in range(first, i):
            bound[arrays.group[path[j]]] = False
        if count and (total / count < best or (total / count == best and count > most)):
            best, most, chosen = total / count, count, d
    return int(chosen)


solve_dpos = as_method(place_dpos)
