"""Annealing on the makespan: the moves, what they lead to, and how they are taken back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from partitioner.graph import Bools
from partitioner.methods.list_scheduling.ground import FIRST, NOWHERE, Ground, State
from partitioner.methods.list_scheduling.timing import run_eagerly
from partitioner.preprocess.problem import Floats, Ints

ROUNDING = 1 + 1e-12
RUN, SWAP, SHIFT, ANY = 0, 1, 2, 3
ROOM_FOR_MOVES = 64


class Walk(NamedTuple):
    """Where a search is.

    Parameters
    ----------
    device, order, place
        Shape (n,): the device of every task, all tasks in a topological order, and where each is in it.
    finish, trial
        Shape (n,): when each task ends, and when it would with the move that is tried.
    end
        Shape (D,): when each device is free, while it is timed.
    room
        Shape (D,): memory that is left.
    path, waits
        Shape (n,): the critical path from its end, and whether each of its tasks waits for the task before
        it on its device (else for an input).
    moved, origin
        Shape (ROOM_FOR_MOVES,): the groups that the move has moved, and where each was.
    members_start, members
        The tasks of every group.
    tail
        Shape (n,): what must follow each task at least.
    """

    device: Ints
    order: Ints
    place: Ints
    finish: Floats
    trial: Floats
    end: Floats
    room: Floats
    path: Ints
    waits: Bools
    moved: Ints
    origin: Ints
    members_start: Ints
    members: Ints
    tail: Floats


@njit(cache=True, nogil=True)
def anneal(
    ground: Ground,
    state: State,
    walk: Walk,
    best_device: Ints,
    best_order: Ints,
    best: float,
    heat: Floats,
    seed: int,
) -> float:
    """Try one move for every temperature in `heat`; the best that is met is kept.

    Parameters
    ----------
    ground, state
        The tasks, and where the timing with contention works.
    walk
        Where the search is; it goes on from there.
    best_device, best_order, best
        The best so far, and its makespan.
    heat
        The temperatures, in the unit of time.
    seed
        Of everything random.

    Returns
    -------
    float
        The makespan of the best.
    """
    np.random.seed(seed)
    _sort_by_start(ground, walk)
    value = _time(ground, state, walk, FIRST, np.inf)[0]
    walk.finish[:] = walk.trial
    steps = _trace(ground, state, walk)
    for temperature in heat:
        most = (value - temperature * np.log(1.0 - np.random.random())) * ROUNDING
        first, count, source, target = _propose(ground, walk, steps)
        if first == NOWHERE:
            continue
        reached, until = _time(ground, state, walk, first, most)
        if reached > most:
            for i in range(first, until):
                walk.trial[walk.order[i]] = walk.finish[walk.order[i]]
            _take_back(ground, walk, count, source, target)
            continue
        value = reached
        walk.finish[:] = walk.trial
        steps = _trace(ground, state, walk)
        if value < best:
            best = value
            best_device[:] = walk.device
            best_order[:] = walk.order
    return best


@njit(cache=True, nogil=True)
def _time(ground: Ground, state: State, walk: Walk, first: int, most: float) -> tuple[float, int]:
    """The makespan, and up to where times were written; infinity as soon as it is known to exceed `most`.

    Without contention only what comes from place `first` on can have changed.
    """
    n = len(walk.order)
    if ground.contention:
        _time_eagerly(ground, state, walk)
        return walk.trial.max(), n
    walk.end[:] = 0.0
    last = 0.0
    for i in range(first):
        v = walk.order[i]
        walk.end[walk.device[v]] = walk.trial[v]
        last = max(last, walk.trial[v])
    for i in range(first, n):
        v = walk.order[i]
        d = walk.device[v]
        begin = walk.end[d]
        for e in range(ground.before_start[v], ground.before_start[v + 1]):
            begin = max(begin, _arrival(ground, state, walk, e, d))
        finish = begin + ground.time[d, v]
        walk.trial[v] = walk.end[d] = finish
        if finish + walk.tail[v] > most:
            return np.inf, i + 1
        last = max(last, finish)
    return last, n


@njit(cache=True, nogil=True)
def _arrival(ground: Ground, state: State, walk: Walk, e: int, d: int) -> float:
    """When the input along edge `e` is on device `d`."""
    u = ground.before[e]
    source = walk.device[u]
    if source == d:
        return float(walk.trial[u])
    tensor = ground.before_tensor[e]
    if ground.contention:
        return float(state.arrival[tensor, d])
    length = ground.slope[source, d] * ground.cost[tensor] + ground.intercept[source, d]
    return float(walk.trial[u] + length)


@njit(cache=True, nogil=True)
def _time_eagerly(ground: Ground, state: State, walk: Walk) -> None:
    """With contention: everything anew."""
    n = len(walk.order)
    following, head = np.full(n, NOWHERE), np.full(len(walk.end), NOWHERE)
    for i in range(n - 1, -1, -1):
        v = walk.order[i]
        following[v] = head[walk.device[v]]
        head[walk.device[v]] = v
    state.device[:] = walk.device
    state.end[:] = 0.0
    state.channel[:] = 0.0
    state.arrival[:] = np.inf
    run_eagerly(ground, state, walk.order, following, head)
    walk.trial[:] = state.finish


@njit(cache=True, nogil=True)
def _sort_by_start(ground: Ground, walk: Walk) -> None:
    """Order the tasks by their starts, rounded so that none comes before what it waits for.

    What starts at once stays in its order.
    """
    n = len(walk.order)
    start, in_order = np.empty(n), np.empty(n)
    walk.end[:] = 0.0
    for i in range(n):
        v = walk.order[i]
        d = walk.device[v]
        start[v] = max(walk.end[d], walk.finish[v] - ground.time[d, v])
        for e in range(ground.before_start[v], ground.before_start[v + 1]):
            start[v] = max(start[v], start[ground.before[e]])
        walk.end[d] = in_order[i] = start[v]
    walk.order[:] = walk.order[np.argsort(in_order, kind="mergesort")]
    for i in range(n):
        walk.place[walk.order[i]] = i


@njit(cache=True, nogil=True)
def _trace(ground: Ground, state: State, walk: Walk) -> int:
    """Follow the critical path back from the last task to end; its length."""
    previous = np.full(len(walk.order), NOWHERE)
    latest = np.full(len(walk.end), NOWHERE)
    v = walk.order[0]
    for u in walk.order:
        previous[u] = latest[walk.device[u]]
        latest[walk.device[u]] = u
        if walk.trial[u] > walk.trial[v]:
            v = u
    steps = 0
    while v != NOWHERE:
        d, before = walk.device[v], previous[v]
        begin = walk.trial[before] if before != NOWHERE else 0.0
        walk.path[steps], walk.waits[steps] = v, before != NOWHERE
        for e in range(ground.before_start[v], ground.before_start[v + 1]):
            arrival = _arrival(ground, state, walk, e, d)
            if arrival > begin or (arrival == begin and begin > 0.0 and np.random.random() < 0.5):
                begin, before, walk.waits[steps] = arrival, ground.before[e], False
        walk.waits[steps] &= begin > 0.0
        steps += 1
        v = before if begin > 0.0 else NOWHERE
    return steps


@njit(cache=True, nogil=True)
def _propose(ground: Ground, walk: Walk, steps: int) -> tuple[int, int, int, int]:
    """Make a move at random.

    Returns
    -------
    tuple
        The first place from which times may change, or ``NOWHERE`` if nothing was moved; how many groups
        were moved; and from where to where a task was shifted in the order, or ``NOWHERE``.
    """
    draw = np.random.random()
    kind = RUN if draw < 0.55 else SHIFT if draw < 0.8 else SWAP if draw < 0.9 else ANY
    at = np.random.randint(steps)
    v = walk.path[at] if kind != ANY else np.random.randint(len(walk.order))
    if kind == SHIFT:
        source, target = _shift(ground, walk, v, walk.path[at + 1] if walk.waits[at] else NOWHERE)
        return (NOWHERE if source == target else min(source, target)), 0, source, target
    here = walk.device[v]
    there = _another(ground, walk, v)
    if there == here:
        return NOWHERE, 0, NOWHERE, NOWHERE
    first, count = _move(ground, walk, ground.group[v], there, 0, kind == SWAP)
    if count and kind == SWAP:
        w = np.random.randint(len(walk.order))
        for _ in range(8):
            if walk.device[w] == there and ground.group[w] != ground.group[v]:
                break
            w = np.random.randint(len(walk.order))
        if walk.device[w] == there and ground.group[w] != ground.group[v]:
            other, count = _move(ground, walk, ground.group[w], here, count, False)
            first = min(first, other)
    if count and kind == RUN:
        length = 1
        while length < ROOM_FOR_MOVES and np.random.random() < 0.5:
            length *= 2
        for step in range(at + 1, min(at + length, steps)):
            if count == ROOM_FOR_MOVES or walk.device[walk.path[step]] not in (here, there):
                break
            if walk.device[walk.path[step]] == here:
                group = ground.group[walk.path[step]]
                other, count = _move(ground, walk, group, there, count, False)
                first = min(first, other)
    if count and (walk.room < 0.0).any():
        _take_back(ground, walk, count, NOWHERE, NOWHERE)
        count = 0
    return (first if count else NOWHERE), count, NOWHERE, NOWHERE


@njit(cache=True, nogil=True)
def _another(ground: Ground, walk: Walk, v: int) -> int:
    """A device for a task: that of a neighbour, or any."""
    before, after = ground.before_start[v], ground.after_start[v]
    inputs, outputs = ground.before_start[v + 1] - before, ground.after_start[v + 1] - after
    if inputs + outputs and np.random.random() < 0.5:
        e = np.random.randint(inputs + outputs)
        return int(walk.device[ground.before[before + e] if e < inputs else ground.after[after + e - inputs]])
    return int(np.random.randint(len(walk.end)))


@njit(cache=True, nogil=True)
def _move(
    ground: Ground,
    walk: Walk,
    group: int,
    d: int,
    count: int,
    owing: bool,
) -> tuple[int, int]:
    """Move a group to a device if it may run there and fits, or if the room may be owed for a while."""
    n = len(walk.order)
    size = ground.group_size[group]
    if not ground.group_allowed[d, group] or (size > walk.room[d] and not owing):
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
def _shift(ground: Ground, walk: Walk, v: int, u: int) -> tuple[int, int]:
    """Exchange a task with the one that it waits for on its device, or shift it between its neighbours.

    `u` is that other task, or ``NOWHERE``. From where to where something was shifted is returned.
    """
    low, high = _range(ground, walk, v)
    source, target = walk.place[v], walk.place[v]
    if u != NOWHERE and np.random.random() < 0.6:
        if low <= walk.place[u]:
            target = walk.place[u]
        elif _range(ground, walk, u)[1] >= walk.place[v]:
            source, target = walk.place[u], walk.place[v]
    else:
        target = low + np.random.randint(high - low + 1)
    _rotate(walk, source, target)
    return source, target


@njit(cache=True, nogil=True)
def _range(ground: Ground, walk: Walk, v: int) -> tuple[int, int]:
    """The first and the last place of the order that a task could have."""
    low, high = 0, len(walk.order) - 1
    for e in range(ground.before_start[v], ground.before_start[v + 1]):
        low = max(low, walk.place[ground.before[e]] + 1)
    for e in range(ground.after_start[v], ground.after_start[v + 1]):
        high = min(high, walk.place[ground.after[e]] - 1)
    return low, high


@njit(cache=True, nogil=True)
def _rotate(walk: Walk, source: int, target: int) -> None:
    """Take the task at one place of the order and put it at another."""
    v = walk.order[source]
    step = 1 if target > source else -1
    for i in range(source, target, step):
        walk.order[i] = walk.order[i + step]
        walk.place[walk.order[i]] = i
    walk.order[target] = v
    walk.place[v] = target


@njit(cache=True, nogil=True)
def _take_back(
    ground: Ground,
    walk: Walk,
    count: int,
    source: int,
    target: int,
) -> None:
    """Undo a move."""
    if source != NOWHERE:
        _rotate(walk, target, source)
    for k in range(count - 1, -1, -1):
        group, d = walk.moved[k], walk.origin[k]
        size = ground.group_size[group]
        walk.room[walk.device[walk.members[walk.members_start[group]]]] += size
        walk.room[d] -= size
        for i in range(walk.members_start[group], walk.members_start[group + 1]):
            walk.device[walk.members[i]] = d
