"""The current placement of a search for smaller makespans: its times and its critical path."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit, overwrite
from partitioner.methods.placers.task_arrays import NOWHERE, PartialSchedule, TaskArrays
from partitioner.methods.placers.timing import DeviceQueues, run_eagerly
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
    queues
        The queues of the devices, for the timing with contention.
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
    queues: DeviceQueues
    moved: Ints
    origin: Ints
    members_start: Ints
    members: Ints
    tail: Floats


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def time_from(
    arrays: TaskArrays, state: PartialSchedule, walk: Walk, first: int, most: float
) -> tuple[float, int]:
    """Write the new times; return the makespan, or infinity if it exceeds `most`, and the place reached.

    `state` is used with contention alone, and then all times are computed. Without, only those from place
    `first` on are, and only until the makespan is known to exceed `most`.
    """
    n, last = len(walk.order), 0.0
    if arrays.contention:
        following, head = walk.queues.following, walk.queues.head
        head[:] = NOWHERE
        for i in range(n - 1, -1, -1):
            v = walk.order[i]
            following[v] = head[walk.device[v]]
            head[walk.device[v]] = v
        overwrite(state.device, walk.device)
        state.end[:] = 0.0
        state.channel[:] = 0.0
        state.arrival[:] = np.inf
        run_eagerly(arrays, state, walk.order, walk.queues)
        for v in range(n):
            walk.trial[v] = state.finish[v]
            last = max(last, state.finish[v])
        return last, n
    walk.end[:] = 0.0
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


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
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


def sort_by_start(arrays: TaskArrays, walk: Walk) -> None:
    """Order the tasks by their starts, made monotone so that no task comes before one that it waits for.

    Tasks that start at the same time keep their order. A start is computed as the end less the length, and
    rounding can make it less than that of a producer, or of the task before it on the same device.
    """
    tasks = np.arange(len(walk.order))
    start = np.maximum(0.0, walk.finish - arrays.time[walk.device, tasks])
    by_device = walk.order[np.argsort(walk.device[walk.order], kind="stable")]
    same = walk.device[by_device[:-1]] == walk.device[by_device[1:]]
    earlier = np.concatenate((arrays.before, by_device[:-1][same]))
    later = np.concatenate((np.repeat(tasks, np.diff(arrays.before_start)), by_device[1:][same]))
    while (wrong := start[earlier] > start[later]).any():
        np.maximum.at(start, later[wrong], start[earlier[wrong]])
    walk.order[:] = walk.order[np.argsort(start[walk.order], kind="stable")]
    walk.place[walk.order] = tasks


@njit(cache=True, inner=True, _nrt=False)
def trace(arrays: TaskArrays, state: PartialSchedule, walk: Walk) -> int:
    """Write the critical path, from the task that ends last backwards, and return its length."""
    previous, latest = walk.queues.following, walk.queues.head  # as scratch space
    latest[:] = NOWHERE
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
