"""Several tasks take the place of one: the rewriting behind SplitOperation (FastT, Algorithm 2), compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.fastt.draft import CONCATENATE, PART, SPLIT, Share
from partitioner.methods.list_scheduling.fastt.edges import consumers, producers
from partitioner.methods.list_scheduling.ground import Ground
from partitioner.problem.arrays import Floats, Ints
from partitioner.workload.graph import Bools


@njit(cache=True, nogil=True)
def roles(ground: Ground, v: int, count: int) -> Ints:
    """The roles of the tasks that take the place of task `v`.

    A split node for each tensor that it reads, the parts, and a concatenate node if somebody reads it.
    """
    inputs = ground.before_start[v + 1] - ground.before_start[v]
    joined = min(1, ground.after_start[v + 1] - ground.after_start[v])
    role = np.full(inputs + count + joined, PART)
    role[:inputs] = SPLIT
    role[inputs + count :] = CONCATENATE
    return role


@njit(cache=True, nogil=True)
def rewritten(ground: Ground, v: int, share: Share, role: Ints) -> Ground:
    """The tasks once those of the given roles have taken the place of task `v`.

    The new tensors come last: one of each split node, then one of each part if there is a concatenate node,
    which makes the tensors that the task made. Each new task is a group of its own.
    """
    before_start, before, before_tensor = producers(ground, v, role)
    after_start, after, after_tensor = consumers(ground, v, role)
    time = np.empty((len(ground.time), len(ground.size) + len(role) - 1))
    time[:, :v], time[:, v + len(role) :] = ground.time[:, :v], ground.time[:, v + 1 :]
    for i in range(len(role)):
        time[:, v + i] = share.time[:, role[i] - SPLIT]
    size = spliced(ground.size, v, np.where(role == PART, share.size, 0.0))
    group = spliced(ground.group, v, len(ground.group_size) + np.arange(len(role)))
    group_size, group_allowed = _groups(ground, ground.group[v], time, size, group, len(role))
    return Ground(
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
        np.concatenate((ground.cost, _costs(ground, v, share, role))),
        ground.slope,
        ground.intercept,
        ground.contention,
        ground.reserve,
        ground.insertion,
    )


@njit(cache=True, nogil=True)
def spliced(values: NDArray[Any], v: int, block: NDArray[Any]) -> NDArray[Any]:
    """The values with those of a block in the place of one."""
    return np.concatenate((values[:v], block, values[v + 1 :]))


@njit(cache=True, nogil=True)
def output_cost(ground: Ground, v: int) -> float:
    """The cost of all tensors that task `v` makes."""
    made = np.unique(ground.after_tensor[ground.after_start[v] : ground.after_start[v + 1]])
    return float(ground.cost[made].sum())


@njit(cache=True, nogil=True)
def _costs(ground: Ground, v: int, share: Share, role: Ints) -> Floats:
    """Of the new tensors."""
    read = ground.before_tensor[ground.before_start[v] : ground.before_start[v + 1]]
    inputs = ground.cost[read] / (share.parts if share.divides_input else 1)
    output = output_cost(ground, v) / (share.parts if share.divides_output else 1)
    return np.concatenate((inputs, np.full(share.parts if role[-1] == CONCATENATE else 0, output)))


@njit(cache=True, nogil=True)
def _groups(
    ground: Ground, old: int, time: Floats, size: Floats, group: Ints, new: int
) -> tuple[Floats, Bools]:
    """Sizes of the groups, and who may hold them; only one of the old ones has changed."""
    count = len(ground.group_size)
    group_size = np.concatenate((ground.group_size, np.zeros(new)))
    allowed = np.ones((len(time), count + new), dtype=np.bool_)
    allowed[:, :count] = ground.group_allowed
    group_size[old], allowed[:, old] = 0.0, True
    for v in range(len(group)):
        g = group[v]
        if g == old or g >= count:
            group_size[g] += size[v]
            for d in range(len(time)):
                allowed[d, g] &= time[d, v] < np.inf
    return group_size, allowed
