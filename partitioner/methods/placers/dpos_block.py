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

OFF = -1


@njit(cache=True, nogil=True)
def descending(rank: Floats) -> Ints:
    """Return all tasks by descending rank, the lower number first among equals; sorted runs are merged."""
    n, runs = len(rank), 0
    order, spare, ends = np.arange(n), np.empty(n, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
    for v in range(1, n + 1):
        if v == n or rank[v] > rank[v - 1]:
            ends[runs] = v
            runs += 1
    while runs > 1:
        begin, merged = 0, 0
        for k in range(0, runs, 2):
            middle, end = ends[k], ends[min(k + 1, runs - 1)]
            i, j = begin, middle
            for at in range(begin, end):
                if j == end or (i < middle and rank[order[i]] >= rank[order[j]]):
                    spare[at], i = order[i], i + 1
                else:
                    spare[at], j = order[j], j + 1
            ends[merged], begin = end, end
            merged += 1
        order, spare, runs = spare, order, merged
    return order


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


def spliced(values: NDArray[Any], v: int, block: NDArray[Any]) -> NDArray[Any]:
    """Return the values with value `v` replaced by those of a block."""
    return np.concatenate((values[:v], block, values[v + 1 :]))


# Loops, where slices would read as well: numba compiles a dozen functions for each kind of slice.


@njit(cache=True, inner=True)
def producers(arrays: TaskArrays, v: int, role: Ints) -> DraftRows:
    """Return where the rows of producers start, the producers, and the tensors that come from them."""
    old, items, tensors = arrays.before_start, arrays.before, arrays.before_tensor
    inputs, end, first, more = old[v + 1] - old[v], old[v + 1], len(arrays.cost), len(role) - 1
    joined = 1 if role[-1] == CONCATENATE else 0
    count = len(role) - inputs - joined
    start = np.empty(len(old) + more, dtype=np.int64)
    item = np.empty(len(items) + count * (inputs + joined), dtype=np.int64)
    tensor = np.empty(len(item), dtype=np.int64)
    for u in range(v + 1):
        start[u] = old[u]
    for e in range(end):
        item[e], tensor[e] = items[e], tensors[e]
    at = old[v]
    for i in range(len(role)):
        if role[i] == SPLIT:
            at += 1
        else:
            sender, sent = (0, inputs) if role[i] == PART else (inputs, count)
            for j in range(sent):
                item[at + j], tensor[at + j] = v + sender + j, first + sender + j
            at += sent
        start[v + i + 1] = at
    for u in range(v + 1, len(old)):
        start[u + more] = old[u] + (at - end)
    for e in range(end, len(items)):  # task `v` becomes the last task of the block that replaces it
        item[e + at - end] = items[e] + more if items[e] >= v else items[e]
        tensor[e + at - end] = tensors[e]
    return start, item, tensor


@njit(cache=True, inner=True)
def consumers(arrays: TaskArrays, v: int, role: Ints) -> DraftRows:
    """Return where the rows of consumers start, the consumers, and the tensors that go to them."""
    old, items, tensors = arrays.after_start, arrays.after, arrays.after_tensor
    before_start, before, before_tensor = arrays.before_start, arrays.before, arrays.before_tensor
    inputs = before_start[v + 1] - before_start[v]
    begin, first, more = old[v], len(arrays.cost), len(role) - 1
    joined = 1 if role[-1] == CONCATENATE else 0
    count = len(role) - inputs - joined
    start = np.empty(len(old) + more, dtype=np.int64)
    item = np.empty(len(items) + count * (inputs + joined), dtype=np.int64)
    tensor = np.empty(len(item), dtype=np.int64)
    for u in range(v + 1):
        start[u] = old[u]
    for e in range(begin):
        item[e] = items[e] + more if items[e] >= v else items[e]
        tensor[e] = tensors[e]
    for e in range(before_start[v], before_start[v + 1]):
        # the split node of a tensor reads it in place of the task
        u = before[e]
        for i in range(old[u], old[u + 1]):
            if items[i] == v and tensors[i] == before_tensor[e]:
                item[i] = v + e - before_start[v]
    at = begin
    for i in range(inputs + count * joined):
        reader, sent = (v + inputs, count) if i < inputs else (v + more, 1)
        for j in range(sent):
            item[at + j], tensor[at + j] = reader + j, first + i
        at += sent
        start[v + i + 1] = at
    for u in range(v + inputs + count * joined + 1, v + len(role)):
        start[u] = at
    for u in range(v + 1, len(old)):
        start[u + more] = old[u] + (at - begin)
    for e in range(begin, len(items)):
        item[e + at - begin] = items[e] + more if items[e] >= v else items[e]
        tensor[e + at - begin] = tensors[e]
    return start, item, tensor


@njit(cache=True, nogil=True)
def rewritten(arrays: TaskArrays, v: int, share: Share, role: Ints) -> TaskArrays:
    """Return the tasks with task `v` replaced by tasks of the given roles.

    The new tensors come last: one from each split node, then one from each part if there is a concatenate
    node, which makes the tensors that the task made. Each new task is a group of its own.
    """
    before_start, before, before_tensor = producers(arrays, v, role)
    after_start, after, after_tensor = consumers(arrays, v, role)
    devices, new, groups = len(arrays.time), len(role), len(arrays.group_size)
    n, old_group = len(arrays.size) + new - 1, arrays.group[v]
    # what each task takes, and its group
    time, size, group = np.empty((devices, n)), np.empty(n), np.empty(n, dtype=np.int64)
    for u in range(n):
        i, old = u - v, u if u < v else u - new + 1
        if 0 <= i < new:
            size[u], group[u] = share.size if role[i] == PART else 0.0, groups + i
            for d in range(devices):
                time[d, u] = share.time[d, role[i] - SPLIT]
        else:
            size[u], group[u] = arrays.size[old], arrays.group[old]
            for d in range(devices):
                time[d, u] = arrays.time[d, old]
    # the sizes of the groups and which devices may hold them: only those of the old and of new tasks change
    group_size, allowed = np.empty(groups + new), np.empty((devices, groups + new), dtype=np.bool_)
    for g in range(groups + new):
        fresh = g >= groups or g == old_group
        group_size[g] = 0.0 if fresh else arrays.group_size[g]
        for d in range(devices):
            allowed[d, g] = True if fresh else arrays.group_allowed[d, g]
    for u in range(n):
        g = group[u]
        if g == old_group or g >= groups:
            group_size[g] += size[u]
            for d in range(devices):
                allowed[d, g] &= time[d, u] < np.inf
    # the costs of the tensors that split nodes and parts make
    tensors, begin = len(arrays.cost), arrays.before_start[v]
    inputs = arrays.before_start[v + 1] - begin
    sent = share.parts if role[-1] == CONCATENATE else 0
    output = output_cost(arrays, v) / (share.parts if share.divides_output else 1)
    cost = np.empty(tensors + inputs + sent)
    for t in range(tensors):
        cost[t] = arrays.cost[t]
    for i in range(inputs):
        read = arrays.cost[arrays.before_tensor[begin + i]]
        cost[tensors + i] = read / (share.parts if share.divides_input else 1)
    for i in range(sent):
        cost[tensors + inputs + i] = output
    return TaskArrays(
        time,
        size,
        group,
        group_size,
        allowed,
        before_start,
        before,
        before_tensor,
        after_start,
        after,
        after_tensor,
        cost,
        arrays.slope,
        arrays.intercept,
        arrays.contention,
        arrays.reserve,
        arrays.insertion,
    )


@njit(cache=True, inner=True)
def output_cost(arrays: TaskArrays, v: int) -> float:
    """Return the summed cost of all tensors that task `v` makes."""
    total, last = 0.0, NOWHERE
    while True:
        following = len(arrays.cost)  # the next tensor by number, each once
        for e in range(arrays.after_start[v], arrays.after_start[v + 1]):
            if last < arrays.after_tensor[e] < following:
                following = arrays.after_tensor[e]
        if following == len(arrays.cost):
            return total
        total, last = total + arrays.cost[following], following
