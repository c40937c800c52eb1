"""The makespan of a placement whose devices run their tasks in a given order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.placers.task_arrays import (
    NOWHERE,
    PartialSchedule,
    TaskArrays,
    arrays_of,
    new_state,
    start_at_end,
)
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks


def makespan(tasks: Tasks, device: Ints, order: Ints) -> float:
    """Return when the last task ends, see :func:`finish_times`."""
    return float(finish_times(tasks, device, order).max(initial=0.0))


def finish_times(tasks: Tasks, device: Ints, order: Ints) -> Floats:
    """Return when each task ends, shape (n,), see :func:`as_run`."""
    return as_run(tasks, device, order)[1].finish


def as_run(tasks: Tasks, device: Ints, order: Ints) -> tuple[TaskArrays, PartialSchedule]:
    """Return the arrays of the tasks, and the schedule of a placement with all its times.

    A task starts when the one before it on its device has ended and its inputs have arrived. Tensors leave
    as soon as they are made, once for each device that reads them; with contention in the order of the
    edges, one after another on the channels of both ends.

    Parameters
    ----------
    tasks
        The tasks.
    device, order
        As in :class:`partitioner.methods.placers.found.Found`.
    """
    arrays, state = arrays_of(tasks), new_state(tasks)
    state.device[:] = device
    if tasks.contention:
        run_eagerly(arrays, state, order, _filled_queues(device, order, len(tasks.limit)))
    else:
        _run(arrays, state, order)
    return arrays, state


class DeviceQueues(NamedTuple):
    """What each device runs, in order, and scratch space.

    Parameters
    ----------
    following, head
        Shapes (n,) and (D,): the next task on the device of each task, and the next one to run of each
        device, or ``NOWHERE``.
    position, missing
        Shape (n,): the place of each task in the order, and how many producers are missing.
    due
        Shape (D,): when the task that each device runs ends.
    """

    following: Ints
    head: Ints
    position: Ints
    missing: Ints
    due: Floats


def new_queues(n: int, count: int) -> DeviceQueues:
    """Return the empty queues of `count` devices for `n` tasks."""
    return DeviceQueues(
        following=np.full(n, NOWHERE),
        head=np.full(count, NOWHERE),
        position=np.empty(n, dtype=np.int64),
        missing=np.empty(n, dtype=np.int64),
        due=np.empty(count),
    )


def _filled_queues(device: Ints, order: Ints, count: int) -> DeviceQueues:
    """Return the queues of a placement."""
    queues = new_queues(len(order), count)
    for d in range(count):
        mine = order[device[order] == d]
        queues.following[mine[:-1]] = mine[1:]
        queues.head[d : d + 1] = mine[:1] if len(mine) else NOWHERE
    return queues


@njit(cache=True, nogil=True, _nrt=False)
def _run(arrays: TaskArrays, state: PartialSchedule, order: Ints) -> None:
    """Time the tasks one after another in the given order, without contention."""
    for v in order:
        d = state.device[v]
        begin = start_at_end(arrays, state, v, d)
        state.start[v] = begin
        state.finish[v] = state.end[d] = begin + arrays.time[d, v]


@njit(cache=True, nogil=True, _nrt=False)
def run_eagerly(arrays: TaskArrays, state: PartialSchedule, order: Ints, queues: DeviceQueues) -> None:
    """Time the tasks with contention, by the ends of tasks in order of time.

    Of tasks that end at the same time the first one in `order` counts first.

    Parameters
    ----------
    arrays, state
        The tasks, and a state in which all are placed, nothing was sent, and channels are free.
    order
        Shape (n,): all tasks in a topological order.
    queues
        The queues of the devices, which are changed.
    """
    following, head, due = queues.following, queues.head, queues.due
    position, missing = queues.position, queues.missing
    device, start, finish, end = state.device, state.start, state.finish, state.end
    arrival, channel, time = state.arrival, state.channel, arrays.time
    before_start, before, before_tensor = arrays.before_start, arrays.before, arrays.before_tensor
    after_start, after, after_tensor = arrays.after_start, arrays.after, arrays.after_tensor
    slope, intercept, cost = arrays.slope, arrays.intercept, arrays.cost
    n = len(order)
    due[:] = np.inf
    for i in range(n):
        position[order[i]], missing[i] = i, before_start[i + 1] - before_start[i]
    for d in range(len(head)):
        v = head[d]
        if v != NOWHERE and missing[v] == 0:
            start[v], finish[v], missing[v] = 0.0, time[d, v], NOWHERE
            due[d] = finish[v]
    for _ in range(n):
        d = 0  # the device whose task ends next; of several, that of the first task in the order
        for other in range(1, len(due)):
            tied = due[other] == due[d] and due[d] < np.inf
            if due[other] < due[d] or (tied and position[head[other]] < position[head[d]]):
                d = other
        u = head[d]
        end[d], head[d], due[d] = finish[u], following[u], np.inf
        for e in range(after_start[u], after_start[u + 1]):
            tensor, other = after_tensor[e], device[after[e]]
            missing[after[e]] -= 1
            if other != d and arrival[tensor, other] == np.inf:
                length = slope[d, other] * cost[tensor] + intercept[d, other]
                arrival[tensor, other] = finish[u]
                if length > 0.0:
                    sent = max(finish[u], channel[d])
                    arrival[tensor, other] = max(sent, channel[other]) + length
                    channel[d], channel[other] = sent + length, arrival[tensor, other]
        for e in range(after_start[u] - 1, after_start[u + 1]):
            here = d if e < after_start[u] else device[after[e]]
            v = head[here]
            if v != NOWHERE and missing[v] == 0:
                begin = end[here]
                for i in range(before_start[v], before_start[v + 1]):
                    w, tensor = before[i], before_tensor[i]
                    begin = max(begin, finish[w] if device[w] == here else arrival[tensor, here])
                start[v], finish[v], missing[v] = begin, begin + time[here, v], NOWHERE
                due[here] = finish[v]
