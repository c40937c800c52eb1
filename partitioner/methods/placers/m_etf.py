"""m-ETF: Earliest Task First under memory limits (Baechi, 2020)."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.method import Settings
from partitioner.methods.placers.around import around
from partitioner.methods.placers.engine import found
from partitioner.methods.placers.found import Found, portions
from partitioner.methods.placers.method import as_method
from partitioner.methods.placers.queues import (
    Queues,
    enqueue_readers,
    enqueue_sources,
    first_offer,
    leave,
    new_queues,
    place_by_events,
)
from partitioner.methods.placers.ranks import upward_rank
from partitioner.methods.placers.task_arrays import (
    NOWHERE,
    PartialSchedule,
    TaskArrays,
    arrays_of,
    book,
    new_state,
)
from partitioner.problem.tasks import Tasks


def place_etf(tasks: Tasks, settings: Settings) -> Found | None:
    """Place next, of all tasks whose producers are placed and all devices, the pair with the earliest start.

    Among equals that is the task with the longest path to an exit (mean times and transfers), then the one
    with the smallest number, on the lowest device. A task starts after the last one of its device. Devices
    that are full, or may not run a task, are left out.

    Returns
    -------
    Found or None
        None if the tasks that are left fit nowhere.
    """
    order = np.argsort(-upward_rank(tasks), kind="stable")
    arrays = arrays_of(tasks, settings.placing.reserve_memory, insertion=False)
    state = new_state(tasks)
    queues = new_queues(arrays, order)
    enqueue_sources(arrays, state, queues)
    for portion in portions(tasks.n, settings):
        if not _place_next(arrays, state, queues, len(order[portion])):
            return None
    return found(state)


@njit(cache=True, nogil=True)
def _place_next(arrays: TaskArrays, state: PartialSchedule, queues: Queues, count: int) -> bool:
    """Place `count` tasks, one after another; return False if the tasks that are left fit nowhere."""
    everywhere = np.ones(len(state.room), dtype=np.bool_)
    for _ in range(count):
        device = first_offer(arrays, state, queues, everywhere)
        if device == NOWHERE:
            return False
        v = queues.task[queues.offered[device]]
        book(arrays, state, v, device)
        leave(queues, v)
        enqueue_readers(arrays, state, queues, v)
    return True


solve_etf = as_method(place_etf)


def place_m_etf(tasks: Tasks, settings: Settings) -> Found | None:
    """Place tasks so that an idle device always runs the ready task that it could start first.

    Ties are broken as in the released code: by Kahn's order, not by the longest path to an exit. Groups are
    joined and tasks fused first, if `settings.placing` says so.
    """
    return around(tasks, settings, _placed)


def _placed(tasks: Tasks, settings: Settings) -> Found | None:
    none = np.full(tasks.n, NOWHERE)
    return place_by_events(tasks, none, settings.placing.reserve_memory, settings)


solve_m_etf = as_method(place_m_etf)
