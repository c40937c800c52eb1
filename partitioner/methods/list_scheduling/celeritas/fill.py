"""Placement on one device after another: each takes tasks in their order until its memory is full."""

from __future__ import annotations

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.task_arrays import (
    FIRST,
    NOWHERE,
    PartialSchedule,
    TaskArrays,
    book,
    fits,
)
from partitioner.problem.arrays import Ints


@njit(cache=True, nogil=True)
def fill(arrays: TaskArrays, state: PartialSchedule, order: Ints) -> int:
    """Place the tasks one by one (Sections 4.2.1 and 6.3).

    A device is full once a task that may run there does not fit; the tasks that follow go to the next
    device. A task that may not run on a device, or whose group is on another, does not make it full. When
    the last device is full, or no later device is allowed, a task goes to the device with the most memory
    left of those that it fits on, the lowest among equals.

    Returns
    -------
    int
        The first task that fits nowhere; ``NOWHERE`` if all are placed.
    """
    current = FIRST
    for v in order:
        d, current = _next(arrays, state, v, current)
        if d == NOWHERE:
            return int(v)
        book(arrays, state, v, d)
    return NOWHERE


@njit(cache=True, nogil=True)
def _next(arrays: TaskArrays, state: PartialSchedule, v: int, current: int) -> tuple[int, int]:
    """Return the device of a task, and the first one that is not full."""
    g = arrays.group[v]
    if state.home[g] == NOWHERE:
        for d in range(current, len(state.room)):
            if fits(arrays, state, v, d):
                return d, current
            if d == current and arrays.group_allowed[d, g]:
                current += 1
    return _roomiest(arrays, state, v), current


@njit(cache=True, nogil=True)
def _roomiest(arrays: TaskArrays, state: PartialSchedule, v: int) -> int:
    """Return the device with the most memory left of those that the task fits on, or ``NOWHERE``."""
    chosen = NOWHERE
    for d in range(len(state.room)):
        if fits(arrays, state, v, d) and (chosen == NOWHERE or state.room[d] > state.room[chosen]):
            chosen = d
    return chosen
