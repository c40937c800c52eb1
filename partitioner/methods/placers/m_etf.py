"""m-ETF: Earliest Task First under memory limits (Baechi, 2020)."""

from __future__ import annotations

import numpy as np

from partitioner.methods.method import Settings
from partitioner.methods.placers.around import around
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.method import as_method
from partitioner.methods.placers.queues import place_by_events, place_from
from partitioner.methods.placers.ranks import upward_rank
from partitioner.methods.placers.task_arrays import NOWHERE
from partitioner.problem.arrays import Ints
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
    return place_from(np.inf, tasks, order, _no_favourites(tasks), settings.placing.reserve_memory, settings)


solve_etf = as_method(place_etf)


def place_m_etf(tasks: Tasks, settings: Settings) -> Found | None:
    """Place tasks so that an idle device always runs the ready task that it could start first.

    Ties are broken as in the released code: by Kahn's order, not by the longest path to an exit. Groups are
    joined and tasks fused first, if `settings.placing` says so.
    """
    return around(tasks, settings, _placed)


def _placed(tasks: Tasks, settings: Settings) -> Found | None:
    return place_by_events(tasks, _no_favourites(tasks), settings.placing.reserve_memory, settings)


def _no_favourites(tasks: Tasks) -> Ints:
    return np.full(tasks.n, NOWHERE)


solve_m_etf = as_method(place_m_etf)
