"""The replacement of a task by several, as SplitOperation (FastT, Algorithm 2) does it, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.fastt.draft import CONCATENATE, PART, SPLIT, Share
from partitioner.methods.list_scheduling.fastt.edges import consumers, producers
from partitioner.methods.list_scheduling.task_arrays import TaskArrays
from partitioner.problem.arrays import Floats, Ints
from partitioner.workload.graph import Bools


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


@njit(cache=True, nogil=True)
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
