"""m-TOPO: one device after another in Kahn's order (Baechi, 2020)."""

from __future__ import annotations

import numpy as np

from partitioner.methods.list_scheduling.baechi.around import around
from partitioner.methods.list_scheduling.baechi.kahn import kahn_order
from partitioner.methods.list_scheduling.found import Found
from partitioner.methods.list_scheduling.method import as_method
from partitioner.methods.list_scheduling.task_arrays import NOWHERE
from partitioner.methods.method import Settings
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks


def place_m_topo(tasks: Tasks, settings: Settings) -> Found | None:
    """Fill the first device until the next task has no room, then the second, and never go back.

    A task brings its whole group, whose memory is tested and booked alike (the released code tests one
    figure and books another). Devices that may not run a group are passed over for it alone.

    Returns
    -------
    Found or None
        None if the last device is full, too. It knows no times: its estimate is infinite.
    """
    return around(tasks, settings, _placed)


def memory_cap(tasks: Tasks, uniform: bool) -> Floats:
    """Shape (D,): how much memory of each device may be used.

    Parameters
    ----------
    tasks
        The tasks.
    uniform
        At most an even share and the largest group? The device's memory bounds it in any case (the released
        code looks at one of the two only). As groups are placed whole, the largest one counts, not the
        largest task as in the released code; then memory without limit always suffices. The share is not
        rounded down, which makes no difference for whole numbers.
    """
    if not uniform:
        return tasks.limit
    share = tasks.size.sum() / len(tasks.limit) + tasks.group_size.max(initial=0.0)
    return np.asarray(np.minimum(tasks.limit, share))


def _placed(tasks: Tasks, settings: Settings) -> Found | None:
    order = kahn_order(tasks)
    home = _homes(tasks, order, memory_cap(tasks, settings.placing.uniform).tolist())
    return None if home is None else Found(home[tasks.group], order)


def _homes(tasks: Tasks, order: Ints, room: list[float]) -> Ints | None:
    """The device of every group, None if one finds no room."""
    home, current = np.full(len(tasks.group_size), NOWHERE), 0
    for g in tasks.group[order].tolist():
        if home[g] != NOWHERE:
            continue
        size = float(tasks.group_size[g])
        for d in np.flatnonzero(tasks.group_allowed[current:, g]) + current:
            if size <= room[d]:
                home[g] = d
                room[d] -= size
                break
            if d == current:
                current += 1
        else:
            return None
    return home


solve_m_topo = as_method(place_m_topo)
