"""The arrays and steps of the compiled list schedulers: the tasks, the state of the devices, booking."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import first_at_least, njit
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
    devices, n = tasks.time.shape
    tensors = len(tasks.cost) if tasks.contention else 0
    return PartialSchedule(
        device=np.full(n, NOWHERE),
        start=np.zeros(n),
        finish=np.zeros(n),
        room=tasks.limit.copy(),
        home=np.full(len(tasks.group_size), NOWHERE),
        end=np.zeros(devices),
        idle_from=np.empty((devices, n + 1)),
        idle_to=np.empty((devices, n + 1)),
        idle_count=np.zeros(devices, dtype=np.int64),
        arrival=np.full((tensors, devices), np.inf),
        channel=np.zeros(devices),
    )


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def fits(arrays: TaskArrays, state: PartialSchedule, v: int, d: int) -> bool:
    """Whether task `v` may go to device `d`, by its group, the memory that is left, and the kind."""
    g = arrays.group[v]
    if state.home[g] == NOWHERE:
        return bool(arrays.group_allowed[d, g] and arrays.group_size[g] <= state.room[d])
    return bool(state.home[g] == d and (arrays.reserve or arrays.size[v] <= state.room[d]))


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
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


@njit(cache=True, inner=True, _nrt=False)
def start_at_end(arrays: TaskArrays, state: PartialSchedule, v: int, d: int) -> float:
    """Return when a task starts after the last one of a device, each transfer as if it were the only one."""
    start = state.end[d]
    for e in range(arrays.before_start[v], arrays.before_start[v + 1]):
        start = max(start, arrives(arrays, state, arrays.before[e], arrays.before_tensor[e], d))
    return float(start)


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def first_slot(arrays: TaskArrays, state: PartialSchedule, d: int, ready: float, length: float) -> float:
    """Return the start on device `d` in the first idle slot that is long enough, or after its last task."""
    end = state.end[d]
    count = state.idle_count[d] if arrays.insertion and ready < end else 0
    if count and ready <= state.idle_to[d, count - 1]:
        for i in range(first_at_least(state.idle_to[d], 0, count, ready), count):
            begin = max(ready, state.idle_from[d, i])
            if begin + length <= state.idle_to[d, i]:
                return float(begin)
    return float(max(ready, end))


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def start_times(arrays: TaskArrays, state: PartialSchedule, v: int, start: Floats) -> None:
    """Write when task `v` could start on each device, infinity where it does not fit, to `start`, (D,)."""
    for d in range(len(start)):
        start[d] = 0.0
    for e in range(arrays.before_start[v], arrays.before_start[v + 1]):
        u, tensor = arrays.before[e], arrays.before_tensor[e]
        source, made, cost = state.device[u], state.finish[u], arrays.cost[tensor]
        for d in range(len(start)):
            if arrays.contention:
                arrival = arrives(arrays, state, u, tensor, d)
            else:  # a transfer to the device itself takes no time
                arrival = made + (arrays.slope[source, d] * cost + arrays.intercept[source, d])
            start[d] = max(start[d], arrival)
    for d in range(len(start)):
        if fits(arrays, state, v, d):
            start[d] = first_slot(arrays, state, d, start[d], arrays.time[d, v])
        else:
            start[d] = np.inf


@njit(cache=True, nogil=True, forceinline=True, _nrt=False)
def book(arrays: TaskArrays, state: PartialSchedule, v: int, d: int) -> None:
    """Place task `v` on device `d` and start it as early as it can; with contention send its inputs."""
    g = arrays.group[v]
    if state.home[g] == NOWHERE:
        state.home[g] = d
        if arrays.reserve:
            state.room[d] -= arrays.group_size[g]
    if not arrays.reserve:
        state.room[d] -= arrays.size[v]
    ready = 0.0
    for e in range(arrays.before_start[v], arrays.before_start[v + 1]):
        u, tensor = arrays.before[e], arrays.before_tensor[e]
        source = state.device[u]
        arrival = arrives(arrays, state, u, tensor, d)
        if arrays.contention and source != d and state.arrival[tensor, d] == np.inf:
            length = arrays.slope[source, d] * arrays.cost[tensor] + arrays.intercept[source, d]
            if length > 0.0:
                state.channel[source] = max(state.finish[u], state.channel[source]) + length
                state.channel[d] = arrival
            state.arrival[tensor, d] = arrival
        ready = max(ready, arrival)
    begin = first_slot(arrays, state, d, ready, arrays.time[d, v])
    state.device[v], state.start[v], state.finish[v] = d, begin, begin + arrays.time[d, v]
    occupy(state, d, begin, state.finish[v])


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def occupy(state: PartialSchedule, d: int, begin: float, end: float) -> None:
    """Take the time from `begin` to `end`, also if they are equal, out of the idle time of device `d`."""
    idle_from, idle_to, count = state.idle_from[d], state.idle_to[d], state.idle_count[d]
    if begin >= state.end[d]:
        if begin > state.end[d]:
            idle_from[count], idle_to[count] = state.end[d], begin
            state.idle_count[d] += 1
        state.end[d] = end
        return
    i = first_at_least(idle_to, 0, count, end)
    before, after = idle_from[i], idle_to[i]
    if before < begin and end < after:  # two slots are left of it
        for j in range(count, i, -1):
            idle_from[j], idle_to[j] = idle_from[j - 1], idle_to[j - 1]
        idle_to[i], idle_from[i + 1] = begin, end
        state.idle_count[d] += 1
    elif before < begin:
        idle_to[i] = begin
    elif end < after:
        idle_from[i] = end
    else:
        for j in range(i, count - 1):
            idle_from[j], idle_to[j] = idle_from[j + 1], idle_to[j + 1]
        state.idle_count[d] -= 1
