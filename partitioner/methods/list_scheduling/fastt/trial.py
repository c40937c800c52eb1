"""A trial of OS-DPOS in one compiled call: split a task, rank, order and place all."""

from __future__ import annotations

import numpy as np
from numba import njit

from partitioner.methods.list_scheduling.fastt.block import rewritten, roles, spliced
from partitioner.methods.list_scheduling.fastt.critical import OFF, along
from partitioner.methods.list_scheduling.fastt.draft import Share
from partitioner.methods.list_scheduling.fastt.floor import tails
from partitioner.methods.list_scheduling.fastt.kernel import place_all
from partitioner.methods.list_scheduling.fastt.runs import descending
from partitioner.methods.list_scheduling.ground import NOWHERE, Ground, State
from partitioner.methods.list_scheduling.ranks import bottom
from partitioner.preprocess.problem import Floats, Ints


@njit(cache=True, nogil=True)
def trial(
    ground: Ground, role: Ints, limit: Floats, lines: Floats, v: int, share: Share, cutoff: float
) -> float:
    """The estimate of DPOS once task `v` is split; infinity if there is no room, or the cutoff is reached.

    Parameters
    ----------
    ground, role
        The tasks before, and the role of each.
    limit
        Shape (D,): memory of the devices.
    lines
        Shape (k, 2): slopes and intercepts of the links.
    v, share
        The task and its split.
    cutoff
        See :func:`partitioner.methods.list_scheduling.fastt.dpos.dpos`.
    """
    block = roles(ground, v, share.parts)
    split = rewritten(ground, v, share, block)
    rank = _largest_rank(split, lines)
    order = descending(rank)
    path = along(split.before_start, split.after_start, split.after, rank)
    place = np.full(len(rank), OFF)
    for i in range(len(path)):
        place[path[i]] = i
    tail = tails(split, spliced(role, v, block), lines)
    state = _empty(split, limit)
    if not place_all(split, state, order, path, place, cutoff, tail):
        return np.inf
    return float(state.finish.max())


@njit(cache=True, nogil=True)
def _largest_rank(ground: Ground, lines: Floats) -> Floats:
    """As :func:`partitioner.methods.list_scheduling.ranks.largest_rank`."""
    longest, transfer = np.zeros(len(ground.size)), np.zeros(len(ground.cost))
    for d in range(len(ground.time)):
        for v in range(len(longest)):
            if longest[v] < ground.time[d, v] < np.inf:
                longest[v] = ground.time[d, v]
    for slope, intercept in lines:
        for t in range(len(transfer)):
            transfer[t] = max(transfer[t], slope * ground.cost[t] + intercept)
    return bottom(ground.after_start, ground.after, longest, transfer[ground.after_tensor])


@njit(cache=True, nogil=True)
def _empty(ground: Ground, limit: Floats) -> State:
    """As :func:`partitioner.methods.list_scheduling.ground.new_state`."""
    n, d = len(ground.size), len(limit)
    tensors = len(ground.cost) if ground.contention else 0
    return State(
        np.full(n, NOWHERE),
        np.zeros(n),
        np.zeros(n),
        limit.copy(),
        np.full(len(ground.group_size), NOWHERE),
        np.zeros(d),
        np.empty((d, n + 1)),
        np.empty((d, n + 1)),
        np.zeros(d, dtype=np.int64),
        np.full((tensors, d), np.inf),
        np.zeros(d),
    )
