"""m-TOPO: one device after another in Kahn's order (Baechi, 2020)."""

from __future__ import annotations

import numpy as np

from partitioner.methods.method import Settings
from partitioner.methods.placers.around import around
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.method import as_method
from partitioner.methods.placers.task_arrays import NOWHERE
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks


def kahn_order(tasks: Tasks) -> Ints:
    """Return tasks without inputs in the order of the nodes, then consumers in the order of the edges.

    Returns
    -------
    Ints
        Shape (n,), a topological order.
    """
    missing = np.diff(tasks.before.start)
    sources = np.flatnonzero(missing == 0)
    order = sources[np.argsort(tasks.node[sources], kind="stable")].tolist()
    left, start, after = missing.tolist(), tasks.after.start.tolist(), tasks.after.items.tolist()
    for u in order:
        for v in after[start[u] : start[u + 1]]:
            left[v] -= 1
            if not left[v]:
                order.append(v)
    return np.array(order, dtype=np.int64)


def place_m_topo(tasks: Tasks, settings: Settings) -> Found | None:
    """Fill the first device until the next task does not fit, then the second, and never return to one.

    A task is placed with its whole group, whose memory is both tested and booked (the released code tests
    one figure and books another). A device that may not run a group is skipped for that group only.

    Returns
    -------
    Found or None
        None if the last device is full, too. The estimate is infinite, as the rule computes no times.
    """
    return around(tasks, settings, _placed)


def memory_cap(tasks: Tasks, uniform: bool) -> Floats:
    """Return how much memory of each device may be used, shape (D,).

    Parameters
    ----------
    tasks
        The tasks.
    uniform
        Whether a device may use at most an even share plus the memory of the largest group. The device's
        memory is a limit in any case (the released code tests only one of the two). As groups are placed
        whole, the largest group counts, not the largest task as in the released code; so devices without a
        memory limit always suffice. The share is not rounded down.
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
    """Return the device of every group, shape (groups,); None if one fits nowhere."""
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
