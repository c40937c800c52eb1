"""Placement in simulated time: whenever a device is idle it takes the ready task that it could start first.

Every device has two binary heaps of ready tasks, by when they could start there. They are rows of arrays:
entries are pairs of a key and an item, the smallest on top.
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
    start_at_end,
    start_times,
)
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks
from partitioner.workload.graph import Bools

VISITS = 10_000_000  # between two readings of the clock, at most a fifth of a second
EACH = 2500  # visits that a task counts for, in addition to one for each other ready task


class Queues(NamedTuple):
    """The simulated time, what the devices run, and their heaps of ready tasks.

    The item of an entry is a task's place in an order that breaks ties. Row d has the tasks that could start
    when the last one of device d ends, with key 0; row D + d those whose inputs arrive later, by the time of
    arrival.

    Without contention the time at which a task's inputs are on a device is fixed once its producers are
    placed. With contention it can only grow while channels are used: a key is a lower bound, which is
    corrected when the entry comes to the top. Entries of tasks that are placed, or no longer fit, are removed
    only then.

    Parameters
    ----------
    now
        Shape (1,): the time; at infinity every task ends as soon as it is placed.
    running, last
        Shape (D,): the task that each device runs and the one that it ran last, or ``NOWHERE``.
    favourite
        Shape (n,): the favourite child of each task, or ``NOWHERE``.
    task, place
        Shape (n,): the tasks in the order, and the place of every task in it.
    missing
        Shape (n,): how many inputs of each task are still missing.
    key, item, size
        Shapes (2 D, n), (2 D, n), (2 D,): the heaps, and how many entries each has.
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

    now: Floats
    running: Ints
    last: Ints
    favourite: Ints
    task: Ints
    place: Ints
    missing: Ints
    key: Floats
    item: Ints
    size: Ints
    ready: Ints
    ready_at: Ints
    ready_count: Ints
    ample: Floats
    offer: Floats
    offered: Ints
    exact: Bools
    held: Bools
    start: Floats


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
    return place_from(0.0, tasks, kahn_order(tasks), favourite, reserve, settings)


def place_from(
    now: float, tasks: Tasks, order: Ints, favourite: Ints, reserve: bool, settings: Settings
) -> Found | None:
    """Return :func:`place_by_events` with ties broken by an order, from a time on.

    At infinity, time stands still: every task counts as ended once it is placed, all devices are idle, and of
    all their offers the one with the earliest start is taken.
    """
    arrays, state = arrays_of(tasks, reserve, insertion=False), new_state(tasks)
    queues = _queues(arrays, order, favourite, now)
    entering = np.flatnonzero(queues.missing == 0)
    while _run(arrays, state, queues, entering):
        if settings.expired:
            raise OutOfTimeError
        entering = entering[:0]
    return None if (state.device == NOWHERE).any() else found(state)


def _queues(arrays: TaskArrays, order: Ints, favourite: Ints, now: float) -> Queues:
    """Return queues without ready tasks, with the order that breaks ties."""
    devices, n = arrays.time.shape
    return Queues(
        now=np.full(1, now),
        running=np.full(devices, NOWHERE),
        last=np.full(devices, NOWHERE),
        favourite=favourite,
        task=order,
        place=np.argsort(order),
        missing=np.diff(arrays.before_start),
        key=np.empty((2 * devices, n)),
        item=np.empty((2 * devices, n), dtype=np.int64),
        size=np.zeros(2 * devices, dtype=np.int64),
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


@njit(cache=True, nogil=True, _nrt=False)
def _run(arrays: TaskArrays, state: PartialSchedule, queues: Queues, entering: Ints) -> bool:
    """Simulate for some steps, in which the tasks `entering` become ready; return whether there are more."""
    running, last, ready_at = queues.running, queues.last, queues.ready_at
    visits, started, at_once = 0, 0, queues.now[0] == np.inf
    for v in entering:
        _enqueue(arrays, state, queues, v)
    while visits < VISITS:
        now = queues.now[0]
        # The tasks that have ended make their readers ready.
        for d in range(len(running)):
            u = running[d]
            if u == NOWHERE or state.end[d] > now:
                continue
            last[d], running[d] = u, NOWHERE
            for e in range(arrays.after_start[u], arrays.after_start[u + 1]):
                v = arrays.after[e]
                queues.missing[v] -= 1
                if queues.missing[v] == 0:
                    _enqueue(arrays, state, queues, v)
        # The idle devices start the tasks that can start now.
        following, started = np.inf, 0
        while not (at_once and started):
            _hold(arrays, state, queues, now)
            device = _first_offer(arrays, state, queues)
            if device == NOWHERE:
                break
            if queues.offer[device] > now:
                following = queues.offer[device]
                break
            v = queues.task[queues.offered[device]]
            book(arrays, state, v, device)
            running[device] = v
            started += 1
            # It leaves the list of ready tasks; other tasks may now start later.
            queues.ready_count[0] -= 1
            final = queues.ready[queues.ready_count[0]]
            queues.ready[ready_at[v]], ready_at[final] = final, ready_at[v]
            ready_at[v] = NOWHERE
            queues.exact[:] = False
        visits += (1 + started) * (EACH + queues.ready_count[0])
        for d in range(len(running)):
            if running[d] != NOWHERE:
                following = min(following, state.end[d])
        if following == np.inf:
            return False
        if not at_once:
            queues.now[0] = following
    return True


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def _hold(arrays: TaskArrays, state: PartialSchedule, queues: Queues, now: float) -> None:
    """Replace the offers of the idle devices that wait for a favourite child.

    A device waits if the child is ready and could start on no other device earlier. It offers the most urgent
    task if all devices could start that one now, else the child, at the time when either of them could start.
    """
    for d in range(len(queues.running)):
        if queues.running[d] != NOWHERE or queues.last[d] == NOWHERE:
            continue
        if queues.held[d]:
            queues.held[d], queues.exact[d] = False, False
            queues.offer[d], queues.offered[d] = 0.0, 0
        child = queues.favourite[queues.last[d]]
        if child == NOWHERE or queues.ready_at[child] == NOWHERE:
            continue
        here = _start(arrays, state, child, d)
        waits = here < np.inf
        for other in range(len(state.room)):
            waits = waits and not _start(arrays, state, child, other) < here
        if waits:
            urgent, v = _most_urgent(arrays, state, queues, d, now)
            if urgent <= now:
                queues.offer[d], queues.offered[d] = _start(arrays, state, v, d), queues.place[v]
            else:
                queues.offer[d], queues.offered[d] = min(urgent, here), queues.place[child]
            queues.held[d], queues.exact[d] = True, True


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def _most_urgent(
    arrays: TaskArrays, state: PartialSchedule, queues: Queues, d: int, now: float
) -> tuple[float, int]:
    """Return when a ready task that fits on device `d` could start on all that it fits on, and that task.

    Tasks that fit on a busy device are left out: they cannot be urgent before that device is idle.
    """
    crowded = False  # whether all groups without a device fit on some busy one
    for e in range(len(state.room)):
        crowded |= state.end[e] > now and queues.ample[e] < np.inf and queues.ample[e] <= state.room[e]
    first, chosen = np.inf, NOWHERE
    for i in range(queues.ready_count[0]):
        v = queues.ready[i]
        if (crowded and state.home[arrays.group[v]] == NOWHERE) or not fits(arrays, state, v, d):
            continue
        urgent = 0.0
        for e in range(len(state.room)):
            if fits(arrays, state, v, e):
                busy = state.end[e] > now
                urgent = np.inf if busy else max(urgent, _start(arrays, state, v, e))
                if busy:
                    break
        if urgent < first or (urgent == first < np.inf and queues.place[v] < queues.place[chosen]):
            first, chosen = urgent, v
    return first, chosen


@njit(cache=True, inner=True, _nrt=False)
def _start(arrays: TaskArrays, state: PartialSchedule, v: int, d: int) -> float:
    """Return when a task could start after the last one of a device; infinity if it does not fit there."""
    return start_at_end(arrays, state, v, d) if fits(arrays, state, v, d) else np.inf


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def _first_offer(arrays: TaskArrays, state: PartialSchedule, queues: Queues) -> int:
    """Return the idle device that could start a ready task first, ``NOWHERE`` if none can.

    Among equals that is the device with the first task in the order, then the lowest one. The offer of that
    device is exact.
    """
    while True:
        first, chosen, device = np.inf, len(queues.task), NOWHERE
        for d in range(len(queues.running)):
            time, place = queues.offer[d], queues.offered[d]
            idle = queues.running[d] == NOWHERE
            if idle and (time < first or (time == first < np.inf and place < chosen)):
                first, chosen, device = time, place, d
        if device == NOWHERE or queues.exact[device]:
            return int(device)
        queues.offer[device], queues.offered[device] = _earliest(arrays, state, queues, device)
        queues.exact[device] = True


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def _earliest(arrays: TaskArrays, state: PartialSchedule, queues: Queues, d: int) -> tuple[float, int]:
    """Return when a ready task could first start on device `d`, or infinity, and its place in the order."""
    key, item, size, end = queues.key, queues.item, queues.size, state.end[d]
    later = len(queues.running) + d
    while size[d] or size[later]:
        due = size[d] and not (size[later] and key[later, 0] <= end)
        row = d if due else later
        bound, place = max(key[row, 0], end), item[row, 0]
        start = np.inf
        if state.device[queues.task[place]] == NOWHERE:
            start = _start(arrays, state, queues.task[place], d)
            if start <= bound and (due or key[row, 0] > end):
                return bound, place
        _pop(queues, row)
        _put(queues, d, place, end, start)
    return np.inf, len(queues.task)


@njit(cache=True, inner=True, _nrt=False)
def _enqueue(arrays: TaskArrays, state: PartialSchedule, queues: Queues, v: int) -> None:
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


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def _put(queues: Queues, d: int, place: int, end: float, start: float) -> None:
    """Add a task to the heap of device `d` that its start belongs to; to none if that is infinite."""
    if start == np.inf:
        return
    row = d if start <= end else len(queues.running) + d
    bound = 0.0 if start <= end else start
    key, item, i = queues.key[row], queues.item[row], queues.size[row]
    queues.size[row] += 1
    while i > 0:
        up = (i - 1) >> 1
        if key[up] < bound or (key[up] == bound and item[up] < place):
            break
        key[i], item[i] = key[up], item[up]
        i = up
    key[i], item[i] = bound, place


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def _pop(queues: Queues, row: int) -> None:
    """Remove the smallest entry of the heap in a row."""
    size, i = queues.size[row] - 1, 0
    queues.size[row] = size
    key, item = queues.key[row], queues.item[row]
    bound, place = key[size], item[size]  # takes the free place on top, and sinks
    while 2 * i + 1 < size:
        down = 2 * i + 1
        other = down + 1
        if other < size and (
            key[other] < key[down] or (key[other] == key[down] and item[other] < item[down])
        ):
            down = other
        if bound < key[down] or (bound == key[down] and place < item[down]):
            break
        key[i], item[i] = key[down], item[down]
        i = down
    key[i], item[i] = bound, place
