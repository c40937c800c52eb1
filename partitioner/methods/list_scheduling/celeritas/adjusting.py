"""Adjusting Placement: on the previous task's device, unless another one pays off."""

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
    """Shape (n,): the longest transfer to a consumer, between any two devices (Equation 8)."""
    back = np.zeros(tasks.n)
    np.maximum.at(back, tasks.after.owners(), largest_transfer(tasks)[tasks.after_tensor])
    return back


@njit(cache=True, nogil=True)
def adjust(arrays: TaskArrays, state: PartialSchedule, order: Ints, back: Floats) -> int:
    """Place the tasks one by one (Algorithm 2); before the first, the previous device is device 0.

    Returns
    -------
    int
        The task that fits nowhere, at which it ended; ``NOWHERE`` if all are placed.
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
    """The previous device, or the earliest one if that is earlier by more than `back` (Equation 9).

    Earliest is where the task ends first: on equal devices that is the paper's EST, and on unequal ones the
    paper's proof needs the end.
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
