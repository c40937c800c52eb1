"""Queues of ready tasks for every device, by when they could start there.

Binary heaps in the rows of arrays: entries are pairs of a key and an item, the smallest on top.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.method import OutOfTimeError, Settings
from partitioner.methods.placers.engine import UNLIMITED, found
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.m_topo import kahn_order
from partitioner.methods.placers.task_arrays import (
    NOWHERE,
    PartialSchedule,
    TaskArrays,
    arrays_of,
    book,
    fits,
    new_state,
    ready_time,
    start_times,
)
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks
from partitioner.workload.graph import Bools


@njit(cache=True, inline="always")
def favourite_held(arrays: TaskArrays, state: PartialSchedule, child: int, d: int) -> bool:
    """Whether the child, which is ready, fits on device `d` and could start on no other device earlier."""
    if not fits(arrays, state, child, d):
        return False
    here = _start(arrays, state, child, d)
    for other in range(len(state.room)):
        if fits(arrays, state, child, other) and _start(arrays, state, child, other) < here:
            return False
    return True


@njit(cache=True, inline="always")
def offer_awake(
    arrays: TaskArrays, state: PartialSchedule, queues: Queues, child: int, d: int, now: float
) -> tuple[float, int]:
    """Return the offer of the most urgent task if all devices could start it now, else of the child.

    Returns
    -------
    tuple
        When the task starts, and its place in the order. If neither task can start now, a later time at which
        one might.
    """
    urgent, v = _most_urgent(arrays, state, queues, d, now)
    if urgent <= now:
        return _start(arrays, state, v, d), queues.place[v]
    return min(urgent, _start(arrays, state, child, d)), queues.place[child]


@njit(cache=True, inline="always")
def _start(arrays: TaskArrays, state: PartialSchedule, v: int, d: int) -> float:
    """Return when a task could start on a device."""
    return float(max(ready_time(arrays, state, v, d), state.end[d]))


@njit(cache=True, inline="always")
def _most_urgent(
    arrays: TaskArrays, state: PartialSchedule, queues: Queues, d: int, now: float
) -> tuple[float, int]:
    """Return the ready task that fits on device `d` and could start first on every device, and that time.

    Tasks that fit on a busy device are left out: they cannot be urgent before that device is idle.
    """
    first, chosen = np.inf, NOWHERE
    crowded = _some_busy_takes_all(state, queues, now)
    for i in range(queues.ready_count[0]):
        v = queues.ready[i]
        if (crowded and state.home[arrays.group[v]] == NOWHERE) or not fits(arrays, state, v, d):
            continue
        urgent = _urgent_time(arrays, state, v, now)
        if urgent < first or (urgent == first < np.inf and queues.place[v] < queues.place[chosen]):
            first, chosen = urgent, v
    return first, chosen


@njit(cache=True, inline="always")
def _urgent_time(arrays: TaskArrays, state: PartialSchedule, v: int, now: float) -> float:
    """Return when a task could start on every device that it fits on; infinity if one of them is busy."""
    time = 0.0
    for d in range(len(state.room)):
        if fits(arrays, state, v, d):
            if state.end[d] > now:
                return np.inf
            time = max(time, _start(arrays, state, v, d))
    return time


@njit(cache=True, inline="always")
def _some_busy_takes_all(state: PartialSchedule, queues: Queues, now: float) -> bool:
    """Whether there is a busy device on which every group fits that has no device yet."""
    crowded = False
    for d in range(len(state.room)):
        crowded |= state.end[d] > now and queues.ample[d] < np.inf and queues.ample[d] <= state.room[d]
    return crowded


VISITS = 10_000_000  # between two readings of the clock, at most a fifth of a second
EACH = 2500  # visits that a task counts for, in addition to one for each other ready task


def place_by_events(
    tasks: Tasks, favourite: Ints, reserve: bool, settings: Settings = UNLIMITED
) -> Found | None:
    """Place tasks in simulated time: an idle device takes the ready task that it could start first.

    A task is ready when its producers have ended. Every idle device offers to start a task; of the offers
    for the current time the one with the earliest start is taken, among equals that of the first task in
    Kahn's order, then that of the lowest device. A tensor is sent when its reader is placed, at the earliest
    when it was made; no task starts before one that was placed earlier on its device.

    Parameters
    ----------
    tasks
        The tasks.
    favourite
        Shape (n,): the favourite child of each task, for m-SCT; ``NOWHERE`` for none.
    reserve
        See :class:`partitioner.methods.placers.task_arrays.TaskArrays`.
    settings
        Say when the run must end.

    Returns
    -------
    Found or None
        None if the tasks that are left fit nowhere.

    Raises
    ------
    OutOfTimeError
        If the run should end before all tasks are placed.
    """
    arrays, state = arrays_of(tasks, reserve, insertion=False), new_state(tasks)
    queues = new_queues(arrays, kahn_order(tasks))
    running, last = np.full(len(tasks.limit), NOWHERE), np.full(len(tasks.limit), NOWHERE)
    enqueue_sources(arrays, state, queues)
    now = _run(arrays, state, queues, favourite, running, last, 0.0)
    while now < np.inf:
        if settings.expired:
            raise OutOfTimeError
        now = _run(arrays, state, queues, favourite, running, last, now)
    return None if (state.device == NOWHERE).any() else found(state)


@njit(cache=True, nogil=True)
def _run(
    arrays: TaskArrays,
    state: PartialSchedule,
    queues: Queues,
    favourite: Ints,
    running: Ints,
    last: Ints,
    now: float,
) -> float:
    """Simulate from `now` on for some steps; return the time to continue from, infinity at the end."""
    visits = 0
    while now < np.inf and visits < VISITS:
        for d in range(len(running)):
            if running[d] != NOWHERE and state.end[d] <= now:
                last[d], running[d] = running[d], NOWHERE
                enqueue_readers(arrays, state, queues, last[d])
        started, following = _start_all(arrays, state, queues, favourite, running, last, now)
        visits += (1 + started) * (EACH + queues.ready_count[0])
        for d in range(len(running)):
            if running[d] != NOWHERE:
                following = min(following, state.end[d])
        now = following
    return now


@njit(cache=True, inline="always")
def _start_all(
    arrays: TaskArrays,
    state: PartialSchedule,
    queues: Queues,
    favourite: Ints,
    running: Ints,
    last: Ints,
    now: float,
) -> tuple[int, float]:
    """Start the tasks that can start now; return their number, and when the next one could start."""
    started = 0
    idle = running == NOWHERE
    while True:
        _hold(arrays, state, queues, favourite, last, idle, now)
        device = first_offer(arrays, state, queues, idle)
        if device == NOWHERE:
            return started, np.inf
        if queues.offer[device] > now:
            return started, queues.offer[device]
        v = queues.task[queues.offered[device]]
        book(arrays, state, v, device)
        leave(queues, v)
        running[device], idle[device] = v, False
        started += 1


@njit(cache=True, inline="always")
def _hold(
    arrays: TaskArrays,
    state: PartialSchedule,
    queues: Queues,
    favourite: Ints,
    last: Ints,
    idle: Bools,
    now: float,
) -> None:
    """Replace the offers of the idle devices that wait for a favourite child, see :func:`offer_awake`."""
    for d in range(len(idle)):
        if not idle[d] or last[d] == NOWHERE:
            continue
        child = favourite[last[d]]
        if queues.held[d]:
            queues.held[d], queues.exact[d] = False, False
            queues.offer[d], queues.offered[d] = 0.0, 0
        if child != NOWHERE and queues.ready_at[child] != NOWHERE and favourite_held(arrays, state, child, d):
            queues.held[d], queues.exact[d] = True, True
            queues.offer[d], queues.offered[d] = offer_awake(arrays, state, queues, child, d, now)


@njit(cache=True, inline="always")
def push(key: Floats, item: Ints, count: Ints, row: int, new_key: float, new_item: int) -> None:
    """Add an entry to the heap in a row."""
    i = count[row]
    count[row] = i + 1
    while i > 0:
        up = (i - 1) >> 1
        if key[row, up] < new_key or (key[row, up] == new_key and item[row, up] < new_item):
            break
        key[row, i], item[row, i] = key[row, up], item[row, up]
        i = up
    key[row, i], item[row, i] = new_key, new_item


@njit(cache=True, inner=True)
def pop(key: Floats, item: Ints, count: Ints, row: int) -> None:
    """Remove the smallest entry of the heap in a row."""
    last = count[row] - 1
    count[row] = last
    replace_top(key, item, count, row, key[row, last], item[row, last])


@njit(cache=True, inner=True)
def replace_top(key: Floats, item: Ints, count: Ints, row: int, new_key: float, new_item: int) -> None:
    """Replace the smallest entry of the heap in a row."""
    size, i = count[row], 0
    while 2 * i + 1 < size:
        down = 2 * i + 1
        if down + 1 < size and (
            key[row, down + 1] < key[row, down]
            or (key[row, down + 1] == key[row, down] and item[row, down + 1] < item[row, down])
        ):
            down += 1
        if new_key < key[row, down] or (new_key == key[row, down] and new_item < item[row, down]):
            break
        key[row, i], item[row, i] = key[row, down], item[row, down]
        i = down
    key[row, i], item[row, i] = new_key, new_item


class Queues(NamedTuple):
    """Two heaps of ready tasks for each device; an entry is a task's place in an order that breaks ties.

    Without contention the time at which a task's inputs are on a device is fixed once its producers are
    placed. With contention it can only grow while channels are used: a key is a lower bound, which is
    corrected when the entry comes to the top. Entries of tasks that are placed, or no longer fit, are removed
    only then.

    Parameters
    ----------
    task, place
        Shape (n,): the tasks in the order, and the place of every task in it.
    missing
        Shape (n,): how many inputs of each task are still missing.
    due_key, due, due_count
        Shapes (D, n), (D, n), (D,): heaps of tasks that could start when the last one of the device ends.
    later_key, later, later_count
        Likewise, heaps of the tasks whose inputs arrive later, by the time of arrival.
    ready, ready_at, ready_count
        Shapes (n,), (n,), (1,): all ready tasks in no order, the index of each in that list or ``NOWHERE``,
        and their number.
    ample
        Shape (D,): memory left with which any group fits on the device; infinity if some group may not run
        there.
    offer, offered
        Shape (D,): a lower bound, as time and place in the order, on the first start of a ready task.
    exact
        Shape (D,): whether that task can start at exactly that time. Starts only grow, so that an old offer
        stays a bound.
    held
        Shape (D,): whether the offer is of a device that waits for a favourite child.
    start
        Shape (D,): scratch space.
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
    """Return queues without ready tasks.

    Parameters
    ----------
    arrays
        The tasks.
    order
        Shape (n,): all tasks; of two that could start at the same time the earlier one is taken.
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


@njit(cache=True, inner=True)
def enqueue(arrays: TaskArrays, state: PartialSchedule, queues: Queues, v: int) -> None:
    """Enter task `v`, which is ready now, in the queues of all devices."""
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


@njit(cache=True, inner=True)
def leave(queues: Queues, v: int) -> None:
    """Remove task `v`, which has been placed, from the ready tasks; other tasks may now start later."""
    last = queues.ready[queues.ready_count[0] - 1]
    queues.ready[queues.ready_at[v]] = last
    queues.ready_at[last] = queues.ready_at[v]
    queues.ready_at[v] = NOWHERE
    queues.ready_count[0] -= 1
    queues.exact[:] = False


@njit(cache=True, nogil=True)
def enqueue_sources(arrays: TaskArrays, state: PartialSchedule, queues: Queues) -> None:
    """Enter all tasks without inputs."""
    for v in range(len(queues.task)):
        if queues.missing[v] == 0:
            enqueue(arrays, state, queues, v)


@njit(cache=True, inner=True)
def enqueue_readers(arrays: TaskArrays, state: PartialSchedule, queues: Queues, u: int) -> None:
    """Enter the tasks whose inputs are complete with the outputs of task `u`."""
    for e in range(arrays.after_start[u], arrays.after_start[u + 1]):
        v = arrays.after[e]
        queues.missing[v] -= 1
        if queues.missing[v] == 0:
            enqueue(arrays, state, queues, v)


@njit(cache=True, inner=True)
def first_offer(arrays: TaskArrays, state: PartialSchedule, queues: Queues, idle: Bools) -> int:
    """Return the idle device that could start a ready task first, ``NOWHERE`` if none can.

    Among equals that is the device with the first task in the order, then the lowest one. The offer of that
    device is exact.
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


@njit(cache=True, inline="always")
def earliest(arrays: TaskArrays, state: PartialSchedule, queues: Queues, d: int) -> tuple[float, int]:
    """Return when a ready task could first start on device `d`, or infinity, and its place in the order."""
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


@njit(cache=True, inline="always")
def _ready(arrays: TaskArrays, state: PartialSchedule, queues: Queues, place: int, d: int) -> float:
    """Return when the inputs of an unplaced task are on device `d`; infinity if the task does not fit."""
    v = queues.task[place]
    return float(ready_time(arrays, state, v, d)) if fits(arrays, state, v, d) else np.inf


@njit(cache=True, inner=True)
def _put(queues: Queues, d: int, place: int, end: float, ready: float) -> None:
    """Add a task to the heap of device `d` that its ready time belongs to; to none if that is infinite."""
    if ready <= end:
        push(queues.due_key, queues.due, queues.due_count, d, 0.0, place)
    elif ready < np.inf:
        push(queues.later_key, queues.later, queues.later_count, d, ready, place)
