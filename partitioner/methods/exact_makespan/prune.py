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
    return _windows(jobs, path, k, most + slack) and _enough_time(jobs, path, k, most, slack)


@njit(cache=True, nogil=True)
def _mark_live(jobs: Jobs, path: Path, k: int) -> None:
    """Write `floor` and `live`."""
    for v in range(len(jobs.least)):
        if path.device[v] == NOWHERE:
            path.floor[v] = max(path.now[k], jobs.head[v])
            for i in range(jobs.before_start[v], jobs.before_start[v + 1]):
                u = jobs.before[i]
                if path.device[u] == NOWHERE:
                    path.floor[v] = max(path.floor[v], path.floor[u] + jobs.least[u])
    for u in range(len(jobs.least)):
        if path.device[u] != NOWHERE:
            g = jobs.group[u]
            path.live[u] = path.placed[g] < jobs.several[g]
            for i in range(jobs.after_start[u], jobs.after_start[u + 1]):
                w = jobs.after[i]
                if path.device[w] == NOWHERE and path.finish[u] + jobs.farthest[i] > path.floor[w]:
                    path.live[u] = True


@njit(cache=True, nogil=True)
def _label_devices(jobs: Jobs, path: Path, k: int) -> None:
    """Write `holds` and `label`: devices without live tasks are in the same state if all else is the same."""
    label, holds, alike, now = path.label, path.holds, jobs.alike, path.now[k]
    free, room = path.free, path.room
    for d in range(len(holds)):
        holds[d] = False
    for u in range(len(jobs.least)):
        if path.device[u] != NOWHERE and path.live[u]:
            holds[path.device[u]] = True
    for d in range(len(label)):
        label[d] = d
        if not holds[d]:
            for e in range(d):
                same = label[e] == e and not holds[e] and alike[d] == alike[e]
                same = same and room[k, d] == room[k, e]
                if same and max(free[k, d], now) == max(free[k, e], now):
                    label[d] = e
                    break


@njit(cache=True, nogil=True)
def _windows(jobs: Jobs, path: Path, k: int, latest: float) -> bool:
    """Write the least start of each task on each device; return whether all can start somewhere in time.

    A producer that is left is on the same device, or its tensor takes at least the least transfer time.
    """
    earliest, ready, done, label = path.earliest, path.ready, path.done, path.label
    free, room, arrival = path.free, path.room, path.arrival
    device, before_start, before, nearest, time = (
        path.device, jobs.before_start, jobs.before, jobs.nearest, jobs.time,
    )  # fmt: skip
    for v in range(len(device)):
        if device[v] != NOWHERE:
            continue
        ready[v] = done[v] = np.inf
        home = path.home[jobs.group[v]]
        for d in range(len(label)):
            earliest[v, d] = np.inf
            if label[d] != d or (home != d if home != NOWHERE else jobs.size[v] > room[k, d]):
                continue
            start = max(path.floor[v], max(free[k, d], arrival[k, v, d]))
            for i in range(before_start[v], before_start[v + 1]):
                u = before[i]
                if device[u] == NOWHERE:
                    start = max(start, min(earliest[u, d] + time[d, u], done[u] + nearest[i]))
            end = start + time[d, v]
            if end + jobs.tail[v] <= latest:
                earliest[v, d] = start
                ready[v], done[v] = min(ready[v], start), min(done[v], end)
        if ready[v] == np.inf:
            return False
    return True


@njit(cache=True, nogil=True)
def _enough_time(jobs: Jobs, path: Path, k: int, most: float, slack: float) -> bool:
    """Whether the devices have time for the work that must be done between `now` and each deadline."""
    now, free, device, tail, least = path.now[k], path.free, path.device, jobs.tail, jobs.least
    for x in jobs.urgent:
        if device[x] != NOWHERE:
            continue
        end, need, time = most - tail[x], 0.0, 0.0
        for d in range(len(path.label)):
            time += max(0.0, end - max(now, free[k, d]))
        for v in jobs.urgent:
            latest = most - tail[v] - least[v]
            if device[v] == NOWHERE and latest < end:
                need += min(least[v], end - latest)
        if need > time + slack:
            return False
    return True
