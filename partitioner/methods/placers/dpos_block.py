"""The replacement of a task by several, as SplitOperation (FastT, Algorithm 2) does it, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit
from partitioner.methods.placers.dpos_draft import CONCATENATE, PART, SPLIT, Share
from partitioner.methods.placers.task_arrays import (
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
from partitioner.workload.graph import Bools

OFF = -1


@njit(cache=True, nogil=True)
def descending(rank: Floats) -> Ints:
    """Return all tasks by descending rank, the lower number first among equals; sorted runs are merged."""
    order, spare = np.arange(len(rank)), np.empty(len(rank), dtype=np.int64)
    ends = np.append(np.flatnonzero(rank[1:] > rank[:-1]) + 1, len(rank))
    while len(ends) > 1:
        begin = 0
        for k in range(0, len(ends), 2):
            middle, end = ends[k], ends[min(k + 1, len(ends) - 1)]
            _merge(rank, order, spare, begin, middle, end)
            begin = end
        order, spare = spare, order
        ends = np.append(ends[1:-1:2], len(rank))
    return order


@njit(cache=True, nogil=True)
def _merge(rank: Floats, order: Ints, merged: Ints, begin: int, middle: int, end: int) -> None:
    """Merge the run from `begin` to `middle` with the next one."""
    i, j = begin, middle
    for at in range(begin, end):
        if j == end or (i < middle and rank[order[i]] >= rank[order[j]]):
            merged[at], i = order[i], i + 1
        else:
            merged[at], j = order[j], j + 1


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
        See :func:`partitioner.methods.placers.dpos.dpos`.
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
        # Where the task may go: tasks of the critical path to one device, those of a placed group to its.
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
        # When its inputs are there, on each of these devices.
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
        # The device on which it ends first, perhaps in a gap between tasks.
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


@njit(cache=True, inline="always")
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


@njit(cache=True, inline="always")
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


DraftRows = tuple[Ints, Ints, Ints]


@njit(cache=True, nogil=True)
def producers(arrays: TaskArrays, v: int, role: Ints) -> DraftRows:
    """Return where the rows of producers start, the producers, and the tensors that come from them."""
    old, items, tensors = arrays.before_start, arrays.before, arrays.before_tensor
    inputs, end, first, more = old[v + 1] - old[v], old[v + 1], len(arrays.cost), len(role) - 1
    joined = int(role[-1] == CONCATENATE)
    count = len(role) - inputs - joined
    start = np.empty(len(old) + more, dtype=np.int64)
    item = np.empty(len(items) + count * (inputs + joined), dtype=np.int64)
    tensor = np.empty_like(item)
    start[: v + 1], item[:end], tensor[:end] = old[: v + 1], items[:end], tensors[:end]
    at = old[v]
    for i in range(len(role)):
        if role[i] == SPLIT:
            at += 1
        else:
            sender, sent = (0, inputs) if role[i] == PART else (inputs, count)
            item[at : at + sent] = v + sender + np.arange(sent)
            tensor[at : at + sent] = first + sender + np.arange(sent)
            at += sent
        start[v + i + 1] = at
    start[v + len(role) :] = old[v + 1 :] + (at - end)
    item[at:], tensor[at:] = _shifted(items[end:], v, more), tensors[end:]
    return start, item, tensor


@njit(cache=True, nogil=True)
def consumers(arrays: TaskArrays, v: int, role: Ints) -> DraftRows:
    """Return where the rows of consumers start, the consumers, and the tensors that go to them."""
    old, items, tensors = arrays.after_start, arrays.after, arrays.after_tensor
    inputs = arrays.before_start[v + 1] - arrays.before_start[v]
    begin, first, more = old[v], len(arrays.cost), len(role) - 1
    joined = int(role[-1] == CONCATENATE)
    count = len(role) - inputs - joined
    start = np.empty(len(old) + more, dtype=np.int64)
    item = np.empty(len(items) + count * (inputs + joined), dtype=np.int64)
    tensor = np.empty_like(item)
    start[: v + 1], tensor[:begin] = old[: v + 1], tensors[:begin]
    item[:begin] = _shifted(items[:begin], v, more)
    _to_splits(arrays, v, item)
    at = begin
    for i in range(inputs + count * joined):
        reader, sent = (v + inputs, count) if i < inputs else (v + more, 1)
        item[at : at + sent] = reader + np.arange(sent)
        tensor[at : at + sent] = first + i
        at += sent
        start[v + i + 1] = at
    start[v + inputs + count * joined + 1 : v + len(role)] = at
    start[v + len(role) :] = old[v + 1 :] + (at - begin)
    item[at:], tensor[at:] = _shifted(items[begin:], v, more), tensors[begin:]
    return start, item, tensor


@njit(cache=True, inner=True)
def _shifted(items: Ints, v: int, more: int) -> Ints:
    """Return the new numbers of tasks; task `v` becomes the last task of the block that replaces it."""
    return np.where(items >= v, items + more, items)


@njit(cache=True, inner=True)
def _to_splits(arrays: TaskArrays, v: int, item: Ints) -> None:
    """Replace task `v` by its split nodes among the consumers."""
    first = arrays.before_start[v]
    for e in range(first, arrays.before_start[v + 1]):
        u = arrays.before[e]
        for i in range(arrays.after_start[u], arrays.after_start[u + 1]):
            if arrays.after[i] == v and arrays.after_tensor[i] == arrays.before_tensor[e]:
                item[i] = v + e - first


@njit(cache=True, nogil=True)
def roles(arrays: TaskArrays, v: int, count: int) -> Ints:
    """Return the roles of the tasks that replace task `v`.

    They are a split node for each tensor that the task reads, the parts, and a concatenate node if the task
    has consumers.
    """
    inputs = arrays.before_start[v + 1] - arrays.before_start[v]
    joined = min(1, arrays.after_start[v + 1] - arrays.after_start[v])
    role = np.full(inputs + count + joined, PART)
    role[:inputs] = SPLIT
    role[inputs + count :] = CONCATENATE
    return role


@njit(cache=True, nogil=True)
def rewritten(arrays: TaskArrays, v: int, share: Share, role: Ints) -> TaskArrays:
    """Return the tasks with task `v` replaced by tasks of the given roles.

    The new tensors come last: one from each split node, then one from each part if there is a concatenate
    node, which makes the tensors that the task made. Each new task is a group of its own.
    """
    before_start, before, before_tensor = producers(arrays, v, role)
    after_start, after, after_tensor = consumers(arrays, v, role)
    time = np.empty((len(arrays.time), len(arrays.size) + len(role) - 1))
    time[:, :v], time[:, v + len(role) :] = arrays.time[:, :v], arrays.time[:, v + 1 :]
    for i in range(len(role)):
        time[:, v + i] = share.time[:, role[i] - SPLIT]
    size = spliced(arrays.size, v, np.where(role == PART, share.size, 0.0))
    group = spliced(arrays.group, v, len(arrays.group_size) + np.arange(len(role)))
    group_size, group_allowed = _groups(arrays, arrays.group[v], time, size, group, len(role))
    return TaskArrays(
        time,
        size,
        group,
        group_size,
        group_allowed,
        before_start,
        before,
        before_tensor,
        after_start,
        after,
        after_tensor,
        np.concatenate((arrays.cost, _costs(arrays, v, share, role))),
        arrays.slope,
        arrays.intercept,
        arrays.contention,
        arrays.reserve,
        arrays.insertion,
    )


@njit(cache=True, nogil=True)
def spliced(values: NDArray[Any], v: int, block: NDArray[Any]) -> NDArray[Any]:
    """Return the values with value `v` replaced by those of a block."""
    return np.concatenate((values[:v], block, values[v + 1 :]))


@njit(cache=True, inner=True)
def output_cost(arrays: TaskArrays, v: int) -> float:
    """Return the summed cost of all tensors that task `v` makes."""
    made = np.unique(arrays.after_tensor[arrays.after_start[v] : arrays.after_start[v + 1]])
    return float(arrays.cost[made].sum())


@njit(cache=True, nogil=True)
def _costs(arrays: TaskArrays, v: int, share: Share, role: Ints) -> Floats:
    """Return the costs of the new tensors."""
    read = arrays.before_tensor[arrays.before_start[v] : arrays.before_start[v + 1]]
    inputs = arrays.cost[read] / (share.parts if share.divides_input else 1)
    output = output_cost(arrays, v) / (share.parts if share.divides_output else 1)
    return np.concatenate((inputs, np.full(share.parts if role[-1] == CONCATENATE else 0, output)))


@njit(cache=True, nogil=True)
def _groups(
    arrays: TaskArrays, old: int, time: Floats, size: Floats, group: Ints, new: int
) -> tuple[Floats, Bools]:
    """Return the sizes of the groups and which devices may hold them; only `old` and new groups change."""
    count = len(arrays.group_size)
    group_size = np.concatenate((arrays.group_size, np.zeros(new)))
    allowed = np.ones((len(time), count + new), dtype=np.bool_)
    allowed[:, :count] = arrays.group_allowed
    group_size[old], allowed[:, old] = 0.0, True
    for v in range(len(group)):
        g = group[v]
        if g == old or g >= count:
            group_size[g] += size[v]
            for d in range(len(time)):
                allowed[d, g] &= time[d, v] < np.inf
    return group_size, allowed
