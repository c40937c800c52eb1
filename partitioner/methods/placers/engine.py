"""Placement of tasks in a fixed order, each on the device that a rule chooses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from partitioner.base.compiled import njit
from partitioner.base.errors import OptionError, shown
from partitioner.methods.method import Settings
from partitioner.methods.placers.found import Found, portions
from partitioner.methods.placers.task_arrays import (
    FIRST,
    NOWHERE,
    PartialSchedule,
    TaskArrays,
    arrays_of,
    book,
    fits,
    new_state,
    start_times,
)
from partitioner.methods.placing import CHOOSERS, EARLIEST_START, FILL, Choice
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks

UNLIMITED = Settings()


def place_in_order(
    tasks: Tasks,
    order: Ints,
    choose: str | Callable[[Choice], int],
    *,
    insertion: bool = True,
    reserve: bool = True,
    settings: Settings = UNLIMITED,
) -> Found | None:
    """Place the tasks one by one and return the placement.

    Parameters
    ----------
    tasks
        The tasks.
    order
        Shape (n,): all tasks, producers before consumers.
    choose
        A name of :data:`partitioner.methods.placers.method.CHOOSERS`: ``"earliest_finish"``,
        ``"earliest_start"`` or ``"fill"`` (one device after another, none of them again), the lowest device
        among equals; or a function of a :class:`partitioner.methods.placers.method.Choice`.
    insertion, reserve
        See :class:`partitioner.methods.placers.task_arrays.TaskArrays`.
    settings
        Say when the run must end.

    Returns
    -------
    Found or None
        None if some task fits nowhere when its turn comes.

    Raises
    ------
    OptionError
        If the function returns no device that the task fits on.
    OutOfTimeError
        If the run should end before all tasks are placed.
    """
    arrays, state = arrays_of(tasks, reserve, insertion), new_state(tasks)
    previous = FIRST
    for portion in portions(tasks.n, settings):
        if isinstance(choose, str):
            previous = _place_all(arrays, state, order[portion], CHOOSERS[choose], previous)
        else:
            previous = _place_by(tasks, arrays, state, order[portion], choose, previous)
        if previous == NOWHERE:
            return None
    return found(state)


def found(state: PartialSchedule) -> Found:
    """Return the placement of a state in which all tasks are placed.

    A task that takes no time comes before one that starts at the same moment.
    """
    order = np.lexsort((np.arange(len(state.start)), state.finish, state.start))
    return Found(state.device, order, float(state.finish.max(initial=0.0)))


def _place_by(
    tasks: Tasks,
    arrays: TaskArrays,
    state: PartialSchedule,
    order: Ints,
    choose: Callable[[Choice], int],
    previous: int,
) -> int:
    """Place tasks by a user's function; return the last device, ``NOWHERE`` if some task fits nowhere."""
    previous = int(previous)
    for v in order.tolist():
        start = np.empty(len(tasks.limit))
        start_times(arrays, state, v, start)
        fitting = np.isfinite(start)
        if not fitting.any():
            return NOWHERE
        d = choose(Choice(tasks, v, fitting, start, start + tasks.time[:, v], previous))
        if (
            isinstance(d, bool)
            or not isinstance(d, int | np.integer)
            or not (0 <= d < len(fitting))
            or not fitting[d]
        ):
            rule = f"must return the number of a device on which task {v} fits"
            raise OptionError(f"choose of placer returned {shown(d)}: {rule}")
        book(arrays, state, v, int(d))
        previous = int(d)
    return previous


@njit(cache=True, nogil=True)
def _place_all(arrays: TaskArrays, state: PartialSchedule, order: Ints, rule: int, previous: int) -> int:
    """Place tasks by one of `CHOOSERS`; return the highest device so far, ``NOWHERE`` if one fits nowhere."""
    start = np.empty(len(state.room))
    for v in order:
        d = (
            _next_fit(arrays, state, v, previous)
            if rule == FILL
            else _earliest(arrays, state, v, rule, start)
        )
        if d == NOWHERE:
            return NOWHERE
        book(arrays, state, v, d)
        previous = max(previous, d)
    return previous


@njit(cache=True, inline="always")
def _earliest(arrays: TaskArrays, state: PartialSchedule, v: int, rule: int, start: Floats) -> int:
    """Return the device on which the task finishes, or starts, first; `start`, shape (D,), is overwritten."""
    start_times(arrays, state, v, start)
    best, chosen = np.inf, NOWHERE
    for d in range(len(start)):
        time = start[d] if rule == EARLIEST_START else start[d] + arrays.time[d, v]
        if time < best:
            best, chosen = time, d
    return chosen


@njit(cache=True, inline="always")
def _next_fit(arrays: TaskArrays, state: PartialSchedule, v: int, current: int) -> int:
    """Return the device of the task's group, or the first one, from `current` on, that the task fits on."""
    home = state.home[arrays.group[v]]
    if home != NOWHERE:
        return home if fits(arrays, state, v, home) else NOWHERE
    for d in range(current, len(state.room)):
        if fits(arrays, state, v, d):
            return d
    return NOWHERE
