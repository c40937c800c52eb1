"""Adjusting Placement: a task stays on the previous task's device unless another one is much earlier."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.ranks import largest_transfer
from partitioner.methods.list_scheduling.task_arrays import (
    FIRST,
    NOWHERE,
    PartialSchedule,
    TaskArrays,
    book,
    earliest_start,
    fits,
)
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks


def back_cost(tasks: Tasks) -> Floats:
    """Return the longest transfer to a consumer, between any two devices (Equation 8), shape (n,)."""
    back = np.zeros(tasks.n)
    np.maximum.at(back, tasks.after.owners(), largest_transfer(tasks)[tasks.after_tensor])
    return back


@njit(cache=True, nogil=True)
def adjust(arrays: TaskArrays, state: PartialSchedule, order: Ints, back: Floats) -> int:
    """Place the tasks one by one (Algorithm 2); for the first task the previous device is device 0.

    Returns
    -------
    int
        The first task that fits nowhere; ``NOWHERE`` if all are placed.
    """
    previous = FIRST
    for v in order:
        previous = _adjusted(arrays, state, v, previous, back[v])
        if previous == NOWHERE:
            return int(v)
        book(arrays, state, v, previous)
    return NOWHERE


@njit(cache=True, nogil=True)
def _adjusted(arrays: TaskArrays, state: PartialSchedule, v: int, previous: int, back: float) -> int:
    """Return the previous device, or the earliest one if that is earlier by more than `back` (Equation 9).

    The earliest device is the one on which the task ends first. On equal devices that is the paper's EST;
    on unequal ones the paper's proof needs the end.
    """
    earliest, start, end = NOWHERE, np.inf, np.inf
    stay = np.inf
    for d in range(len(state.room)):
        if not fits(arrays, state, v, d):
            continue
        begin = earliest_start(arrays, state, v, d)
        if d == previous:
            stay = begin
        if begin + arrays.time[d, v] < end:
            earliest, start, end = d, begin, begin + arrays.time[d, v]
    if stay == np.inf:
        return earliest
    later = (stay - start) + (arrays.time[previous, v] - arrays.time[earliest, v])
    return earliest if later > back else previous
