"""The scheduler of m-ETF and m-SCT: it simulates the run of the tasks while it places them.

The offers of a device that waits for a favourite child (m-SCT).
"""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.baechi.kahn import kahn_order
from partitioner.methods.list_scheduling.baechi.queues import (
    Queues,
    enqueue_readers,
    enqueue_sources,
    first_offer,
    leave,
    new_queues,
)
from partitioner.methods.list_scheduling.engine import UNLIMITED, found
from partitioner.methods.list_scheduling.found import Found
from partitioner.methods.list_scheduling.task_arrays import (
    NOWHERE,
    PartialSchedule,
    TaskArrays,
    arrays_of,
    book,
    fits,
    new_state,
    ready_time,
)
from partitioner.methods.method import OutOfTimeError, Settings
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks
from partitioner.workload.graph import Bools


@njit(cache=True, nogil=True)
def favourite_held(arrays: TaskArrays, state: PartialSchedule, child: int, d: int) -> bool:
    """Whether the child, which is ready, fits on device `d` and could start on no other device earlier."""
    if not fits(arrays, state, child, d):
        return False
    here = _start(arrays, state, child, d)
    for other in range(len(state.room)):
        if fits(arrays, state, child, other) and _start(arrays, state, child, other) < here:
            return False
    return True


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _start(arrays: TaskArrays, state: PartialSchedule, v: int, d: int) -> float:
    """Return when a task could start on a device."""
    return float(max(ready_time(arrays, state, v, d), state.end[d]))


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _urgent_time(arrays: TaskArrays, state: PartialSchedule, v: int, now: float) -> float:
    """Return when a task could start on every device that it fits on; infinity if one of them is busy."""
    time = 0.0
    for d in range(len(state.room)):
        if fits(arrays, state, v, d):
            if state.end[d] > now:
                return np.inf
            time = max(time, _start(arrays, state, v, d))
    return time


@njit(cache=True, nogil=True)
def _some_busy_takes_all(state: PartialSchedule, queues: Queues, now: float) -> bool:
    """Whether there is a busy device on which every group fits that has no device yet."""
    roomy = (queues.ample < np.inf) & (queues.ample <= state.room)
    return bool(((state.end > now) & roomy).any())


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
        See :class:`partitioner.methods.list_scheduling.task_arrays.TaskArrays`.
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
