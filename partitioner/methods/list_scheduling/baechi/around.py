"""The steps of Baechi before and after a placer: groups are joined, operators fused and expanded again."""

from __future__ import annotations

from partitioner.methods.list_scheduling.baechi.coplace import coplaced
from partitioner.methods.list_scheduling.baechi.fusion import fused
from partitioner.methods.list_scheduling.coarse import expanded, merged
from partitioner.methods.list_scheduling.found import Found, PlaceTasks
from partitioner.methods.method import Settings
from partitioner.problem.tasks import Tasks


def around(tasks: Tasks, settings: Settings, place: PlaceTasks) -> Found | None:
    """Return a placer's placement of tasks that are grouped and fused as the user's options say.

    Parameters
    ----------
    tasks
        The tasks.
    settings
        Used are `grouper` and `fuse` of its `placing`.
    place
        The placer.
    """
    if settings.placing.grouper == "coplace":
        tasks = coplaced(tasks)
    if not settings.placing.fuse:
        return place(tasks, settings)
    cluster = fused(tasks)
    found = place(merged(tasks, cluster), settings)
    return None if found is None else expanded(found, cluster, tasks)
