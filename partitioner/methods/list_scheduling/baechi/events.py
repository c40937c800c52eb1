"""The scheduler of m-ETF and m-SCT: it simulates the run of the tasks while it places them."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.baechi.awake import favourite_held, offer_awake
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
    new_state,
)
from partitioner.methods.method import OutOfTimeError, Settings
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks
from partitioner.workload.graph import Bools

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
