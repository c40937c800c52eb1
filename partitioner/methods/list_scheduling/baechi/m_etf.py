"""m-ETF: Earliest Task First under memory limits (Baechi, 2020)."""

from __future__ import annotations

import numpy as np

from partitioner.methods.list_scheduling.baechi.around import around
from partitioner.methods.list_scheduling.baechi.events import place_by_events
from partitioner.methods.list_scheduling.found import Found
from partitioner.methods.list_scheduling.method import as_method
from partitioner.methods.list_scheduling.task_arrays import NOWHERE
from partitioner.methods.method import Settings
from partitioner.problem.tasks import Tasks


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
