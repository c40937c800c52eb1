"""The ready tasks of every device, by when they could start there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.baechi.heaps import pop, push, replace_top
from partitioner.methods.list_scheduling.task_arrays import (
    NOWHERE,
    PartialSchedule,
    TaskArrays,
    fits,
    ready_time,
    start_times,
)
from partitioner.problem.arrays import Floats, Ints
from partitioner.workload.graph import Bools


class Queues(NamedTuple):
    """Two heaps a device; tasks in them by their places in an order, which breaks ties.

    Without contention the time at which a task's inputs are on a device is fixed once its producers are
    placed. With contention it can only grow, as channels fill: a key is a lower bound, put right when the
    entry comes to the top. Entries of tasks that are placed, or fit no more, stay until then, too.

    Parameters
    ----------
    task, place
        Shape (n,): the tasks in the order, and the place of every task in it.
    missing
        Shape (n,): how many inputs are not there yet.
    due_key, due, due_count
        Shapes (D, n), (D, n), (D,): heaps of tasks that could start when the last one of the device ends.
    later_key, later, later_count
        Likewise, of tasks whose inputs come later, by when they come.
    ready, ready_at, ready_count
        Shapes (n,), (n,), (1,): all ready tasks in no order, and where each is among them, or ``NOWHERE``.
    ample
        Shape (D,): memory with which a device takes any group; infinity if some group may not go there.
    offer, offered
        Shape (D,): no ready task starts on the device before this time and place in the order.
    exact
        Shape (D,): whether that task starts just then. Starts only grow: an old offer is a lower bound.
    held
        Shape (D,): whether the device of the offer waits for a favourite child; such offers come and go.
    start
        Shape (D,): scratch.
    """

    task: Ints
    place: Ints
    missing: Ints
    due_key: Floats
    due: Ints
    due_count: Ints
    later_key: Floats
    later: Ints
    later_count: Ints
    ready: Ints
    ready_at: Ints
    ready_count: Ints
    ample: Floats
    offer: Floats
    offered: Ints
    exact: Bools
    held: Bools
    start: Floats


def new_queues(arrays: TaskArrays, order: Ints) -> Queues:
    """Empty queues.

    Parameters
    ----------
    arrays
        The tasks.
    order
        Shape (n,): all tasks; of two that could start at the same time the first one goes first.
    """
    devices, n = arrays.time.shape
    return Queues(
        task=order,
        place=np.argsort(order),
        missing=np.diff(arrays.before_start),
        due_key=np.empty((devices, n)),
        due=np.empty((devices, n), dtype=np.int64),
        due_count=np.zeros(devices, dtype=np.int64),
        later_key=np.empty((devices, n)),
        later=np.empty((devices, n), dtype=np.int64),
        later_count=np.zeros(devices, dtype=np.int64),
        ready=np.empty(n, dtype=np.int64),
        ready_at=np.full(n, NOWHERE),
        ready_count=np.zeros(1, dtype=np.int64),
        ample=np.where(arrays.group_allowed.all(axis=1), arrays.group_size.max(initial=0.0), np.inf),
        offer=np.full(devices, np.inf),
        offered=np.full(devices, n, dtype=np.int64),
        exact=np.zeros(devices, dtype=bool),
        held=np.zeros(devices, dtype=bool),
        start=np.empty(devices),
    )


@njit(cache=True, nogil=True)
def enqueue(arrays: TaskArrays, state: PartialSchedule, queues: Queues, v: int) -> None:
    """A task is ready."""
    queues.ready_at[v] = queues.ready_count[0]
    queues.ready[queues.ready_count[0]] = v
    queues.ready_count[0] += 1
    start_times(arrays, state, v, queues.start)
    place = queues.place[v]
    for d in range(len(state.room)):
        start = queues.start[d]
        _put(queues, d, place, state.end[d], start)
        if start < queues.offer[d] or (start == queues.offer[d] and place < queues.offered[d]):
            queues.offer[d], queues.offered[d] = start, place


@njit(cache=True, nogil=True)
def leave(queues: Queues, v: int) -> None:
    """A ready task has been placed: it is ready no more, and others may start later than they could."""
    last = queues.ready[queues.ready_count[0] - 1]
    queues.ready[queues.ready_at[v]] = last
    queues.ready_at[last] = queues.ready_at[v]
    queues.ready_at[v] = NOWHERE
    queues.ready_count[0] -= 1
    queues.exact[:] = False


@njit(cache=True, nogil=True)
def enqueue_sources(arrays: TaskArrays, state: PartialSchedule, queues: Queues) -> None:
    """All tasks without inputs are ready."""
    for v in range(len(queues.task)):
        if queues.missing[v] == 0:
            enqueue(arrays, state, queues, v)


@njit(cache=True, nogil=True)
def enqueue_readers(arrays: TaskArrays, state: PartialSchedule, queues: Queues, u: int) -> None:
    """A task's outputs are there: what has all its inputs now is ready."""
    for e in range(arrays.after_start[u], arrays.after_start[u + 1]):
        v = arrays.after[e]
        queues.missing[v] -= 1
        if queues.missing[v] == 0:
            enqueue(arrays, state, queues, v)


@njit(cache=True, nogil=True)
def first_offer(arrays: TaskArrays, state: PartialSchedule, queues: Queues, idle: Bools) -> int:
    """The idle device that could start a ready task first, ``NOWHERE`` if none can.

    Among equals the first task in the order, then the lowest device. Its offer is exact.
    """
    while True:
        first, chosen, device = np.inf, len(queues.task), NOWHERE
        for d in range(len(idle)):
            time, place = queues.offer[d], queues.offered[d]
            if idle[d] and (time < first or (time == first < np.inf and place < chosen)):
                first, chosen, device = time, place, d
        if device == NOWHERE or queues.exact[device]:
            return device
        queues.offer[device], queues.offered[device] = earliest(arrays, state, queues, device)
        queues.exact[device] = True


@njit(cache=True, nogil=True)
def earliest(arrays: TaskArrays, state: PartialSchedule, queues: Queues, d: int) -> tuple[float, int]:
    """When the first ready task could start on device `d`, and its place in the order; infinity if none."""
    end = state.end[d]
    while queues.later_count[d] and queues.later_key[d, 0] <= end:
        place = queues.later[d, 0]
        pop(queues.later_key, queues.later, queues.later_count, d)
        if state.device[queues.task[place]] == NOWHERE:
            _put(queues, d, place, end, _ready(arrays, state, queues, place, d))
    while queues.due_count[d]:
        place = queues.due[d, 0]
        if state.device[queues.task[place]] != NOWHERE:
            pop(queues.due_key, queues.due, queues.due_count, d)
            continue
        ready = _ready(arrays, state, queues, place, d)
        if ready <= end:
            return end, place
        pop(queues.due_key, queues.due, queues.due_count, d)
        _put(queues, d, place, end, ready)
    while queues.later_count[d]:
        key, place = queues.later_key[d, 0], queues.later[d, 0]
        if state.device[queues.task[place]] != NOWHERE:
            pop(queues.later_key, queues.later, queues.later_count, d)
            continue
        ready = _ready(arrays, state, queues, place, d)
        if ready <= key:
            return key, place
        if ready < np.inf:
            replace_top(queues.later_key, queues.later, queues.later_count, d, ready, place)
        else:
            pop(queues.later_key, queues.later, queues.later_count, d)
    return np.inf, len(queues.task)


@njit(cache=True, nogil=True)
def _ready(arrays: TaskArrays, state: PartialSchedule, queues: Queues, place: int, d: int) -> float:
    """When the inputs of a task that is not placed are on the device; infinity if it may not go there."""
    v = queues.task[place]
    return float(ready_time(arrays, state, v, d)) if fits(arrays, state, v, d) else np.inf


@njit(cache=True, nogil=True)
def _put(queues: Queues, d: int, place: int, end: float, ready: float) -> None:
    """Put a task into the heap where it belongs, if it may go to the device at all."""
    if ready <= end:
        push(queues.due_key, queues.due, queues.due_count, d, 0.0, place)
    elif ready < np.inf:
        push(queues.later_key, queues.later, queues.later_count, d, ready, place)
