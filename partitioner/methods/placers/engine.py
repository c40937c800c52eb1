"""Placement of tasks in a fixed order, each on the device that a rule chooses.

The rules are those of :data:`partitioner.methods.placing.CHOOSERS` and the two of Celeritas: ``FILL_UP`` and
``ADJUST``. One kernel has them all.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import numpy as np

from partitioner.base.compiled import njit
from partitioner.base.errors import OptionError, shown
from partitioner.methods.method import Settings
from partitioner.methods.placers.found import Found, portions
from partitioner.methods.placers.task_arrays import (
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
NO_TIMES: Floats = np.empty(0)
FILL_UP, ADJUST = len(CHOOSERS), len(CHOOSERS) + 1


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
    if isinstance(choose, str):
        ended = place_by_rule(arrays, state, order, CHOOSERS[choose], settings=settings)
    else:
        ended = _place_by(tasks, arrays, state, order, choose, settings)
    return found(state) if ended == NOWHERE else None


def found(state: PartialSchedule) -> Found:
    """Return the placement of a state in which all tasks are placed.

    A task that takes no time comes before one that starts at the same moment.
    """
    order = np.lexsort((np.arange(len(state.start)), state.finish, state.start))
    return Found(state.device, order, float(state.finish.max(initial=0.0)))


def place_by_rule(
    arrays: TaskArrays,
    state: PartialSchedule,
    order: Ints,
    rule: int,
    back: Floats = NO_TIMES,
    settings: Settings = UNLIMITED,
) -> int:
    """Place the tasks one by one by a rule of this module or of :data:`CHOOSERS`.

    Parameters
    ----------
    arrays, state
        The tasks, and a schedule in which nothing is placed.
    order
        Shape (n,): all tasks, producers before consumers.
    rule
        The rule.
    back
        Shape (n,): for ``ADJUST``, how much earlier a task must end on another device to leave that of the
        task before it.
    settings
        Say when the run must end.

    Returns
    -------
    int
        The first task that fits nowhere; ``NOWHERE`` if all are placed.
    """
    current, start = np.zeros(1, dtype=np.int64), np.empty(len(state.room))
    for portion in portions(len(order), settings):
        ended = int(_place_all(arrays, state, order[portion], rule, back, current, start))
        if ended != NOWHERE:
            return ended
    return NOWHERE


def _place_by(
    tasks: Tasks,
    arrays: TaskArrays,
    state: PartialSchedule,
    order: Ints,
    choose: Callable[[Choice], int],
    settings: Settings,
) -> int:
    """Place tasks by a user's function; return the first that fits nowhere, or ``NOWHERE``."""
    previous, start = 0, np.empty(len(tasks.limit))
    for v in chain.from_iterable(order[portion].tolist() for portion in portions(tasks.n, settings)):
        start_times(arrays, state, v, start)
        fitting = np.isfinite(start)
        if not fitting.any():
            return int(v)
        d = choose(Choice(tasks, v, fitting, start.copy(), start + tasks.time[:, v], previous))
        if (
            isinstance(d, bool)
            or not isinstance(d, int | np.integer)
            or not (0 <= d < len(fitting))
            or not fitting[d]
        ):
            rule = f"must return the number of a device on which task {v} fits"
            raise OptionError(f"choose of placer returned {shown(d)}: {rule}")
        previous = int(d)
        book(arrays, state, v, previous)
    return NOWHERE


@njit(cache=True, nogil=True, _nrt=False)
def _place_all(
    arrays: TaskArrays,
    state: PartialSchedule,
    order: Ints,
    rule: int,
    back: Floats,
    current: Ints,
    start: Floats,
) -> int:
    """Place tasks by a rule; return the first that fits nowhere, or ``NOWHERE``.

    `current`, shape (1,), is the device of the task before, or the one to be filled; `start`, shape (D,), is
    scratch space.
    """
    for v in order:
        chosen = NOWHERE
        if rule in (FILL, FILL_UP):
            chosen = _filled(arrays, state, v, rule, current)
        else:
            start_times(arrays, state, v, start)
            best, previous = np.inf, current[0]
            for d in range(len(start)):
                time = start[d] if rule == EARLIEST_START else start[d] + arrays.time[d, v]
                if time < best:
                    best, chosen = time, d
            if rule == ADJUST and start[previous] < np.inf:
                later = arrays.time[previous, v] - arrays.time[chosen, v]
                if (start[previous] - start[chosen]) + later <= back[v]:
                    chosen = previous
            current[0] = chosen
        if chosen == NOWHERE:
            return int(v)
        book(arrays, state, v, chosen)
    return int(NOWHERE)


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def _filled(arrays: TaskArrays, state: PartialSchedule, v: int, rule: int, current: Ints) -> int:
    """Return the device of a task by ``FILL`` or ``FILL_UP``, or ``NOWHERE``; `current` is moved on."""
    g = arrays.group[v]
    if state.home[g] == NOWHERE:
        for d in range(current[0], len(state.room)):
            if fits(arrays, state, v, d):
                if rule == FILL:
                    current[0] = d
                return d
            if rule == FILL_UP and d == current[0] and arrays.group_allowed[d, g]:
                current[0] += 1
        if rule == FILL:
            return int(NOWHERE)
    # the device of its group, or the one with the most memory left
    chosen = NOWHERE
    for d in range(len(state.room)):
        if fits(arrays, state, v, d) and (chosen == NOWHERE or state.room[d] > state.room[chosen]):
            chosen = d
    return int(chosen)
