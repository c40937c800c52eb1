"""The current partial schedule of the exact search, level by level, and its next steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.exact_makespan.jobs import Jobs, Records, record
from partitioner.problem.arrays import Floats

NOWHERE: int = np.int64(-1)  # type: ignore[assignment]
LEVEL = record("now", "steps tried", "still")
SPOT = record("free room")
PLACED = record("finish floor done", "device missing order only", "live")
HOME = record("", "device placed")
STEP = record("start", "task device")
STATE = record("begin busy", "label alike", "holds")


class Path(NamedTuple):
    """The current partial schedule; level k is that after k tasks.

    Parameters
    ----------
    level
        Shape (n + 1,): no further task starts before `now`; the number of next `steps`, how many of them have
        been `tried`, and whether they leave the time `still`.
    spot
        Shape (n + 1, D): when each device is `free`, and the `room` that is left in its memory.
    arrival
        Shape (n + 1, n, D): when the inputs of each task that are made by now are on each device.
    task
        Shape (n,): `device` or -1, `finish`, and how many producers are `missing`. `order` lists the tasks
        placed so far. Of a task that is left, `floor` is the least start by the time, windows and precedence
        alone, `done` the least end, and `only` the one device on which it can end in time, -1 if there are
        several. `live`: the device of a placed task matters to one that is left.
    group
        Shape (groups,): the device of each group, and how many of its tasks are placed.
    step
        Shape (n + 1, n * D): the next steps of each level, in the order in which they are tried.
    earliest
        Shape (n, D): the least start of each task that is left, infinity where it cannot be.
    device
        Shape (D,): the `label` of each device, which is the same for devices in the same state, how many are
        `alike` in this respect, and whether it `holds` a task whose device matters. `begin` and `busy`: from
        when on, and how long, it must run the tasks that cannot be elsewhere.
    """

    level: Records
    spot: Records
    arrival: Floats
    task: Records
    group: Records
    step: Records
    earliest: Floats
    device: Records


def new_path(jobs: Jobs) -> Path:
    """Return the schedule in which nothing is placed; its steps are not known yet."""
    count, n = jobs.time.shape
    path = Path(
        level=np.zeros(n + 1, dtype=LEVEL),
        spot=np.zeros((n + 1, count), dtype=SPOT),
        arrival=np.zeros((n + 1, n, count)),
        task=np.zeros(n, dtype=PLACED),
        group=np.zeros(n, dtype=HOME),
        step=np.zeros((n + 1, n * count), dtype=STEP),
        earliest=np.zeros((n, count)),
        device=np.zeros(count, dtype=STATE),
    )
    path.spot["room"] = jobs.device["limit"]
    path.task["device"], path.group["device"] = NOWHERE, NOWHERE
    path.task["missing"] = jobs.task["end_in"] - jobs.task["first_in"]
    return path


@njit(cache=True, inner=True)
def place(jobs: Jobs, path: Path, k: int, v: int, d: int, begin: float) -> None:
    """Start task `v` on device `d`, which leads from level `k` to the next one."""
    arrival, task, mine = path.arrival, jobs.task[v], path.task[v]
    end, group = begin + jobs.time[d, v], path.group[task.group]
    for e in range(len(jobs.device)):
        path.spot[k + 1, e].free, path.spot[k + 1, e].room = path.spot[k, e].free, path.spot[k, e].room
        for w in range(len(jobs.task)):
            arrival[k + 1, w, e] = arrival[k, w, e]
    path.level[k + 1].now = path.level[k].now if path.level[k].still else begin
    path.spot[k + 1, d].free = end
    mine.device, mine.finish, path.task[k].order = d, end, v
    if group.placed == 0:
        group.device = d
        path.spot[k + 1, d].room -= task.size
    group.placed += 1
    for i in range(task.first_out, task.end_out):
        w = jobs.out[i].task
        path.task[w].missing -= 1
        for e in range(len(jobs.device)):
            away = jobs.link[d, e].slope * jobs.out[i].cost + jobs.link[d, e].intercept
            arrival[k + 1, w, e] = max(arrival[k + 1, w, e], end if e == d else end + away)


@njit(cache=True, inner=True)
def take_back(jobs: Jobs, path: Path, k: int) -> None:
    """Remove the last of `k` + 1 tasks."""
    v = path.task[k].order
    task = jobs.task[v]
    group = path.group[task.group]
    path.task[v].device = NOWHERE
    group.placed -= 1
    if group.placed == 0:
        group.device = NOWHERE
    for i in range(task.first_out, task.end_out):
        path.task[jobs.out[i].task].missing += 1
