"""Lower bounds on the end of every schedule, by which splits are ruled out without a run of DPOS."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.fastt.block import output_cost
from partitioner.methods.list_scheduling.fastt.draft import CONCATENATE, SPLIT, Share
from partitioner.methods.list_scheduling.task_arrays import TaskArrays
from partitioner.problem.arrays import Floats, Ints


@njit(cache=True, nogil=True)
def least_times(arrays: TaskArrays) -> Floats:
    """Return the least time of each task, shape (n,)."""
    least: Floats = arrays.time[0].copy()
    for d in range(1, len(arrays.time)):
        least = np.minimum(least, arrays.time[d])
    return least


@njit(cache=True, nogil=True)
def heads(arrays: TaskArrays, role: Ints, lines: Floats) -> Floats:
    """Return when each task ends at the earliest, shape (n,); `lines` as in :attr:`Tasks.links`."""
    least: Floats = least_times(arrays)
    head = np.zeros_like(least)
    for v in range(len(head)):
        row = arrays.before[arrays.before_start[v] : arrays.before_start[v + 1]]
        for u in row:
            head[v] = max(head[v], head[u])
        if role[v] == CONCATENATE:
            part, made = row[0], arrays.before_tensor[arrays.before_start[v]]
            for e in range(arrays.before_start[part], arrays.before_start[part + 1]):
                costs = arrays.cost[arrays.before_tensor[e]], arrays.cost[made]
                through = spread(len(row), least[part], costs, lines, len(arrays.time))
                head[v] = max(head[v], head[arrays.before[e]] + through)
        head[v] += least[v]
    return head


@njit(cache=True, nogil=True)
def tails(arrays: TaskArrays, role: Ints, lines: Floats) -> Floats:
    """Return the least time from the end of each task to the end of all, shape (n,)."""
    least: Floats = least_times(arrays)
    tail = np.zeros_like(least)
    for v in range(len(tail) - 1, -1, -1):
        begin, end = arrays.after_start[v], arrays.after_start[v + 1]
        for e in range(begin, end):
            tail[v] = max(tail[v], least[arrays.after[e]] + tail[arrays.after[e]])
        if role[v] == SPLIT:
            part = arrays.after[begin]
            e = arrays.after_start[part]
            if e < arrays.after_start[part + 1]:
                costs = arrays.cost[arrays.after_tensor[begin]], arrays.cost[arrays.after_tensor[e]]
                through = spread(end - begin, least[part], costs, lines, len(arrays.time))
                last = arrays.after[e]
                tail[v] = max(tail[v], through + least[last] + tail[last])
    return tail


@njit(cache=True, nogil=True)
def least_makespan(
    arrays: TaskArrays, lines: Floats, head: Floats, tail: Floats, v: int, share: Share
) -> float:
    """Return a lower bound on the end of every schedule with task `v` split, by the paths through its parts.

    Parameters
    ----------
    arrays
        The tasks before the split.
    lines
        As in :attr:`Tasks.links`.
    head, tail
        Shape (n,): of the tasks before the split, see :func:`heads` and :func:`tails`.
    v, share
        The task and its split.
    """
    split, part, join = share.time[:, 0].min(), share.time[:, 1].min(), share.time[:, 2].min()
    if arrays.after_start[v] == arrays.after_start[v + 1]:
        join = 0.0
    end = 0.0
    made = output_cost(arrays, v) / (share.parts if share.divides_output else 1)
    for e in range(arrays.before_start[v], arrays.before_start[v + 1]):
        read = arrays.cost[arrays.before_tensor[e]] / (share.parts if share.divides_input else 1)
        through = spread(share.parts, part, (read, made), lines, len(arrays.time))
        end = max(end, head[arrays.before[e]] + split + through)
    return float(max(end, part) + join + tail[v])


@njit(cache=True, nogil=True)
def spread(count: int, time: float, costs: tuple[float, float], lines: Floats, devices: int) -> float:
    """Return the least time from a split node to the concatenate node.

    Either both nodes share a device, on which parts run one after another without transfers, or the parts on
    their two devices pay one transfer. All other parts pay two transfers and share the remaining devices.

    Parameters
    ----------
    count, time
        How many parts there are, and the least time of each.
    costs
        Costs of the tensor that each part reads, and of the one that it makes.
    lines, devices
        The links as in :attr:`Tasks.links`, and the number of devices.
    """
    best = count * time
    if devices == 1 or time == np.inf:
        return best
    into, out = _least(lines, costs[0]), _least(lines, costs[1])
    for near in range(count + 1):
        far = count - near
        apart = into + out + np.ceil(far / (devices - 1)) * time if far else 0.0
        best = min(best, max(near * time, apart))
        if far == 0 or devices > 2:
            apart = into + out + np.ceil(far / (devices - 2)) * time if far else 0.0
            close = min(into, out) + np.ceil(near / 2) * time if near else 0.0
            best = min(best, max(close, apart))
    return best


@njit(cache=True, nogil=True)
def _least(lines: Floats, cost: float) -> float:
    """Return the least time of a transfer of this cost between two devices."""
    least = np.inf
    for k in range(len(lines)):
        least = min(least, lines[k, 0] * cost + lines[k, 1])
    return least
