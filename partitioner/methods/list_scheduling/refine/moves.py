"""Moves of groups between devices and of tasks in the order, and how they are undone."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.refine.walk import ROOM_FOR_MOVES, Walk
from partitioner.methods.list_scheduling.task_arrays import FIRST, NOWHERE, TaskArrays

RUN, SWAP, SHIFT, ANY = 0, 1, 2, 3
TRIES = 8  # attempts to find a group to exchange with
ONE: int = np.int64(1)  # type: ignore[assignment] # see FIRST
SETTLED: bool = np.bool_(False)  # type: ignore[assignment] # no group will leave the device


@njit(cache=True, nogil=True)
def propose(arrays: TaskArrays, walk: Walk, steps: int) -> tuple[int, int, int, int]:
    """Make a random move.

    Returns
    -------
    tuple
        The first place in the order from which times may change, or ``NOWHERE`` if nothing was moved; how
        many groups were moved; and the old and new place of a task that was shifted, or ``NOWHERE`` twice.
    """
    draw = np.random.random()
    kind = RUN if draw < 0.55 else SHIFT if draw < 0.8 else SWAP if draw < 0.9 else ANY
    at = np.random.randint(steps)
    v = walk.path[at] if kind != ANY else np.random.randint(len(walk.order))
    if kind == SHIFT:
        source, target = _shift(arrays, walk, v, walk.path[at + 1] if walk.waits[at] else NOWHERE)
        return (NOWHERE if source == target else min(source, target)), 0, source, target
    here, there = walk.device[v], _another(arrays, walk, v)
    if there == here:
        return NOWHERE, 0, NOWHERE, NOWHERE
    first, count = _move(arrays, walk, arrays.group[v], there, FIRST, kind == SWAP)
    if count and kind == SWAP:
        first, count = _exchange(arrays, walk, v, here, there, first)
    if count and kind == RUN:
        first, count = _follow(arrays, walk, at, steps, here, there, first)
    if count and (walk.room < 0.0).any():
        take_back(arrays, walk, count, NOWHERE, NOWHERE)
        count = 0
    return (first if count else NOWHERE), count, NOWHERE, NOWHERE


@njit(cache=True, nogil=True)
def _exchange(arrays: TaskArrays, walk: Walk, v: int, here: int, there: int, first: int) -> tuple[int, int]:
    """Move a group back from the new device of `v`; return the first place changed and the group count."""
    for _ in range(TRIES + 1):
        w = np.random.randint(len(walk.order))
        if walk.device[w] == there and arrays.group[w] != arrays.group[v]:
            other, count = _move(arrays, walk, arrays.group[w], here, ONE, SETTLED)
            return min(first, other), count
    return first, 1


@njit(cache=True, nogil=True)
def _follow(
    arrays: TaskArrays, walk: Walk, at: int, steps: int, here: int, there: int, first: int
) -> tuple[int, int]:
    """Also move the tasks on device `here` that come before on the critical path; see :func:`_exchange`."""
    count, length = ONE, 1
    while length < ROOM_FOR_MOVES and np.random.random() < 0.5:
        length *= 2
    for step in range(at + 1, min(at + length, steps)):
        w = walk.path[step]
        if count == ROOM_FOR_MOVES or walk.device[w] not in (here, there):
            break
        if walk.device[w] == here:
            other, count = _move(arrays, walk, arrays.group[w], there, count, SETTLED)
            first = min(first, other)
    return first, count


@njit(cache=True, nogil=True)
def _another(arrays: TaskArrays, walk: Walk, v: int) -> int:
    """Return a random device for a task: that of a producer or consumer, or any."""
    before, after = arrays.before_start[v], arrays.after_start[v]
    inputs, outputs = arrays.before_start[v + 1] - before, arrays.after_start[v + 1] - after
    if inputs + outputs and np.random.random() < 0.5:
        e = np.random.randint(inputs + outputs)
        return int(walk.device[arrays.before[before + e] if e < inputs else arrays.after[after + e - inputs]])
    return int(np.random.randint(len(walk.end)))


@njit(cache=True, nogil=True)
def _move(
    arrays: TaskArrays,
    walk: Walk,
    group: int,
    d: int,
    count: int,
    owing: bool,
) -> tuple[int, int]:
    """Move a group to a device if it may run there and fits; return the first place changed and the count.

    With `owing` the group need not fit yet, as another one will leave the device.
    """
    n = len(walk.order)
    size = arrays.group_size[group]
    if not arrays.group_allowed[d, group] or (size > walk.room[d] and not owing):
        return n, count
    first = n
    walk.moved[count], walk.origin[count] = group, walk.device[walk.members[walk.members_start[group]]]
    walk.room[walk.origin[count]] += size
    walk.room[d] -= size
    for i in range(walk.members_start[group], walk.members_start[group + 1]):
        walk.device[walk.members[i]] = d
        first = min(first, walk.place[walk.members[i]])
    return first, count + 1


@njit(cache=True, nogil=True)
def _shift(arrays: TaskArrays, walk: Walk, v: int, u: int) -> tuple[int, int]:
    """Exchange task `v` with the task `u` that it waits for on its device, or shift it in the order.

    `u` is ``NOWHERE`` if `v` waits for an input. Returned are the old and the new place of the task that was
    shifted.
    """
    low, high = _range(arrays, walk, v)
    source, target = walk.place[v], walk.place[v]
    if u != NOWHERE and np.random.random() < 0.6:
        if low <= walk.place[u]:
            target = walk.place[u]
        elif _range(arrays, walk, u)[1] >= walk.place[v]:
            source, target = walk.place[u], walk.place[v]
    else:
        target = low + np.random.randint(high - low + 1)
    _rotate(walk, source, target)
    return source, target


@njit(cache=True, nogil=True)
def _range(arrays: TaskArrays, walk: Walk, v: int) -> tuple[int, int]:
    """Return the first and the last place in the order between the producers and consumers of a task."""
    low, high = 0, len(walk.order) - 1
    for e in range(arrays.before_start[v], arrays.before_start[v + 1]):
        low = max(low, walk.place[arrays.before[e]] + 1)
    for e in range(arrays.after_start[v], arrays.after_start[v + 1]):
        high = min(high, walk.place[arrays.after[e]] - 1)
    return low, high


@njit(cache=True, nogil=True)
def _rotate(walk: Walk, source: int, target: int) -> None:
    """Move the task at place `source` of the order to place `target`."""
    v = walk.order[source]
    step = 1 if target > source else -1
    for i in range(source, target, step):
        walk.order[i] = walk.order[i + step]
        walk.place[walk.order[i]] = i
    walk.order[target] = v
    walk.place[v] = target


@njit(cache=True, nogil=True)
def take_back(
    arrays: TaskArrays,
    walk: Walk,
    count: int,
    source: int,
    target: int,
) -> None:
    """Undo a move of `count` groups and of the task shifted from `source` to `target`."""
    if source != NOWHERE:
        _rotate(walk, target, source)
    for k in range(count - 1, -1, -1):
        group, d = walk.moved[k], walk.origin[k]
        size = arrays.group_size[group]
        walk.room[walk.device[walk.members[walk.members_start[group]]]] += size
        walk.room[d] -= size
        for i in range(walk.members_start[group], walk.members_start[group + 1]):
            walk.device[walk.members[i]] = d
