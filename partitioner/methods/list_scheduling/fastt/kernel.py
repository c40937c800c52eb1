"""The loop of DPOS, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from partitioner.methods.list_scheduling.fastt.critical import OFF
from partitioner.methods.list_scheduling.ground import (
    NOWHERE,
    Ground,
    State,
    book,
    earliest_start,
    fits,
)
from partitioner.preprocess.problem import Floats, Ints


@njit(cache=True, nogil=True)
def place_all(
    ground: Ground, state: State, order: Ints, path: Ints, place: Ints, cutoff: float, tail: Floats
) -> bool:
    """Place everything; False if some task fits nowhere, or the cutoff is reached.

    Parameters
    ----------
    ground, state
        The tasks, and nothing placed.
    order
        All tasks, producers before consumers.
    path
        The critical path in the same order.
    place
        Shape (n,): where on the path each task is, or ``OFF``.
    cutoff, tail
        See :func:`partitioner.methods.list_scheduling.fastt.dpos.dpos`.
    """
    chosen = NOWHERE
    bound = np.zeros(len(state.home), dtype=np.int64)
    for v in order:
        home = state.home[ground.group[v]]
        if home != NOWHERE:
            d = home if fits(ground, state, v, home) else NOWHERE
        elif place[v] == OFF:
            d = _earliest_finish(ground, state, v)
        else:
            if chosen == NOWHERE or not fits(ground, state, v, chosen):
                chosen = _critical_device(ground, state, path[place[v] :], bound)
            d = chosen
        if d == NOWHERE:
            return False
        book(ground, state, v, d)
        if state.finish[v] + tail[v] >= cutoff:
            return False
    return True


@njit(cache=True, nogil=True)
def _earliest_finish(ground: Ground, state: State, v: int) -> int:
    """The device with room on which the task finishes first."""
    best, chosen = np.inf, NOWHERE
    for d in range(len(state.room)):
        if fits(ground, state, v, d):
            finish = earliest_start(ground, state, v, d) + ground.time[d, v]
            if finish < best:
                best, chosen = finish, d
    return chosen


@njit(cache=True, nogil=True)
def _critical_device(ground: Ground, state: State, rest: Ints, bound: Ints) -> int:
    """The device on which those of the remaining path that it holds take the least time on average."""
    best, most, chosen = np.inf, 0, NOWHERE
    for d in range(len(state.room)):
        count, total = _simulate(ground, state, rest, d, bound)
        if count == 0:
            continue
        mean = total / count
        if mean < best or (mean == best and count > most):
            best, most, chosen = mean, count, d
    return chosen


@njit(cache=True, nogil=True)
def _simulate(ground: Ground, state: State, rest: Ints, d: int, bound: Ints) -> tuple[int, float]:
    """How many tasks of the remaining path the device holds, in order, and the time that they take.

    Tasks whose group has another device already are passed over. `bound` is for marks, all 0, and is so
    again in the end.
    """
    room, count, total = state.room[d], 0, 0.0
    stop = len(rest)
    for i in range(len(rest)):
        v = rest[i]
        g = ground.group[v]
        home = state.home[g]
        if home != NOWHERE and home != d:
            continue
        need = 0.0 if ground.reserve else ground.size[v]
        if home == NOWHERE and bound[g] == 0:
            if not ground.group_allowed[d, g] or ground.group_size[g] > room:
                stop = i
                break
            need = ground.group_size[g] if ground.reserve else ground.size[v]
        if need > room:
            stop = i
            break
        bound[g] = 1
        room, count, total = room - need, count + 1, total + ground.time[d, v]
    for i in range(stop):
        bound[ground.group[rest[i]]] = 0
    return count, total
