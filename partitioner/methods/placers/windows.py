"""The least time before and after every task, with transfers, on devices that run one task at a time.

Let task v start at time e. A producer whose tensor cannot have come from another device by then must be on
the device of v, and so must, in turn, the producers of these whose tensors come too late. All of these tasks
run one after another before e. If they cannot, v starts later (after Papadimitriou and Yannakakis, 1990, with
transfer times of edges and without copies of tasks).
"""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks

MOST = 64  # producers on one device that are looked at for each task


def along_lines(lines: Floats, cost: Floats) -> Floats:
    """Return the transfer times of tensors along links of slope and intercept, shape (links, tensors)."""
    return np.asarray(np.outer(lines[:, 0], cost) + lines[:, 1:])


def windows(tasks: Tasks, least: Floats) -> tuple[Floats, Floats]:
    """Return the least time before each task starts and after it ends, shape (n,) each.

    `least` is the least time of each task, shape (n,).
    """
    transfer = along_lines(tasks.links[0], tasks.cost).min(axis=0, initial=np.inf)
    before, after = tasks.before, tasks.after
    head: Floats = least_heads(before.start, before.items, transfer[tasks.before_tensor], least)
    last = tasks.n - 1
    start = after.start[-1] - after.start[::-1]
    items, along = last - after.items[::-1], transfer[tasks.after_tensor[::-1]]
    tail: Floats = least_heads(start, items, along, least[::-1].copy())
    return head, tail[::-1]


@njit(cache=True, nogil=True)
def least_heads(start: Ints, before: Ints, along: Floats, least: Floats) -> Floats:
    """Return the least time before each task starts, shape (n,).

    Parameters
    ----------
    start, before, along
        The producers of each task, which have lower numbers, and the least transfer time of each edge.
    least
        Shape (n,): the least time of each task.
    """
    n = len(least)
    head, far = np.zeros(n), np.full(n, np.inf)
    members = np.empty(MOST, dtype=np.int64)
    for v in range(n):
        for i in range(start[v], start[v + 1]):
            head[v] = max(head[v], head[before[i]] + least[before[i]])
        while True:
            count, until = _gather(start, before, along, least, head, v, far, members)
            for i in range(1, count):  # sorted by head, they run one by one
                u, j = members[i], i
                while j and head[members[j - 1]] > head[u]:
                    members[j] = members[j - 1]
                    j -= 1
                members[j] = u
            busy = 0.0
            for i in range(count):
                busy = max(busy, head[members[i]]) + least[members[i]]
                far[members[i]] = np.inf
            if busy <= head[v]:
                break
            head[v] = min(busy, until)
        far[v] = np.inf
    return head


@njit(cache=True, inner=True, forceinline=True)
def _gather(
    start: Ints, before: Ints, along: Floats, least: Floats, head: Floats, v: int, far: Floats, members: Ints
) -> tuple[int, float]:
    """Collect the tasks that must be on the device of task `v` if it starts at ``head[v]``.

    Returned are their number and the start from which on one of them may be elsewhere. They are
    listed in `members`; `far` is the time from the start of each to the start of `v`, infinity for others.
    """
    count, until, begun, here = 0, np.inf, 0, v
    far[v] = 0.0
    while True:
        for i in range(start[here], start[here + 1]):
            u = before[i]
            comes = head[u] + least[u] + along[i] + far[here]
            if comes > head[v] and far[u] == np.inf and count < len(members):
                far[u] = far[here] + least[u]
                members[count] = u
                count, until = count + 1, min(until, comes)
        if begun == count:
            return count, until
        here = members[begun]
        begun += 1
