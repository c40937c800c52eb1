"""The main loop of DPOS, compiled."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.fastt.critical import OFF
from partitioner.methods.list_scheduling.task_arrays import (
    NOWHERE,
    PartialSchedule,
    TaskArrays,
    add_slot,
    book,
    fill_slot,
    first_slot,
    ready_time,
)
from partitioner.problem.arrays import Floats, Ints


@njit(cache=True, nogil=True)
def place_all(
    arrays: TaskArrays,
    state: PartialSchedule,
    order: Ints,
    path: Ints,
    place: Ints,
    cutoff: float,
    tail: Floats,
) -> bool:
    """Place all tasks; return False if some task fits nowhere, or the cutoff is reached.

    Parameters
    ----------
    arrays, state
        The tasks, and a schedule in which nothing is placed.
    order
        All tasks, producers before consumers.
    path
        The critical path in the same order.
    place
        Shape (n,): the place of each task on the path, or ``OFF``.
    cutoff, tail
        See :func:`partitioner.methods.list_scheduling.fastt.dpos.dpos`.
    """
    # Arrays by name: taking them out of the tuples for every task would take most of the time.
    size, group, group_size, allowed = arrays.size, arrays.group, arrays.group_size, arrays.group_allowed
    home, room, reserve, contention = state.home, state.room, arrays.reserve, arrays.contention
    time, device, finish, end = arrays.time, state.device, state.finish, state.end
    before_start, before, before_tensor = arrays.before_start, arrays.before, arrays.before_tensor
    cost, slope, intercept = arrays.cost, arrays.slope, arrays.intercept
    start, idle_from, idle_to, idle_count = state.start, state.idle_from, state.idle_to, state.idle_count
    bound, ready, chosen = np.zeros(len(home), dtype=np.int64), np.zeros(len(room)), NOWHERE
    for v in order:
        g, free, low, high = group[v], home[group[v]] == NOWHERE, 0, len(room)
        if free and place[v] != OFF:
            if chosen == NOWHERE or not allowed[chosen, g] or group_size[g] > room[chosen]:
                chosen = _critical_device(arrays, state, path[place[v] :], bound)
                if chosen == NOWHERE:
                    return False
            low, high = chosen, chosen + 1
        elif not free:
            low, high = home[g], home[g] + 1
            if not reserve and size[v] > room[low]:
                return False
        if contention:
            for d in range(low, high):
                ready[d] = ready_time(arrays, state, v, d)
        else:
            ready[low:high] = 0.0
            for e in range(before_start[v], before_start[v + 1]):
                u = before[e]
                source, made, amount = device[u], finish[u], cost[before_tensor[e]]
                for d in range(low, high):
                    ready[d] = max(ready[d], made + (slope[source, d] * amount + intercept[source, d]))
        begin, best, to = 0.0, np.inf, NOWHERE
        for d in range(low, high):
            length = time[d, v]
            if ready[d] + length >= best or (free and (group_size[g] > room[d] or not allowed[d, g])):
                continue
            count = idle_count[d] if ready[d] < end[d] else 0
            earliest = max(ready[d], end[d])
            if count and ready[d] <= idle_to[d, count - 1]:
                earliest = first_slot(idle_from, idle_to, d, count, ready[d], length, end[d])
            if earliest + length < best:
                begin, best, to = earliest, earliest + length, d
        if to == NOWHERE:
            return False
        if contention:
            book(arrays, state, v, to)
        else:
            if not reserve:
                room[to] -= size[v]
            elif free:
                room[to] -= group_size[g]
            home[g], device[v], start[v], finish[v] = to, to, begin, best
            if begin < end[to]:
                fill_slot(idle_from, idle_to, idle_count, to, begin, best)
            else:
                if begin > end[to]:
                    add_slot(idle_from, idle_to, idle_count, to, idle_count[to], end[to], begin)
                end[to] = best
        if finish[v] + tail[v] >= cutoff:
            return False
    return True


@njit(cache=True, nogil=True)
def _critical_device(arrays: TaskArrays, state: PartialSchedule, rest: Ints, bound: Ints) -> int:
    """Return the device on which the tasks of `rest` that it can hold take the least time on average."""
    best, most, chosen = np.inf, 0, NOWHERE
    for d in range(len(state.room)):
        count, total = _simulate(arrays, state, rest, d, bound)
        if count == 0:
            continue
        mean = total / count
        if mean < best or (mean == best and count > most):
            best, most, chosen = mean, count, d
    return chosen


@njit(cache=True, nogil=True)
def _simulate(
    arrays: TaskArrays, state: PartialSchedule, rest: Ints, d: int, bound: Ints
) -> tuple[int, float]:
    """Return how many tasks of the remaining path the device can hold, in order, and the time they take.

    Tasks whose group is already on another device are left out. `bound`, shape (groups,), is scratch space
    of zeros, and is returned to zeros.
    """
    room, count, total = state.room[d], 0, 0.0
    stop = len(rest)
    for i in range(len(rest)):
        v = rest[i]
        g = arrays.group[v]
        home = state.home[g]
        if home != NOWHERE and home != d:
            continue
        need = 0.0 if arrays.reserve else arrays.size[v]
        if home == NOWHERE and bound[g] == 0:
            if not arrays.group_allowed[d, g] or arrays.group_size[g] > room:
                stop = i
                break
            need = arrays.group_size[g] if arrays.reserve else arrays.size[v]
        if need > room:
            stop = i
            break
        bound[g] = 1
        room, count, total = room - need, count + 1, total + arrays.time[d, v]
    for i in range(stop):
        bound[arrays.group[rest[i]]] = 0
    return count, total
