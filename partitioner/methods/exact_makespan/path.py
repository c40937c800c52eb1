"""The current partial schedule of the exact search, level by level, and its next steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.exact_makespan.jobs import Jobs
from partitioner.problem.arrays import Bools, Floats, Ints

NOWHERE: int = np.int64(-1)  # type: ignore[assignment]


class Path(NamedTuple):
    """The current partial schedule; level k is that after k tasks.

    Parameters
    ----------
    now
        Shape (n + 1,): no further task starts before this time.
    free, room
        Shape (n + 1, D): when each device is free, and the memory that is left.
    arrival
        Shape (n + 1, n, D): when the inputs that are made by now are on each device.
    device, finish, missing
        Shape (n,): the device of each task or -1, when it ends, and how many of its producers are left.
    home, placed
        Shape (groups,): the device of each group, and how many of its tasks are placed.
    order
        Shape (n,): the tasks placed so far, in their order.
    step_task, step_device, step_start
        Shape (n + 1, n * D): the next steps at each level, in the order in which they are tried.
    steps, tried
        Shape (n + 1,): how many there are, and how many have been tried.
    still
        Shape (n + 1,): whether the next steps of the level leave `now` as it is.
    earliest
        Shape (n, D): scratch space of the bounds; infinity where a task cannot be.
    ready, done
        Shape (n,): scratch space of the bounds: the least start and end of each task on any device.
    floor, live
        Shape (n,): the least start of each task that is left, from `now`, windows and precedence alone, and
        whether the device of a placed task matters to a task that is left.
    label, holds
        Shape (D,): the first device that is in the same state as each device, and whether the device has a
        task whose device matters.
    """

    now: Floats
    free: Floats
    room: Floats
    arrival: Floats
    device: Ints
    finish: Floats
    missing: Ints
    home: Ints
    placed: Ints
    order: Ints
    step_task: Ints
    step_device: Ints
    step_start: Floats
    steps: Ints
    tried: Ints
    still: Ints
    earliest: Floats
    ready: Floats
    done: Floats
    floor: Floats
    live: Bools
    label: Ints
    holds: Bools


def new_path(jobs: Jobs) -> Path:
    """Return the schedule in which nothing is placed; its steps are not known yet."""
    count, n = jobs.time.shape
    levels, groups = n + 1, len(jobs.several)
    return Path(
        now=np.zeros(levels),
        free=np.zeros((levels, count)),
        room=np.repeat(jobs.limit[None], levels, axis=0),
        arrival=np.zeros((levels, n, count)),
        device=np.full(n, NOWHERE),
        finish=np.zeros(n),
        missing=np.diff(jobs.before_start),
        home=np.full(groups, NOWHERE),
        placed=np.zeros(groups, dtype=np.int64),
        order=np.zeros(n, dtype=np.int64),
        step_task=np.zeros((levels, n * count), dtype=np.int64),
        step_device=np.zeros((levels, n * count), dtype=np.int64),
        step_start=np.zeros((levels, n * count)),
        steps=np.zeros(levels, dtype=np.int64),
        tried=np.zeros(levels, dtype=np.int64),
        still=np.zeros(levels, dtype=np.int64),
        earliest=np.zeros((n, count)),
        ready=np.zeros(n),
        done=np.zeros(n),
        floor=np.zeros(n),
        live=np.zeros(n, dtype=np.bool_),
        label=np.zeros(count, dtype=np.int64),
        holds=np.zeros(count, dtype=np.bool_),
    )


@njit(cache=True, nogil=True)
def place(jobs: Jobs, path: Path, k: int, v: int, d: int, begin: float) -> None:
    """Start task `v` on device `d`, which leads from level `k` to the next one."""
    free, room, arrival = path.free, path.room, path.arrival
    end, g = begin + jobs.time[d, v], jobs.group[v]
    for e in range(len(jobs.limit)):
        free[k + 1, e], room[k + 1, e] = free[k, e], room[k, e]
        for w in range(len(jobs.least)):
            arrival[k + 1, w, e] = arrival[k, w, e]
    path.now[k + 1] = path.now[k] if path.still[k] else begin
    free[k + 1, d] = end
    path.device[v], path.finish[v], path.order[k] = d, end, v
    if path.placed[g] == 0:
        path.home[g] = d
        room[k + 1, d] -= jobs.size[v]
    path.placed[g] += 1
    for i in range(jobs.after_start[v], jobs.after_start[v + 1]):
        w = jobs.after[i]
        path.missing[w] -= 1
        for e in range(len(jobs.limit)):
            away = 0.0 if e == d else jobs.slope[d, e] * jobs.after_cost[i] + jobs.intercept[d, e]
            arrival[k + 1, w, e] = max(arrival[k + 1, w, e], end + away)


@njit(cache=True, nogil=True)
def take_back(jobs: Jobs, path: Path, k: int) -> None:
    """Remove the last of `k` + 1 tasks."""
    v = path.order[k]
    g = jobs.group[v]
    path.device[v] = NOWHERE
    path.placed[g] -= 1
    if path.placed[g] == 0:
        path.home[g] = NOWHERE
    for i in range(jobs.after_start[v], jobs.after_start[v + 1]):
        path.missing[jobs.after[i]] += 1
