"""A trial of OS-DPOS in one compiled call: split a task; rank, order and place all tasks."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.fastt.block import rewritten, roles, spliced
from partitioner.methods.list_scheduling.fastt.critical import OFF, along
from partitioner.methods.list_scheduling.fastt.draft import Share
from partitioner.methods.list_scheduling.fastt.floor import tails
from partitioner.methods.list_scheduling.fastt.kernel import place_all
from partitioner.methods.list_scheduling.fastt.runs import descending
from partitioner.methods.list_scheduling.ranks import bottom, largest_times, largest_transfers
from partitioner.methods.list_scheduling.task_arrays import TaskArrays, empty_state
from partitioner.problem.arrays import Floats, Ints


@njit(cache=True, nogil=True)
def trial(
    arrays: TaskArrays, role: Ints, limit: Floats, lines: Floats, v: int, share: Share, cutoff: float
) -> float:
    """Return DPOS's makespan with task `v` split; infinity if some task fits nowhere, or at the cutoff.

    Parameters
    ----------
    arrays, role
        The tasks before the split, and the role of each.
    limit
        Shape (D,): memory of the devices.
    lines
        Shape (k, 2): slopes and intercepts of the links.
    v, share
        The task and its split.
    cutoff
        See :func:`partitioner.methods.list_scheduling.fastt.dpos.dpos`.
    """
    block = roles(arrays, v, share.parts)
    split = rewritten(arrays, v, share, block)
    along_edges = largest_transfers(split.cost, lines)[split.after_tensor]
    rank = bottom(split.after_start, split.after, largest_times(split.time), along_edges)
    order = descending(rank)
    path = along(split.before_start, split.after_start, split.after, rank)
    place = np.full(len(rank), OFF)
    for i in range(len(path)):
        place[path[i]] = i
    tail = tails(split, spliced(role, v, block), lines)
    tensors = len(split.cost) if split.contention else 0
    state = empty_state(limit, len(rank), len(split.group_size), tensors)
    if not place_all(split, state, order, path, place, cutoff, tail):
        return np.inf
    return float(state.finish.max())
