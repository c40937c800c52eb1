"""The offers of a device that waits for a favourite child (m-SCT)."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.baechi.queues import Queues
from partitioner.methods.list_scheduling.task_arrays import (
    NOWHERE,
    PartialSchedule,
    TaskArrays,
    fits,
    ready_time,
)


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
