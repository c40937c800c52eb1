"""The scheduler of m-ETF and m-SCT: it lets the tasks run while it places them."""

from __future__ import annotations

import numpy as np
from numba import njit

from partitioner.methods.list_scheduling.baechi.awake import favourite_held, offer_awake
from partitioner.methods.list_scheduling.baechi.kahn import kahn_order
from partitioner.methods.list_scheduling.baechi.queues import (
    Queues,
    earliest,
    enqueue_readers,
    enqueue_sources,
    leave,
    new_queues,
)
from partitioner.methods.list_scheduling.engine import found
from partitioner.methods.list_scheduling.found import Found
from partitioner.methods.list_scheduling.ground import NOWHERE, Ground, State, book, ground_of, new_state
from partitioner.preprocess.problem import Ints
from partitioner.preprocess.tasks import Tasks


def place_by_events(tasks: Tasks, favourite: Ints, reserve: bool) -> Found | None:
    """Let time pass; whenever a device is idle it offers to run the ready task that it could start first.

    A task is ready when its producers have ended. Of the offers for the present moment the one with the
    earliest start counts, then the first task in Kahn's order, then the lowest device. Tensors are sent when
    their reader is placed, from when they were made on; nothing starts before a task placed earlier on its
    device.

    Parameters
    ----------
    tasks
        The tasks.
    favourite
        Shape (n,): the favourite child of each task, for m-SCT; ``NOWHERE`` for none.
    reserve
        See :class:`partitioner.methods.list_scheduling.ground.Ground`.

    Returns
    -------
    Found or None
        None if the tasks that are left fit nowhere.
    """
    ground, state = ground_of(tasks, reserve, insertion=False), new_state(tasks)
    done = _run(ground, state, new_queues(ground, kahn_order(tasks)), favourite)
    return found(state) if done else None


@njit(cache=True, nogil=True)
def _run(ground: Ground, state: State, queues: Queues, favourite: Ints) -> bool:
    """From one moment to the next; False if tasks are left when nothing can happen any more."""
    running, last = np.full(len(state.room), NOWHERE), np.full(len(state.room), NOWHERE)
    enqueue_sources(ground, state, queues)
    now, placed = 0.0, 0
    while now < np.inf:
        for d in range(len(running)):
            if running[d] != NOWHERE and state.end[d] <= now:
                last[d], running[d] = running[d], NOWHERE
                enqueue_readers(ground, state, queues, last[d])
        started, following = _start_all(ground, state, queues, favourite, running, last, now)
        placed += started
        for d in range(len(running)):
            if running[d] != NOWHERE:
                following = min(following, state.end[d])
        now = following
    return placed == len(queues.task)


@njit(cache=True, nogil=True)
def _start_all(
    ground: Ground, state: State, queues: Queues, favourite: Ints, running: Ints, last: Ints, now: float
) -> tuple[int, float]:
    """Start what can start now: how many tasks did, and when an idle device could start one next."""
    started = 0
    while True:
        first, chosen, device, following = np.inf, len(queues.task), NOWHERE, np.inf
        for d in range(len(running)):
            if running[d] != NOWHERE:
                continue
            time, place = _offer(ground, state, queues, favourite, last[d], d, now)
            if time > now:
                following = min(following, time)
            elif time < first or (time == first and place < chosen):
                first, chosen, device = time, place, d
        if device == NOWHERE:
            return started, following
        v = queues.task[chosen]
        book(ground, state, v, device)
        leave(queues, v)
        running[device] = v
        started += 1


@njit(cache=True, nogil=True)
def _offer(
    ground: Ground, state: State, queues: Queues, favourite: Ints, last: int, d: int, now: float
) -> tuple[float, int]:
    """What an idle device would run next and when."""
    if last != NOWHERE and favourite_held(ground, state, queues, favourite[last], d):
        return offer_awake(ground, state, queues, favourite[last], d, now)
    return earliest(ground, state, queues, d)
