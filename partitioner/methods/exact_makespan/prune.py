"""Whether a partial schedule can still end in time: bounds by windows and by work."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.exact_makespan.jobs import Jobs
from partitioner.methods.exact_makespan.path import NOWHERE, Path


@njit(cache=True, nogil=True)
def can_end(jobs: Jobs, path: Path, k: int, most: float, slack: float) -> bool:
    """Whether no bound forbids that all tasks end by `most`, up to the rounding `slack`.

    Written are `floor`, `done` and `live` of the tasks, `earliest`, `label` and `holds`.
    """
    _mark_live(jobs, path, k)
    _label_devices(jobs, path, k)
    return bool(_windows(jobs, path, k, most + slack) and _enough_time(jobs, path, k, most, slack))


@njit(cache=True, nogil=True)
def _mark_live(jobs: Jobs, path: Path, k: int) -> None:
    """Write `floor` and `live`."""
    for v in range(len(jobs.task)):
        task, mine = jobs.task[v], path.task[v]
        if mine.device == NOWHERE:
            mine.floor = max(path.level[k].now, task.head)
            for i in range(task.first_in, task.end_in):
                u = jobs.into[i].task
                if path.task[u].device == NOWHERE:
                    mine.floor = max(mine.floor, path.task[u].floor + jobs.task[u].least)
    for u in range(len(jobs.task)):
        task, mine = jobs.task[u], path.task[u]
        mine.live = mine.device != NOWHERE and path.group[task.group].placed < task.several
        for i in range(task.first_out, task.end_out):
            other = path.task[jobs.out[i].task]
            if mine.device != NOWHERE and other.device == NOWHERE:
                mine.live |= mine.finish + jobs.out[i].transfer > other.floor


@njit(cache=True, nogil=True)
def _label_devices(jobs: Jobs, path: Path, k: int) -> None:
    """Write `holds` and `label`: devices without live tasks are in the same state if all else is the same."""
    state, now = path.device, path.level[k].now
    for d in range(len(state)):
        state[d].holds = False
    for u in range(len(jobs.task)):
        if path.task[u].live:
            state[path.task[u].device].holds = True
    for d in range(len(state)):
        state[d].label = d
        for e in range(d):
            one, other = path.spot[k, d], path.spot[k, e]
            same = not state[d].holds and not state[e].holds and state[e].label == e
            same = same and jobs.device[d].alike == jobs.device[e].alike and one.room == other.room
            if same and max(one.free, now) == max(other.free, now):
                state[d].label = e
                break


@njit(cache=True, nogil=True)
def _windows(jobs: Jobs, path: Path, k: int, latest: float) -> bool:
    """Write the least start of each task on each device; return whether all can start somewhere in time.

    A producer that is left is on the same device, or its tensor takes at least the least transfer time.
    """
    earliest, state = path.earliest, path.task
    for v in range(len(state)):
        task, mine = jobs.task[v], state[v]
        if mine.device != NOWHERE:
            continue
        mine.done = np.inf
        home = path.group[task.group].device
        for d in range(len(path.device)):
            earliest[v, d] = np.inf
            if path.device[d].label != d or (
                home != d if home != NOWHERE else task.size > path.spot[k, d].room
            ):
                continue
            start = max(mine.floor, max(path.spot[k, d].free, path.arrival[k, v, d]))
            for i in range(task.first_in, task.end_in):
                u = jobs.into[i].task
                if state[u].device == NOWHERE:
                    here, there = earliest[u, d] + jobs.time[d, u], state[u].done + jobs.into[i].transfer
                    start = max(start, min(here, there))
            end = start + jobs.time[d, v]
            if end + task.tail <= latest:
                earliest[v, d] = start
                mine.done = min(mine.done, end)
        if mine.done == np.inf:
            return False
    return True


@njit(cache=True, nogil=True)
def _enough_time(jobs: Jobs, path: Path, k: int, most: float, slack: float) -> bool:
    """Whether the devices have time for the work that must be done between `now` and each deadline."""
    for x in jobs.urgent:
        if path.task[x].device != NOWHERE:
            continue
        end, need, time = most - jobs.task[x].tail, 0.0, 0.0
        for d in range(len(path.device)):
            time += max(0.0, end - max(path.level[k].now, path.spot[k, d].free))
        for v in range(len(jobs.task)):
            latest = most - jobs.task[v].tail - jobs.task[v].least
            if path.task[v].device == NOWHERE and latest < end:
                need += min(jobs.task[v].least, end - latest)
        if need > time + slack:
            return False
    return True
