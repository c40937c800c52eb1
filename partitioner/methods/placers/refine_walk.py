"""The current placement of a search for smaller makespans: its times and its critical path."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit, overwrite
from partitioner.methods.placers.task_arrays import NOWHERE, PartialSchedule, TaskArrays
from partitioner.methods.placers.timing import run_eagerly
from partitioner.problem.arrays import Floats, Ints
from partitioner.workload.graph import Bools

ROOM_FOR_MOVES = 64


class Walk(NamedTuple):
    """The current placement of a search, and arrays to time and to change it.

    Parameters
    ----------
    device, order, place
        Shape (n,): the device of every task, all tasks in a topological order, and the place of each in it.
    finish, trial
        Shape (n,): when each task ends, and when it would end after the move that is tried.
    end
        Shape (D,): when each device is free, during the timing.
    room
        Shape (D,): memory that is left on each device.
    path, waits
        Shape (n,): the critical path from its end backwards, and whether each of its tasks waits for the
        previous task of its device (else for an input).
    moved, origin
        Shape (ROOM_FOR_MOVES,): the groups that the move has moved, and the device where each was.
    members_start, members
        Shapes (groups + 1,) and (n,): the tasks of every group, and where those of each group begin.
    tail
        Shape (n,): the least time from the end of each task to the end of all.
    """

    device: Ints
    order: Ints
    place: Ints
    finish: Floats
    trial: Floats
    end: Floats
    room: Floats
    path: Ints
    waits: Bools
    moved: Ints
    origin: Ints
    members_start: Ints
    members: Ints
    tail: Floats


@njit(cache=True, inner=True)
def time_from(
    arrays: TaskArrays, state: PartialSchedule, walk: Walk, first: int, most: float
) -> tuple[float, int]:
    """Write the new times; return the makespan, or infinity if it exceeds `most`, and the place reached.

    `state` is used with contention alone. Without, only the times from place `first` on are computed, and
    only until the makespan is known to exceed `most`.
    """
    n = len(walk.order)
    if arrays.contention:
        _time_eagerly(arrays, state, walk)
        return _latest(walk.trial), n
    walk.end[:] = 0.0
    last = 0.0
    for i in range(first):
        v = walk.order[i]
        walk.end[walk.device[v]] = walk.trial[v]
        last = max(last, walk.trial[v])
    for i in range(first, n):
        v = walk.order[i]
        d = walk.device[v]
        begin = walk.end[d]
        for e in range(arrays.before_start[v], arrays.before_start[v + 1]):
            begin = max(begin, _arrival(arrays, state, walk, e, d))
        finish = begin + arrays.time[d, v]
        walk.trial[v] = walk.end[d] = finish
        if finish + walk.tail[v] > most:
            return np.inf, i + 1
        last = max(last, finish)
    return last, n


@njit(cache=True, inline="always")
def _latest(times: Floats) -> float:
    """Return the largest of some times."""
    latest = times[0]
    for time in times:
        latest = max(latest, time)
    return float(latest)


@njit(cache=True, inner=True)
def _arrival(arrays: TaskArrays, state: PartialSchedule, walk: Walk, e: int, d: int) -> float:
    """Return when the input along edge `e` is on device `d`."""
    u = arrays.before[e]
    source = walk.device[u]
    if source == d:
        return float(walk.trial[u])
    tensor = arrays.before_tensor[e]
    if arrays.contention:
        return float(state.arrival[tensor, d])
    length = arrays.slope[source, d] * arrays.cost[tensor] + arrays.intercept[source, d]
    return float(walk.trial[u] + length)


@njit(cache=True, inline="always")
def _time_eagerly(arrays: TaskArrays, state: PartialSchedule, walk: Walk) -> None:
    """Compute all times again, with contention."""
    n = len(walk.order)
    following, head = np.full(n, NOWHERE), np.full(len(walk.end), NOWHERE)
    for i in range(n - 1, -1, -1):
        v = walk.order[i]
        following[v] = head[walk.device[v]]
        head[walk.device[v]] = v
    overwrite(state.device, walk.device)
    state.end[:] = 0.0
    state.channel[:] = 0.0
    state.arrival[:] = np.inf
    run_eagerly(arrays, state, walk.order, following, head)
    overwrite(walk.trial, state.finish)


def sort_by_start(arrays: TaskArrays, walk: Walk) -> None:
    """Order the tasks by their starts, made monotone so that no task comes before one that it waits for.

    Tasks that start at the same time keep their order.
    """
    walk.order[:] = walk.order[np.argsort(_starts_in_order(arrays, walk), kind="stable")]
    walk.place[walk.order] = np.arange(len(walk.order))


@njit(cache=True, nogil=True)
def _starts_in_order(arrays: TaskArrays, walk: Walk) -> Floats:
    """Return the start of the task at each place of the order, at least those of all that it waits for."""
    n = len(walk.order)
    start, in_order = np.empty(n), np.empty(n)
    walk.end[:] = 0.0
    for i in range(n):
        v = walk.order[i]
        d = walk.device[v]
        start[v] = max(walk.end[d], walk.finish[v] - arrays.time[d, v])
        for e in range(arrays.before_start[v], arrays.before_start[v + 1]):
            start[v] = max(start[v], start[arrays.before[e]])
        walk.end[d] = in_order[i] = start[v]
    return in_order


@njit(cache=True, inner=True)
def trace(arrays: TaskArrays, state: PartialSchedule, walk: Walk) -> int:
    """Write the critical path, from the task that ends last backwards, and return its length."""
    previous = np.full(len(walk.order), NOWHERE)
    latest = np.full(len(walk.end), NOWHERE)
    v = walk.order[0]
    for u in walk.order:
        previous[u] = latest[walk.device[u]]
        latest[walk.device[u]] = u
        if walk.trial[u] > walk.trial[v]:
            v = u
    steps = 0
    while v != NOWHERE:
        d, before = walk.device[v], previous[v]
        begin = walk.trial[before] if before != NOWHERE else 0.0
        walk.path[steps], walk.waits[steps] = v, before != NOWHERE
        for e in range(arrays.before_start[v], arrays.before_start[v + 1]):
            arrival = _arrival(arrays, state, walk, e, d)
            if arrival > begin or (arrival == begin and begin > 0.0 and np.random.random() < 0.5):
                begin, before, walk.waits[steps] = arrival, arrays.before[e], False
        walk.waits[steps] &= begin > 0.0
        steps += 1
        v = before if begin > 0.0 else NOWHERE
    return steps
