"""The loop of DPOS, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from partitioner.methods.list_scheduling.fastt.critical import OFF
from partitioner.methods.list_scheduling.ground import (
    NOWHERE,
    Ground,
    State,
    arrives,
    book,
    fill_slot,
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
    bound, ready = np.zeros(len(state.home), dtype=np.int64), np.zeros(len(state.room))
    for v in order:
        home = state.home[ground.group[v]]
        if home != NOWHERE:
            d = home if ground.reserve or ground.size[v] <= state.room[home] else NOWHERE
        elif place[v] == OFF:
            _ready_times(ground, state, v, ready)
            d = _earliest_finish(ground, state, v, ready)
        else:
            if chosen == NOWHERE or not fits(ground, state, v, chosen):
                chosen = _critical_device(ground, state, path[place[v] :], bound)
            d = chosen
        if d == NOWHERE:
            return False
        if ground.contention:
            book(ground, state, v, d)
        else:
            if home != NOWHERE or place[v] != OFF:
                ready[d] = _ready_time(ground, state, v, d)
            _book(ground, state, v, d, ready[d])
        if state.finish[v] + tail[v] >= cutoff:
            return False
    return True


@njit(cache=True, nogil=True, inline="always")
def _earliest_finish(ground: Ground, state: State, v: int, ready: Floats) -> int:
    """The device with room on which the task finishes first, its inputs being there when `ready` says.

    As :func:`fits` and :func:`earliest_start` have it, device by device; here in one loop, since this is
    where the time goes.
    """
    g, best, chosen = ground.group[v], np.inf, NOWHERE
    need = ground.group_size[g]
    for d in range(len(ready)):
        length = ground.time[d, v]
        if ready[d] + length >= best or need > state.room[d] or not ground.group_allowed[d, g]:
            continue
        finish = _first_gap(state, d, ready[d], length) + length
        if finish < best:
            best, chosen = finish, d
    return chosen


@njit(cache=True, nogil=True, inline="always")
def _ready_times(ground: Ground, state: State, v: int, ready: Floats) -> None:
    """When all inputs of the task are on each device."""
    ready[:] = 0.0
    for e in range(ground.before_start[v], ground.before_start[v + 1]):
        u, tensor = ground.before[e], ground.before_tensor[e]
        source, finish, cost = state.device[u], state.finish[u], ground.cost[tensor]
        for d in range(len(ready)):
            if ground.contention:
                arrival = arrives(ground, state, u, tensor, d)
            else:
                arrival = finish + (ground.slope[source, d] * cost + ground.intercept[source, d])
            ready[d] = max(ready[d], arrival)


@njit(cache=True, nogil=True, inline="always")
def _ready_time(ground: Ground, state: State, v: int, d: int) -> float:
    """When all inputs of the task are on device `d`, without contention."""
    ready = 0.0
    for e in range(ground.before_start[v], ground.before_start[v + 1]):
        u, source = ground.before[e], state.device[ground.before[e]]
        length = ground.slope[source, d] * ground.cost[ground.before_tensor[e]] + ground.intercept[source, d]
        ready = max(ready, state.finish[u] + length)
    return ready


@njit(cache=True, nogil=True, inline="always")
def _book(ground: Ground, state: State, v: int, d: int, ready: float) -> None:
    """As :func:`book` without contention, once it is known when the inputs are there."""
    g, length = ground.group[v], ground.time[d, v]
    if not ground.reserve:
        state.room[d] -= ground.size[v]
    elif state.home[g] == NOWHERE:
        state.room[d] -= ground.group_size[g]
    state.home[g] = d
    begin, end = _first_gap(state, d, ready, length), state.end[d]
    state.device[v], state.start[v], state.finish[v] = d, begin, begin + length
    if begin < end:
        fill_slot(state.idle_from, state.idle_to, state.idle_count, d, begin, begin + length)
        return
    if begin > end:
        count = state.idle_count[d]
        state.idle_from[d, count], state.idle_to[d, count] = end, begin
        state.idle_count[d] = count + 1
    state.end[d] = begin + length


@njit(cache=True, nogil=True, inline="always")
def _first_gap(state: State, d: int, ready: float, length: float) -> float:
    """The start in the first idle slot that is long enough, or at the end."""
    start = max(ready, state.end[d])
    count = state.idle_count[d]
    if count and ready <= state.idle_to[d, count - 1]:
        first = np.searchsorted(state.idle_to[d, :count], ready)
        for i in range(first, count):
            begin = max(ready, state.idle_from[d, i])
            if begin + length <= state.idle_to[d, i]:
                start = begin
                break
    return float(start)


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
