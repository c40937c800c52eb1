"""A device that waits for a favourite child (m-SCT)."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.baechi.queues import Queues
from partitioner.methods.list_scheduling.ground import NOWHERE, Ground, State, fits, ready_time


@njit(cache=True, nogil=True)
def favourite_held(ground: Ground, state: State, child: int, d: int) -> bool:
    """Is there no device where the child, which is ready, could start earlier than on this one?"""
    if not fits(ground, state, child, d):
        return False
    here = _start(ground, state, child, d)
    for other in range(len(state.room)):
        if fits(ground, state, child, other) and _start(ground, state, child, other) < here:
            return False
    return True


@njit(cache=True, nogil=True)
def offer_awake(
    ground: Ground, state: State, queues: Queues, child: int, d: int, now: float
) -> tuple[float, int]:
    """The most urgent task, if any device could start it now, else the favourite child.

    Returns
    -------
    tuple
        When it starts and its place in the order. If neither can start now, a later time at which one might.
    """
    urgent, v = _most_urgent(ground, state, queues, d, now)
    if urgent <= now:
        return _start(ground, state, v, d), queues.place[v]
    return min(urgent, _start(ground, state, child, d)), queues.place[child]


@njit(cache=True, nogil=True)
def _start(ground: Ground, state: State, v: int, d: int) -> float:
    """When a task could start on a device."""
    return float(max(ready_time(ground, state, v, d), state.end[d]))


@njit(cache=True, nogil=True)
def _most_urgent(ground: Ground, state: State, queues: Queues, d: int, now: float) -> tuple[float, int]:
    """Of the ready tasks that fit on device `d`, the one that could start first wherever it may go.

    Tasks that fit on a busy device are left out: they become urgent when that one ends at the earliest.
    """
    first, chosen = np.inf, NOWHERE
    crowded = _some_busy_takes_all(state, queues, now)
    for i in range(queues.ready_count[0]):
        v = queues.ready[i]
        if (crowded and state.home[ground.group[v]] == NOWHERE) or not fits(ground, state, v, d):
            continue
        urgent = _urgent_time(ground, state, v, now)
        if urgent < first or (urgent == first < np.inf and queues.place[v] < queues.place[chosen]):
            first, chosen = urgent, v
    return first, chosen


@njit(cache=True, nogil=True)
def _urgent_time(ground: Ground, state: State, v: int, now: float) -> float:
    """From when on a task could start on every device that it fits on; infinity if one of them is busy."""
    time = 0.0
    for d in range(len(state.room)):
        if fits(ground, state, v, d):
            if state.end[d] > now:
                return np.inf
            time = max(time, _start(ground, state, v, d))
    return time


@njit(cache=True, nogil=True)
def _some_busy_takes_all(state: State, queues: Queues, now: float) -> bool:
    """Is there a busy device that every group without a device fits on?"""
    roomy = (queues.ample < np.inf) & (queues.ample <= state.room)
    return bool(((state.end > now) & roomy).any())
