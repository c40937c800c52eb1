"""The arrays of the exact search: tasks, edges, windows and devices, forwards or backwards in time.

They are arrays of records, because a kernel compiles faster the fewer arrays it is given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.methods.placers.windows import along_lines, windows
from partitioner.problem.arrays import Floats, Ints, Rows, rows_of
from partitioner.problem.tasks import Tasks
from partitioner.problem.useful_devices import interchangeable

Records = NDArray[np.void]
ROUNDING = 1 - 1e-14  # of sums of memory, which is much less than the tolerance that limits have


def record(floats: str, integers: str = "", switches: str = "") -> np.dtype[np.void]:
    """Return the type of a record, given the names of its fields by their types."""
    kinds = ((floats, np.float64), (integers, np.int64), (switches, np.bool_))
    return np.dtype([(name, kind) for names, kind in kinds for name in names.split()])


TASK = record("size least head tail", "group several twin first_in end_in first_out end_out")
EDGE = record("cost transfer", "task")
LINK = record("slope intercept")
PLACE = record("limit", "alike")


class Jobs(NamedTuple):
    """The tasks of :class:`partitioner.problem.tasks.Tasks` without contention, as the search reads them.

    Parameters
    ----------
    time
        Shape (D, n): time on each device, infinity where a task or its group may not run.
    task
        Shape (n,): `size` is the memory of the whole group, `several` the number of its tasks; `least` is the
        least time of the task, `head` and `tail` the least time before its start and after its end; `twin` is
        an earlier task that is the same in all respects, or -1; edges are those from `first_in` to `end_in`
        of `into` and from `first_out` to `end_out` of `out`.
    into, out
        Shape (E,): the producers of each task, and its consumers, with the costs; `transfer` is the least
        transfer time between two devices in `into`, and the largest in `out`.
    link
        Shape (D, D): a transfer takes slope * cost + intercept.
    device
        Shape (D,): the memory, infinity if all tasks together fit on every device; and the first device that
        each can be exchanged with.
    urgent
        Shape (n,): the tasks by falling tail.
    """

    time: Floats
    task: Records
    into: Records
    out: Records
    link: Records
    device: Records
    urgent: Ints


def jobs_of(tasks: Tasks, reverse: bool = False) -> Jobs:
    """Return the tasks as the search reads them; with `reverse` time runs backwards, from task n - 1 on."""
    edges, cost = _edges(tasks, reverse)
    turn = slice(None, None, -1 if reverse else 1)
    time = np.ascontiguousarray(np.where(tasks.group_allowed[:, tasks.group], tasks.time, np.inf)[:, turn])
    link = np.zeros(tasks.slope.shape, dtype=LINK)
    link["slope"], link["intercept"] = (
        square.T if reverse else square for square in (tasks.slope, tasks.intercept)
    )
    device = np.zeros(len(tasks.limit), dtype=PLACE)
    device["limit"] = tasks.limit * ROUNDING if tasks.limit.min() < tasks.size.sum() else np.inf
    device["alike"] = _alike(tasks, time)
    task = _records(tasks, time.min(axis=0), turn)
    lines = along_lines(tasks.links[0], cost)
    before, into = _ends(edges[:, 1], edges[:, 0], cost, lines.min(axis=0, initial=np.inf), tasks.n)
    after, out = _ends(edges[:, 0], edges[:, 1], cost, lines.max(axis=0, initial=0.0), tasks.n)
    task["first_in"], task["end_in"] = before.start[:-1], before.start[1:]
    task["first_out"], task["end_out"] = after.start[:-1], after.start[1:]
    jobs = Jobs(time, task, into, out, link, device, np.argsort(-task["tail"], kind="stable"))
    task["twin"] = _twins(jobs)
    return jobs


def _records(tasks: Tasks, least: Floats, turn: slice) -> Records:
    """Return the records of the tasks without edges; `least` is in the order of the search, shape (n,)."""
    task = np.zeros(tasks.n, dtype=TASK)
    head, tail = (side[turn] for side in windows(tasks, np.ascontiguousarray(least[turn]))[turn])
    task["least"], task["head"], task["tail"] = least, head, tail
    task["group"], task["size"] = tasks.group[turn], tasks.group_size[tasks.group][turn]
    task["several"] = np.bincount(tasks.group)[task["group"]]
    return task


def _ends(owner: Ints, other: Ints, cost: Floats, transfer: Floats, n: int) -> tuple[Rows, Records]:
    """Return the edges by their owners, as rows of the other ends and as records."""
    rows, order = rows_of(owner, other, n), np.argsort(owner, kind="stable")
    found = np.zeros(len(owner), dtype=EDGE)
    found["task"], found["cost"], found["transfer"] = rows.items, cost[order], transfer[order]
    return rows, found


def _edges(tasks: Tasks, reverse: bool) -> tuple[Ints, Floats]:
    """Return the producer and the consumer of each edge, shape (E, 2), and its cost, shape (E,).

    Of several tensors between two tasks only the dearest one counts, as it comes last.
    """
    pairs = np.column_stack((tasks.before.items, tasks.before.owners()))
    edges, which = np.unique(pairs, axis=0, return_inverse=True)
    cost = np.zeros(len(edges))
    np.maximum.at(cost, which.ravel(), tasks.cost[tasks.before_tensor])
    return (tasks.n - 1 - edges[:, ::-1] if reverse else edges), cost


def _twins(jobs: Jobs) -> Ints:
    """Return for each task the last earlier one that is the same in all respects, or -1, shape (n,)."""
    last: dict[tuple[object, ...], int] = {}
    twin = np.full(len(jobs.task), -1)
    for v, task in enumerate(jobs.task):
        inputs = sorted(jobs.into[["task", "cost"]][task["first_in"] : task["end_in"]].tolist())
        outputs = sorted(jobs.out[["task", "cost"]][task["first_out"] : task["end_out"]].tolist())
        own = -1 if task["several"] == 1 else v
        key = (own, task["size"], jobs.time[:, v].tobytes(), tuple(inputs), tuple(outputs))
        twin[v] = last.get(key, -1)
        last[key] = v
    return twin


def _alike(tasks: Tasks, time: Floats) -> Ints:
    """Return for each device the first one that it can be exchanged with, shape (D,)."""
    same: dict[tuple[float, bytes], list[int]] = {}
    for d, limit in enumerate(tasks.limit.tolist()):
        same.setdefault((limit, time[d].tobytes()), []).append(d)
    alike = np.arange(len(tasks.limit))
    for members in same.values():
        for equal in interchangeable(members, tasks.slope, tasks.intercept):
            alike[equal] = equal[0]
    return alike
