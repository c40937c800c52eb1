"""Placement by memory alone, for when the rules of a placer find none: first fit by decreasing size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.methods.list_scheduling.found import Found
from partitioner.methods.list_scheduling.packing import packed
from partitioner.methods.list_scheduling.ranks import ordered, upward_rank
from partitioner.methods.method import Settings
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks
from partitioner.workload.graph import Bools

FALLBACK = (
    "the rules of the placer found no placement within the memory: the groups were packed into the devices "
    "by their sizes instead, and run in the order of the upward rank"
)


def place_within_memory(tasks: Tasks, settings: Settings) -> tuple[Found | None, bool]:
    """Return a placement that fits, or None, and whether it is proven that there is none.

    First fit is tried before a solver packs the groups.
    """
    found = place_first_fit(tasks, settings)
    if found is not None:
        return replace(found, notes=(FALLBACK,)), False
    home, impossible = packed(tasks, settings)
    if home is None:
        return None, impossible
    return Found(home[tasks.group], ordered(tasks, upward_rank(tasks)), notes=(FALLBACK,)), False


def place_first_fit(tasks: Tasks, settings: Settings) -> Found | None:
    """Return a placement by size, whose tasks run by upward rank; None if every rule leaves a group over.

    The rules are first fit and best fit, by decreasing size and then with the groups first that may run on
    the fewest devices. `settings` are not used.
    """
    few = tasks.group_allowed.sum(axis=0)
    by_size = np.argsort(-tasks.group_size, kind="stable")
    by_choice = by_size[np.argsort(few[by_size], kind="stable")]
    for order in (by_size, by_choice):
        for tightest in (False, True):
            home = _packed(tasks.group_size, tasks.group_allowed, tasks.limit, order, tightest)
            if home is not None and tasks.hold(home[tasks.group]):
                return Found(home[tasks.group], ordered(tasks, upward_rank(tasks)))
    return None


def _packed(size: Floats, allowed: Bools, limit: Floats, order: Ints, tightest: bool) -> Ints | None:
    """Return the device of each group, shape (groups,): the first, or the fullest, that it fits on."""
    home, room = np.zeros(len(size), dtype=np.int64), limit.copy()
    for group in order.tolist():
        fitting = np.flatnonzero(allowed[:, group] & (size[group] <= room))
        if not len(fitting):
            return None
        home[group] = fitting[np.argmin(room[fitting])] if tightest else fitting[0]
        room[home[group]] -= size[group]
    return home
