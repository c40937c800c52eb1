"""The arrays of the exact search: tasks, edges, windows and devices, forwards or backwards in time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.methods.list_scheduling.ranks import transfer_lines
from partitioner.methods.list_scheduling.windows import along_lines, windows
from partitioner.problem.arrays import Floats, Ints, rows_of
from partitioner.problem.tasks import Tasks


class Jobs(NamedTuple):
    """The tasks of :class:`partitioner.problem.tasks.Tasks` without contention, as the search reads them.

    Parameters
    ----------
    time
        Shape (D, n): time on each device, infinity where a task or its group may not run.
    size, group
        Shape (n,): the memory of the whole group of each task, and the number of the group.
    limit
        Shape (D,): memory of each device; infinity everywhere if all tasks together fit on every device.
    several
        Shape (groups,): how many tasks each group has.
    before_start, before, before_cost, nearest
        The producers of each task, the cost of each edge, and its least transfer time between two devices.
    after_start, after, after_cost, farthest
        The consumers of each task, the cost of each edge, and its largest transfer time.
    slope, intercept
        Shape (D, D): a transfer takes slope * cost + intercept.
    least, head, tail
        Shape (n,): the least time of each task, and the least time before its start and after its end.
    urgent
        Shape (n,): the tasks by falling tail.
    twin
        Shape (n,): an earlier task that is the same in all respects, or -1.
    alike
        Shape (D,): the first device that each device can be exchanged with.
    """

    time: Floats
    size: Floats
    group: Ints
    limit: Floats
    several: Ints
    before_start: Ints
    before: Ints
    before_cost: Floats
    nearest: Floats
    after_start: Ints
    after: Ints
    after_cost: Floats
    farthest: Floats
    slope: Floats
    intercept: Floats
    least: Floats
    head: Floats
    tail: Floats
    urgent: Ints
    twin: Ints
    alike: Ints


def jobs_of(tasks: Tasks, reverse: bool = False) -> Jobs:
    """Return the tasks as the search reads them; with `reverse` time runs backwards and task v is n - 1 - v."""
    edges, cost = _edges(tasks, reverse)
    turn = slice(None, None, -1 if reverse else 1)
    time = np.where(tasks.group_allowed[:, tasks.group], tasks.time, np.inf)[:, turn]
    least = np.ascontiguousarray(time.min(axis=0))
    slope, intercept = (
        np.ascontiguousarray(square.T if reverse else square) for square in (tasks.slope, tasks.intercept)
    )
    before, after = rows_of(edges[:, 1], edges[:, 0], tasks.n), rows_of(edges[:, 0], edges[:, 1], tasks.n)
    by_consumer, by_producer = (cost[np.argsort(edges[:, end], kind="stable")] for end in (1, 0))
    lines = transfer_lines(tasks)[0]
    head, tail = windows(tasks, np.ascontiguousarray(least[turn]))[:: -1 if reverse else 1]
    jobs = Jobs(
        time=np.ascontiguousarray(time),
        size=np.ascontiguousarray(tasks.group_size[tasks.group][turn]),
        group=np.ascontiguousarray(tasks.group[turn]),
        limit=tasks.limit if tasks.limit.min() < tasks.size.sum() else np.full(len(tasks.limit), np.inf),
        several=np.bincount(tasks.group),
        before_start=before.start,
        before=before.items,
        before_cost=by_consumer,
        nearest=along_lines(lines, by_consumer).min(axis=0, initial=np.inf),
        after_start=after.start,
        after=after.items,
        after_cost=by_producer,
        farthest=along_lines(lines, by_producer).max(axis=0, initial=0.0),
        slope=slope,
        intercept=intercept,
        least=least,
        head=np.ascontiguousarray(head[turn]),
        tail=np.ascontiguousarray(tail[turn]),
        urgent=np.argsort(-tail[turn], kind="stable"),
        twin=np.full(tasks.n, -1),
        alike=_alike(tasks, time),
    )
    return jobs._replace(twin=_twins(jobs))


def _edges(tasks: Tasks, reverse: bool) -> tuple[Ints, Floats]:
    """Return the producer and the consumer of each edge, shape (E, 2), and its cost, shape (E,)."""
    edges = np.column_stack((tasks.before.items, tasks.before.owners()))
    return (tasks.n - 1 - edges[:, ::-1] if reverse else edges), tasks.cost[tasks.before_tensor]


def _twins(jobs: Jobs) -> Ints:
    """Return for each task the last earlier one that is the same in all respects, or -1, shape (n,)."""
    last: dict[tuple[object, ...], int] = {}
    twin = np.full(len(jobs.least), -1)
    for v in range(len(twin)):
        into = slice(jobs.before_start[v], jobs.before_start[v + 1])
        out = slice(jobs.after_start[v], jobs.after_start[v + 1])
        inputs = sorted(zip(jobs.before[into].tolist(), jobs.before_cost[into].tolist(), strict=True))
        outputs = sorted(zip(jobs.after[out].tolist(), jobs.after_cost[out].tolist(), strict=True))
        own = -1 if jobs.several[jobs.group[v]] == 1 else v
        key = (own, jobs.size[v], jobs.time[:, v].tobytes(), tuple(inputs), tuple(outputs))
        twin[v] = last.get(key, -1)
        last[key] = v
    return twin


def _alike(tasks: Tasks, time: Floats) -> Ints:
    """Return for each device the first one that it can be exchanged with, shape (D,)."""
    count = len(tasks.limit)
    alike = np.arange(count)
    for d in range(count):
        for e in range(d):
            if alike[e] == e and tasks.limit[d] == tasks.limit[e] and _exchangeable(tasks, time, d, e):
                alike[d] = e
                break
    return alike


def _exchangeable(tasks: Tasks, time: Floats, d: int, e: int) -> bool:
    swapped = np.arange(len(tasks.limit))
    swapped[[d, e]] = e, d
    pairs = np.ix_(swapped, swapped)
    return bool(
        np.array_equal(time[d], time[e])
        and np.array_equal(tasks.slope, tasks.slope[pairs])
        and np.array_equal(tasks.intercept, tasks.intercept[pairs])
    )
