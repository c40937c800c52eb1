"""The arrays and steps of the compiled list schedulers: the tasks, the state of the devices, booking."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks
from partitioner.workload.graph import Bools

# Not Python ints: numba has other types for these and would compile every kernel once more for them.
FIRST: int = np.int64(0)  # type: ignore[assignment]
NOWHERE: int = np.int64(-1)  # type: ignore[assignment]


class TaskArrays(NamedTuple):
    """The tasks and devices in arrays, which do not change; see :class:`partitioner.problem.tasks.Tasks`.

    Parameters
    ----------
    reserve
        Whether the first task of a group takes the memory of the whole group.
    insertion
        Whether tasks may start in idle slots between two others.
    """

    time: Floats
    size: Floats
    group: Ints
    group_size: Floats
    group_allowed: Bools
    before_start: Ints
    before: Ints
    before_tensor: Ints
    after_start: Ints
    after: Ints
    after_tensor: Ints
    cost: Floats
    slope: Floats
    intercept: Floats
    contention: bool
    reserve: bool
    insertion: bool


class PartialSchedule(NamedTuple):
    """The tasks placed so far, with their times, and what is left of the devices.

    Parameters
    ----------
    device, start, finish
        Shape (n,): the device of every task, or ``NOWHERE``, and when it starts and ends.
    room
        Shape (D,): memory that is left on each device.
    home
        Shape (groups,): the device of every group, or ``NOWHERE``.
    end
        Shape (D,): when the last task of each device ends.
    idle_from, idle_to, idle_count
        Shapes (D, n), (D, n), (D,): begin, end and number of the idle slots before `end`, in order of time.
    arrival
        Shape (T, D): with contention, when each tensor arrives on each device; infinity if it was not sent.
    channel
        Shape (D,): with contention, from when on the channel of each device is free.
    """

    device: Ints
    start: Floats
    finish: Floats
    room: Floats
    home: Ints
    end: Floats
    idle_from: Floats
    idle_to: Floats
    idle_count: Ints
    arrival: Floats
    channel: Floats


def arrays_of(tasks: Tasks, reserve: bool = True, insertion: bool = True) -> TaskArrays:
    """Return the tasks as the compiled loops read them."""
    return TaskArrays(
        time=tasks.time,
        size=tasks.size,
        group=tasks.group,
        group_size=tasks.group_size,
        group_allowed=tasks.group_allowed,
        before_start=tasks.before.start,
        before=tasks.before.items,
        before_tensor=tasks.before_tensor,
        after_start=tasks.after.start,
        after=tasks.after.items,
        after_tensor=tasks.after_tensor,
        cost=tasks.cost,
        slope=tasks.slope,
        intercept=tasks.intercept,
        contention=tasks.contention,
        reserve=reserve,
        insertion=insertion,
    )


def new_state(tasks: Tasks) -> PartialSchedule:
    """Return a schedule in which nothing is placed."""
    tensors = len(tasks.cost) if tasks.contention else 0
    state: PartialSchedule = empty_state(tasks.limit, tasks.n, len(tasks.group_size), tensors)
    return state


@njit(cache=True, nogil=True)
def empty_state(limit: Floats, n: int, groups: int, tensors: int) -> PartialSchedule:
    """Return an empty schedule of `n` tasks in `groups` groups; `tensors` is 0 without contention."""
    d = len(limit)
    return PartialSchedule(
        np.full(n, NOWHERE),
        np.zeros(n),
        np.zeros(n),
        limit.copy(),
        np.full(groups, NOWHERE),
        np.zeros(d),
        np.empty((d, n + 1)),
        np.empty((d, n + 1)),
        np.zeros(d, dtype=np.int64),
        np.full((tensors, d), np.inf),
        np.zeros(d),
    )


@njit(cache=True, nogil=True)
def fits(arrays: TaskArrays, state: PartialSchedule, v: int, d: int) -> bool:
    """Whether task `v` may go to device `d`, by its group, the memory that is left, and the kind."""
    g = arrays.group[v]
    if state.home[g] == NOWHERE:
        return bool(arrays.group_allowed[d, g] and arrays.group_size[g] <= state.room[d])
    return bool(state.home[g] == d and (arrays.reserve or arrays.size[v] <= state.room[d]))


@njit(cache=True, inner=True)
def arrives(arrays: TaskArrays, state: PartialSchedule, u: int, tensor: int, d: int) -> float:
    """Return when the tensor that task `u` makes is on device `d`, if it is sent as soon as possible.

    With contention, as in Baechi, the transfer takes the sender's channel as soon as that is free, and then
    the receiver's as soon as that is free. A transfer that takes no time needs no channel.
    """
    source = state.device[u]
    if source == d:
        return float(state.finish[u])
    length = arrays.slope[source, d] * arrays.cost[tensor] + arrays.intercept[source, d]
    if not arrays.contention or length == 0.0:
        return float(state.finish[u] + length)
    if state.arrival[tensor, d] < np.inf:
        return float(state.arrival[tensor, d])
    sent = max(state.finish[u], state.channel[source])
    return float(max(sent, state.channel[d]) + length)


@njit(cache=True, inner=True)
def ready_time(arrays: TaskArrays, state: PartialSchedule, v: int, d: int) -> float:
    """Return when all inputs of task `v` are on device `d`, each transfer as if it were the only one."""
    ready = 0.0
    for e in range(arrays.before_start[v], arrays.before_start[v + 1]):
        ready = max(ready, arrives(arrays, state, arrays.before[e], arrays.before_tensor[e], d))
    return ready


@njit(cache=True, nogil=True)
def earliest_start(arrays: TaskArrays, state: PartialSchedule, v: int, d: int) -> float:
    """Return when task `v` could start on device `d`: in the first idle slot long enough, or at its end."""
    ready, end = ready_time(arrays, state, v, d), state.end[d]
    count = state.idle_count[d] if arrays.insertion and ready < end else 0
    return float(first_slot(state.idle_from, state.idle_to, d, count, ready, arrays.time[d, v], end))


@njit(cache=True, nogil=True)
def start_times(arrays: TaskArrays, state: PartialSchedule, v: int, start: Floats) -> None:
    """Write :func:`earliest_start` on every device, infinity where the task does not fit, to `start`, (D,).

    This is much faster than one call for each device, because a call that is given all arrays takes long.
    """
    for d in range(len(start)):
        start[d] = ready_time(arrays, state, v, d)
    g = arrays.group[v]
    home, whole = state.home[g], arrays.group_size[g]
    needs = 0.0 if arrays.reserve else arrays.size[v]
    for d in range(len(start)):
        room, ready, end = state.room[d], start[d], state.end[d]
        if (home == d and needs <= room) or (
            home == NOWHERE and whole <= room and arrays.group_allowed[d, g]
        ):
            count = state.idle_count[d] if arrays.insertion and ready < end else 0
            length = arrays.time[d, v]
            start[d] = first_slot(state.idle_from, state.idle_to, d, count, ready, length, end)
        else:
            start[d] = np.inf


@njit(cache=True, inner=True)
def _passed(times: Floats, count: int, limit: float, also_at: bool) -> int:
    """Return how many of the first `count` rising times are before a limit, or also at it."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < limit or (also_at and times[middle] == limit):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, inner=True)
def first_slot(
    idle_from: Floats, idle_to: Floats, d: int, count: int, ready: float, length: float, end: float
) -> float:
    """Return the start in the first of `count` idle slots that is long enough, or at the end."""
    for i in range(_passed(idle_to[d], count, ready, False), count):
        begin = max(ready, idle_from[d, i])
        if begin + length <= idle_to[d, i]:
            return float(begin)
    return float(max(ready, end))


@njit(cache=True, nogil=True)
def book(arrays: TaskArrays, state: PartialSchedule, v: int, d: int) -> None:
    """Place task `v` on device `d` and start it as early as it can; with contention send its inputs."""
    g = arrays.group[v]
    if state.home[g] == NOWHERE:
        state.home[g] = d
        if arrays.reserve:
            state.room[d] -= arrays.group_size[g]
    if not arrays.reserve:
        state.room[d] -= arrays.size[v]
    if arrays.contention:
        for e in range(arrays.before_start[v], arrays.before_start[v + 1]):
            send(arrays, state, arrays.before[e], arrays.before_tensor[e], d)
    begin = earliest_start(arrays, state, v, d)
    state.device[v], state.start[v], state.finish[v] = d, begin, begin + arrays.time[d, v]
    slots = state.idle_from, state.idle_to, state.idle_count
    if begin >= state.end[d]:
        if begin > state.end[d]:
            add_slot(*slots, d, state.idle_count[d], state.end[d], begin)
        state.end[d] = state.finish[v]
    else:
        fill_slot(*slots, d, begin, state.finish[v])


@njit(cache=True, inline="always")
def send(arrays: TaskArrays, state: PartialSchedule, u: int, tensor: int, d: int) -> None:
    """Send a tensor that task `u` made to device `d`, with contention, unless it is there or was sent."""
    source = state.device[u]
    if source == d or state.arrival[tensor, d] < np.inf:
        return
    arrival = arrives(arrays, state, u, tensor, d)
    length = arrays.slope[source, d] * arrays.cost[tensor] + arrays.intercept[source, d]
    if length > 0.0:
        state.channel[source] = max(state.finish[u], state.channel[source]) + length
        state.channel[d] = arrival
    state.arrival[tensor, d] = arrival


@njit(cache=True, inner=True)
def add_slot(
    idle_from: Floats, idle_to: Floats, count: Ints, d: int, place: int, begin: float, end: float
) -> None:
    """Insert an idle slot of device `d` at `place` in its list; arrays as in :class:`PartialSchedule`."""
    for i in range(count[d], place, -1):
        idle_from[d, i], idle_to[d, i] = idle_from[d, i - 1], idle_to[d, i - 1]
    idle_from[d, place], idle_to[d, place] = begin, end
    count[d] += 1


@njit(cache=True, inner=True)
def fill_slot(idle_from: Floats, idle_to: Floats, count: Ints, d: int, begin: float, end: float) -> None:
    """Remove the time from `begin` to `end` from its idle slot; if they are equal, the slot is cut in two."""
    place = _passed(idle_from[d], count[d], begin, True) - 1
    before, after = idle_from[d, place], idle_to[d, place]
    if before < begin and end < after:
        idle_to[d, place] = begin
        add_slot(idle_from, idle_to, count, d, place + 1, end, after)
    elif before < begin:
        idle_to[d, place] = begin
    elif end < after:
        idle_from[d, place] = end
    else:
        for i in range(place, count[d] - 1):
            idle_from[d, i], idle_to[d, i] = idle_from[d, i + 1], idle_to[d, i + 1]
        count[d] -= 1
