"""The next steps from a partial schedule: which task starts next, where and when."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.exact_makespan.jobs import Jobs
from partitioner.methods.exact_makespan.path import NOWHERE, Path
from partitioner.problem.arrays import Ints


@njit(cache=True, nogil=True)
def list_steps(jobs: Jobs, path: Path, k: int, latest: float) -> None:
    """Write the next steps of level `k`, by start and then by how much must follow.

    Tasks start in order of time, so that none starts when it is too late for another, all of which must end by
    `latest`. But where one of the ready tasks may be first on every device, only that one is placed, and the
    time does not move on.
    """
    path.steps[k] = path.tried[k] = 0
    chosen = _first_anywhere(jobs, path, k)
    path.still[k] = chosen != NOWHERE
    late = np.inf
    for v in range(len(jobs.least)):
        if path.device[v] == NOWHERE and chosen == NOWHERE:
            late = min(late, latest - jobs.tail[v] - jobs.least[v])
    for v in range(len(jobs.least)):
        if chosen in (NOWHERE, v) and _is_next(jobs, path, v):
            for d in range(len(jobs.limit)):
                if path.earliest[v, d] < np.inf and path.earliest[v, d] <= late:
                    _insert(jobs, path, k, v, d)


@njit(cache=True, nogil=True)
def _is_next(jobs: Jobs, path: Path, v: int) -> bool:
    """Whether a task is left and ready, and no equal task comes before it."""
    twin = jobs.twin[v]
    return bool(
        path.device[v] == NOWHERE
        and path.missing[v] == 0
        and (twin == NOWHERE or path.device[twin] != NOWHERE)
    )


@njit(cache=True, nogil=True)
def _insert(jobs: Jobs, path: Path, k: int, v: int, d: int) -> None:
    """Insert a step in the order of the steps of level `k`."""
    start, place = path.earliest[v, d], path.steps[k]
    follows = jobs.time[d, v] + jobs.tail[v]
    while place > 0:
        u, e, begin = path.step_task[k, place - 1], path.step_device[k, place - 1], path.step_start[k, place - 1]
        if begin < start or (begin == start and jobs.time[e, u] + jobs.tail[u] >= follows):
            break
        path.step_task[k, place], path.step_device[k, place], path.step_start[k, place] = u, e, begin
        place -= 1
    path.step_task[k, place], path.step_device[k, place], path.step_start[k, place] = v, d, start
    path.steps[k] += 1


@njit(cache=True, nogil=True)
def _first_anywhere(jobs: Jobs, path: Path, k: int) -> int:
    """Return a ready task that may come first of all that are ready on every device, or -1.

    There may be one if all ready tasks have no consumer, or all have one consumer, the same; everything else
    that is left then depends on all of them. On each device the tasks come in any order in which inputs come
    no later and outputs are needed no later; a task that is first in both respects may be first.
    """
    chosen = NOWHERE
    if _have_one_consumer(jobs, path):
        for v in range(len(jobs.least)):
            longest = chosen == NOWHERE or jobs.least[v] > jobs.least[chosen]
            if longest and path.device[v] == NOWHERE and path.missing[v] == 0 and _precedes(jobs, path, k, v):
                chosen = v
    return chosen


@njit(cache=True, nogil=True)
def _have_one_consumer(jobs: Jobs, path: Path) -> bool:
    """Whether no ready task has a consumer, or all have one consumer, the same."""
    join = -2
    for v in range(len(jobs.least)):
        if path.device[v] == NOWHERE and path.missing[v] == 0:
            i, count = jobs.after_start[v], jobs.after_start[v + 1] - jobs.after_start[v]
            mine = -1 if count == 0 else jobs.after[i]
            if count > 1 or join not in (-2, mine):
                return False
            join = mine
    return True


@njit(cache=True, nogil=True)
def _precedes(jobs: Jobs, path: Path, k: int, v: int) -> bool:
    """Whether, on every device, no other ready task has its inputs sooner or is needed sooner than `v`."""
    device, missing, label = path.device, path.missing, path.label
    arrival, free, now = path.arrival, path.free, path.now[k]
    first, cost = jobs.after_start, jobs.after_cost
    mine = cost[first[v]] if first[v] < first[v + 1] else 0.0
    for w in range(len(device)):
        if device[w] != NOWHERE or missing[w] or w == v:
            continue
        if first[w] < first[w + 1] and cost[first[w]] > mine:
            return False
        for d in range(len(label)):
            sooner = max(arrival[k, w, d], max(free[k, d], now))
            if arrival[k, v, d] > sooner and path.earliest[v, d] < np.inf:
                return False
    return True
