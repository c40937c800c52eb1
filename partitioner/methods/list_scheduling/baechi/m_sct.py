"""m-SCT: favourite children under memory limits (Baechi, 2020)."""

from __future__ import annotations

from dataclasses import replace

from partitioner.methods.list_scheduling.baechi.around import around
from partitioner.methods.list_scheduling.baechi.events import place_by_events
from partitioner.methods.list_scheduling.baechi.favourites import favourite_children
from partitioner.methods.list_scheduling.found import Found
from partitioner.methods.list_scheduling.method import as_method
from partitioner.methods.method import Settings
from partitioner.problem.tasks import Tasks


def place_m_sct(tasks: Tasks, settings: Settings) -> Found | None:
    """Place tasks as m-ETF does, but let a device wait for the favourite child of the task that it ran last.

    It waits while that child is ready and could start on no other device earlier; meanwhile it runs only
    tasks that could start now on every device they fit on. Favourite children come from a linear program, see
    :func:`partitioner.methods.list_scheduling.baechi.favourites.favourite_children`.
    """
    return around(tasks, settings, _placed)


def _placed(tasks: Tasks, settings: Settings) -> Found | None:
    favourites = favourite_children(tasks, settings)
    found = place_by_events(tasks, favourites.child, settings.placing.reserve_memory, settings)
    if found is None:
        return None
    return replace(found, notes=favourites.notes, statistics=favourites.statistics)


solve_m_sct = as_method(place_m_sct)
