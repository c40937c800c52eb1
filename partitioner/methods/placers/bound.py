"""A lower bound on the end of the last task.

A lower bound on makespans from the transfers that cannot be avoided.

Connected tasks that use k devices cut at least k - 1 of their edges. A path through a cut edge takes its
transfer in addition. On fewer devices the tasks take longer, or do not fit in the memory.
"""

from __future__ import annotations

import numpy as np

from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.latency.path import best_times
from partitioner.methods.placers.found import time_unit
from partitioner.methods.placers.ranks import bottom_level, top_level
from partitioner.methods.placers.windows import along_lines, windows
from partitioner.methods.units import rounded_up
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.tasks import Tasks
from partitioner.problem.variants import OperatorNodes


def cut_bound(tasks: Tasks, least: Floats, head: Floats, tail: Floats) -> float:
    """Return a lower bound on the makespan, infinity if some connected tasks do not fit in all memories.

    Parameters
    ----------
    tasks
        The tasks.
    least, head, tail
        Shape (n,): the least time of each task, before its start, and after its end.
    """
    edges = np.column_stack((tasks.before.items, tasks.before.owners()))
    transfer = along_lines(tasks.links[0], tasks.cost).min(axis=0, initial=np.inf)
    through = (head + least)[edges[:, 0]] + transfer[tasks.before_tensor] + (least + tail)[edges[:, 1]]
    component = _components(tasks, edges)
    apart = tasks.group[edges[:, 0]] != tasks.group[edges[:, 1]]
    cuts, where = through[apart], component[edges[apart, 0]]
    return max(
        (
            _of_component(tasks, component == c, least, np.sort(cuts[where == c]))
            for c in np.unique(component).tolist()
        ),
        default=0.0,
    )


def _of_component(tasks: Tasks, inside: Bools, least: Floats, cuts: Floats) -> float:
    """Return the bound of connected tasks; `cuts` are the lengths of the paths through each edge, sorted."""
    room = np.cumsum(np.sort(tasks.limit)[::-1])
    count = 1 + np.arange(min(len(room), 1 + len(cuts)))
    value = np.maximum(least[inside].sum() / count, np.concatenate(([0.0], cuts))[count - 1])
    return float(value[room[count - 1] >= tasks.size[inside].sum()].min(initial=np.inf))


def _components(tasks: Tasks, edges: Ints) -> Ints:
    """Return a number for each task that is the same where edges and groups connect tasks, shape (n,)."""
    label = np.arange(tasks.n)
    first = np.unique(tasks.group, return_index=True)[1][tasks.group]
    pairs = np.concatenate((edges, np.column_stack((first, np.arange(tasks.n)))))
    while True:
        low = label[pairs].min(axis=1)
        after = label.copy()
        for end in (0, 1):
            np.minimum.at(after, pairs[:, end], low)
        after = after[after]
        if np.array_equal(after, label):
            return label
        label = after


THRESHOLDS = 200
ROUNDING = 1 - 1e-12
LARGEST = 5_000  # tasks of a graph for which transfers are taken into account


def makespan_bound(problem: OperatorNodes) -> float:
    """Return a lower bound on the makespan of every placement and order.

    It is the largest of four: the work shared by all devices
    (:func:`partitioner.methods.bounds.relaxation.relax`); the longest path, where the tasks of a group run
    one after another; for thresholds a and b, a + b + the work of all tasks that cannot start before
    a and must end b before the end, shared by all devices (after Fernandez and Bussell, 1973); and the
    transfers that cannot be avoided (:func:`partitioner.methods.placers.bound.cut_bound`). What must
    come before and after a task counts transfers, too
    (:mod:`partitioner.methods.placers.windows`). In graphs of more than `LARGEST` tasks transfers are
    left out. If all times are multiples of a unit, so is the bound. It is infinity if some task may run
    nowhere, or the memory is too small.
    """
    tasks = problem.tasks
    least = best_times(problem)
    if np.isinf(least).any():
        return np.inf
    relaxation = relax(problem)
    head, tail = _around(tasks, least)
    work, speed = _shared(problem, relaxation.time_price)
    swept = max(_sweep(head, tail, work / speed), _sweep(head, tail, least / problem.count.sum()))
    path = float((head + least + tail).max(initial=0.0))
    cut = cut_bound(tasks, least, head, tail) if tasks.n <= LARGEST else 0.0
    return rounded_up(
        max(relaxation.bound, max(swept, path, cut, _grouped(tasks, head, tail)) * ROUNDING), time_unit(tasks)
    )


def _around(tasks: Tasks, least: Floats) -> tuple[Floats, Floats]:
    """Return the least time before each task starts and after it ends, shape (n,) each."""
    if tasks.n <= LARGEST:
        return windows(tasks, least)
    free = np.zeros(len(tasks.cost))
    return top_level(tasks, least, free), bottom_level(tasks, least, free) - least


def _shared(problem: OperatorNodes, price: Floats) -> tuple[Floats, float]:
    """Return the share of each task in the joint capacity, shape (n,), and the capacity per unit of time."""
    present = problem.count > 0
    usable = problem.allowed & present[:, None]
    work = np.where(usable, problem.time.sum(axis=1) * price[:, None], np.inf).min(axis=0)
    speed = float(problem.count @ price)
    return (work, speed) if speed > 0 else (np.zeros(problem.n), 1.0)


def _sweep(head: Floats, tail: Floats, share: Floats) -> float:
    """Return the largest a + b + the shares of the tasks with heads of at least a and tails of at least b."""
    order = np.argsort(-tail, kind="stable")
    head, tail, share = head[order], tail[order], share[order]
    levels = np.unique(head)
    best = 0.0
    for a in levels[np.linspace(0, len(levels) - 1, min(THRESHOLDS, len(levels))).astype(np.int64)].tolist():
        late = head >= a
        head, tail, share = head[late], tail[late], share[late]
        best = max(best, a + float((tail + np.cumsum(share)).max()))
    return best


def _grouped(tasks: Tasks, head: Floats, tail: Floats) -> float:
    """Return the longest time of a group on its best device, plus its least head and least tail."""
    count = len(tasks.group_size)
    distinct = {row.tobytes(): row for row in tasks.time}.values()  # np.unique of long rows takes seconds
    time = np.array([np.bincount(tasks.group, row, count) for row in distinct])
    first, last = np.full(count, np.inf), np.full(count, np.inf)
    np.minimum.at(first, tasks.group, head)
    np.minimum.at(last, tasks.group, tail)
    return float((time.min(axis=0) + first + last).max(initial=0.0))
