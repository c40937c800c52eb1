"""Whether a partial schedule can still end in time: bounds by windows and by work."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.exact_makespan.jobs import Jobs
from partitioner.methods.exact_makespan.path import NOWHERE, Path


@njit(cache=True, nogil=True)
def can_end(jobs: Jobs, path: Path, k: int, most: float, slack: float) -> bool:
    """Whether no bound forbids that all tasks end by `most`, up to the rounding `slack`.

    The scratch space of the path is written.
    """
    _mark_live(jobs, path, k)
    _label_devices(jobs, path, k)
    return bool(
        _windows(jobs, path, k, most + slack)
        and _fit_where_they_must(jobs, path, most + slack)
        and _enough_time(jobs, path, k, most, slack)
    )


@njit(cache=True, inner=True)
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


@njit(cache=True, inner=True)
def _label_devices(jobs: Jobs, path: Path, k: int) -> None:
    """Write `holds` and `label`: devices without live tasks are in the same state if all else is the same."""
    state, now = path.device, path.level[k].now
    for d in range(len(state)):
        state[d].holds = False
    for u in range(len(jobs.task)):
        if path.task[u].live:
            state[path.task[u].device].holds = True
    for d in range(len(state)):
        state[d].label, state[d].alike = d, 1
        for e in range(d):
            one, other = path.spot[k, d], path.spot[k, e]
            same = not state[d].holds and not state[e].holds and state[e].label == e
            same = same and jobs.device[d].alike == jobs.device[e].alike and one.room == other.room
            if same and max(one.free, now) == max(other.free, now):
                state[d].label = e
                state[e].alike += 1
                break


@njit(cache=True, inner=True)
def _windows(jobs: Jobs, path: Path, k: int, latest: float) -> bool:
    """Write the least start of each task on each device; return whether all can start somewhere in time."""
    earliest, state = path.earliest, path.device
    for v in range(len(jobs.task)):
        task, mine = jobs.task[v], path.task[v]
        if mine.device != NOWHERE:
            continue
        mine.done, mine.only, count = np.inf, NOWHERE, 0
        home = path.group[task.group].device
        for d in range(len(state)):
            earliest[v, d] = np.inf
            fits = home == d if home != NOWHERE else task.size <= path.spot[k, d].room
            if state[d].label != d or not fits:
                continue
            start = max(mine.floor, max(path.spot[k, d].free, path.arrival[k, v, d]))
            start = _after_inputs(jobs, path, v, d, start)
            end = start + jobs.time[d, v]
            if end + task.tail <= latest:
                earliest[v, d] = start
                mine.done = min(mine.done, end)
                count += state[d].alike
                mine.only = d if count == 1 else NOWHERE
        if count == 0:
            return False
    return True


@njit(cache=True, inner=True)
def _after_inputs(jobs: Jobs, path: Path, v: int, d: int, start: float) -> float:
    """Return the least start of a task on a device after its producers that are left.

    Those whose tensors cannot come from elsewhere in time run on the same device, one after another.
    """
    while True:
        begin, busy, last, until = np.inf, 0.0, 0.0, np.inf
        for i in range(jobs.task[v].first_in, jobs.task[v].end_in):
            u = jobs.into[i].task
            comes = path.task[u].done + jobs.into[i].transfer
            if path.task[u].device == NOWHERE and comes > start:
                begin, busy = min(begin, path.earliest[u, d]), busy + jobs.time[d, u]
                last, until = max(last, path.earliest[u, d] + jobs.time[d, u]), min(until, comes)
        if until == np.inf or max(begin + busy, last) <= start:
            return start
        start = min(max(begin + busy, last), until)


@njit(cache=True, inner=True)
def _fit_where_they_must(jobs: Jobs, path: Path, latest: float) -> bool:
    """Whether on each device the tasks that can be on no other end in time, one after another."""
    state = path.device
    for d in range(len(state)):
        state[d].begin, state[d].busy = np.inf, 0.0
    for v in jobs.urgent:
        d = path.task[v].only
        if path.task[v].device == NOWHERE and d != NOWHERE:
            state[d].begin = min(state[d].begin, path.earliest[v, d])
            state[d].busy += jobs.time[d, v]
            if state[d].begin + state[d].busy + jobs.task[v].tail > latest:
                return False
    return True


@njit(cache=True, inner=True)
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
