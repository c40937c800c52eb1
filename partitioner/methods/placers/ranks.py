"""Priorities of tasks: longest paths to the exits and from the entries, and orders made of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.placers.windows import along_lines
from partitioner.problem.arrays import Floats, Ints, Rows
from partitioner.problem.tasks import Tasks


def upward_rank(tasks: Tasks) -> Floats:
    """Return HEFT's rank: the longest path to an exit, with mean times and transfers, shape (n,)."""
    return bottom_level(tasks, mean_time(tasks), mean_transfer(tasks))


def largest_rank(tasks: Tasks) -> Floats:
    """Return FastT's rank (Section 5.1): the longest path to an exit, with largest times and transfers."""
    return bottom_level(tasks, largest_time(tasks), largest_transfer(tasks))


def topological(tasks: Tasks) -> Floats:
    """Return priorities that keep the tasks in the order of their numbers, shape (n,).

    That is the order of the file as far as the edges allow.
    """
    return -np.arange(tasks.n, dtype=np.float64)


PRIORITIES: dict[str, Callable[[Tasks], Floats]] = {
    "upward_rank": upward_rank,
    "largest_rank": largest_rank,
    "topological": topological,
}


def bottom_level(tasks: Tasks, time: Floats, transfer: Floats) -> Floats:
    """Return the longest path from each task to an exit, its own time included, shape (n,).

    Parameters
    ----------
    tasks
        The tasks.
    time
        Shape (n,): of each task.
    transfer
        Shape (T,): of each tensor.
    """
    along = time[tasks.after.owners()] + transfer[tasks.after_tensor]
    order = np.arange(tasks.n - 1, -1, -1)
    level: Floats = longest_paths(order, tasks.after, along, time, np.zeros(tasks.n))
    return level


def top_level(tasks: Tasks, time: Floats, transfer: Floats) -> Floats:
    """Return the longest path to each task without its own time, shape (n,); see :func:`bottom_level`."""
    along, order = transfer[tasks.before_tensor], np.arange(tasks.n)
    level: Floats = longest_paths(order, tasks.before, along, np.zeros(tasks.n), time)
    return level


def mean_time(tasks: Tasks) -> Floats:
    """Return the mean time of each task over the devices that may run it, shape (n,)."""
    may = np.isfinite(tasks.time)
    return np.asarray(np.where(may, tasks.time, 0.0).sum(axis=0) / np.maximum(may.sum(axis=0), 1))


def largest_time(tasks: Tasks) -> Floats:
    """Return the largest time of each task over the devices that may run it, shape (n,)."""
    return np.asarray(np.where(np.isfinite(tasks.time), tasks.time, 0.0).max(axis=0))


def mean_transfer(tasks: Tasks) -> Floats:
    """Return the mean transfer time of each tensor over all pairs of different devices, shape (T,)."""
    lines, counts = tasks.links
    if not len(lines):
        return np.zeros(len(tasks.cost))
    slope, intercept = np.average(lines, axis=0, weights=counts)
    return np.asarray(slope * tasks.cost + intercept)


def largest_transfer(tasks: Tasks) -> Floats:
    """Return the largest transfer time of each tensor over all pairs of different devices, shape (T,)."""
    return np.asarray(along_lines(tasks.links[0], tasks.cost).max(axis=0, initial=0.0))


def ordered(tasks: Tasks, priority: Floats) -> Ints:
    """Return a topological order in which the ready task of largest priority always comes next, shape (n,).

    Among equals the task with the lowest number comes first.

    Parameters
    ----------
    tasks
        The tasks.
    priority
        Shape (n,): the priority of each task.
    """
    missing = np.diff(tasks.before.start)
    left, keys = missing.tolist(), (-priority).tolist()
    start, after = tasks.after.start.tolist(), tasks.after.items.tolist()
    ready = [(keys[v], v) for v in np.flatnonzero(missing == 0).tolist()]
    heapq.heapify(ready)
    order = []
    while ready:
        _, v = heapq.heappop(ready)
        order.append(v)
        for w in after[start[v] : start[v + 1]]:
            left[w] -= 1
            if not left[w]:
                heapq.heappush(ready, (keys[w], w))
    return np.array(order, dtype=np.int64)


@njit(cache=True, nogil=True)
def longest_paths(order: Ints, rows: Rows, along: Floats, own: Floats, through: Floats) -> Floats:
    """Return the longest path to each node, shape (n,).

    Parameters
    ----------
    order
        The nodes, each after those of its row.
    rows, along
        The nodes before each one, and the length of each edge.
    own, through
        Shape (n,): the length of the path that begins with a node, and what a path through it adds.
    """
    length = own.copy()
    for v in order:
        for e in range(rows.start[v], rows.start[v + 1]):
            u = rows.items[e]
            length[v] = max(length[v], along[e] + (length[u] + through[u]))
    return length
