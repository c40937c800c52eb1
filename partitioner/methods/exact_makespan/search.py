"""The exact search, depth first, compiled: which task starts next, where and when."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.exact_makespan.jobs import Jobs
from partitioner.methods.exact_makespan.path import NOWHERE, Path, place, take_back
from partitioner.methods.exact_makespan.prune import can_end
from partitioner.methods.exact_makespan.store import Store, is_new
from partitioner.problem.arrays import Ints


@njit(cache=True, nogil=True)
def search(
    jobs: Jobs, path: Path, store: Store, k: int, nodes: int, most: float, slack: float, best: Ints
) -> tuple[int, int, float]:
    """Go on from level `k`, until a schedule is found that ends by `most`, or for a number of nodes.

    Returns
    -------
    tuple
        The level that was reached, -1 at the end of the search; the number of nodes; and the end of the
        schedule that was found and written to `best`, shape (2, n), its devices and its order; or infinity.
    """
    n = len(jobs.task)
    for node in range(nodes):
        while k >= 0 and path.level[k].tried == path.level[k].steps:
            k -= 1
            if k >= 0:
                take_back(jobs, path, k)
        if k < 0:
            return -1, node, np.inf
        step = path.step[k, path.level[k].tried]
        path.level[k].tried += 1
        place(jobs, path, k, step.task, step.device, step.start)
        if k + 1 == n:
            end = 0.0
            for v in range(n):
                end = max(end, path.task[v].finish)
            if end <= most + slack:
                for v in range(n):
                    best[0, v], best[1, v] = path.task[v].device, path.task[v].order
            take_back(jobs, path, k)
            if end <= most + slack:
                return k, node + 1, end
        elif can_end(jobs, path, k + 1, most, slack) and is_new(jobs, path, k + 1, store):
            k += 1
            list_steps(jobs, path, k, most + slack)
        else:
            take_back(jobs, path, k)
    return k, nodes, np.inf


@njit(cache=True, nogil=True)
def list_steps(jobs: Jobs, path: Path, k: int, latest: float) -> None:
    """Write the next steps of level `k`, by start and then by how much must follow.

    Tasks start in order of time, so that none starts when it is too late for another; all must end by
    `latest`. But where one of the ready tasks may be first on every device, only that one is placed, and the
    time does not move on.
    """
    level, late = path.level[k], np.inf
    level.steps, level.tried = 0, 0
    chosen = _first_anywhere(jobs, path, k)
    level.still = chosen != NOWHERE
    for v in range(len(jobs.task)):
        if path.task[v].device == NOWHERE and chosen == NOWHERE:
            late = min(late, latest - jobs.task[v].tail - jobs.task[v].least)
    for v in range(len(jobs.task)):
        twin = jobs.task[v].twin
        ready = path.task[v].device == NOWHERE and path.task[v].missing == 0
        if ready and chosen in (NOWHERE, v) and (twin == NOWHERE or path.task[twin].device != NOWHERE):
            for d in range(len(jobs.device)):
                if path.earliest[v, d] < np.inf and path.earliest[v, d] <= late:
                    _insert(jobs, path, k, v, d)


@njit(cache=True, inner=True)
def _insert(jobs: Jobs, path: Path, k: int, v: int, d: int) -> None:
    """Insert a step in the order of the steps of level `k`."""
    start, place = path.earliest[v, d], path.level[k].steps
    follows = jobs.time[d, v] + jobs.task[v].tail
    while place > 0:
        before, here = path.step[k, place - 1], path.step[k, place]
        u, e = before.task, before.device
        tied = before.start == start and jobs.time[e, u] + jobs.task[u].tail >= follows
        if before.start < start or tied:
            break
        here.task, here.device, here.start = u, e, before.start
        place -= 1
    here = path.step[k, place]
    here.task, here.device, here.start = v, d, start
    path.level[k].steps += 1


@njit(cache=True, inner=True)
def _first_anywhere(jobs: Jobs, path: Path, k: int) -> int:
    """Return a ready task that may come first of all that are ready on every device, or -1.

    There may be one if all ready tasks have no consumer, or all have one consumer, the same; everything else
    that is left then depends on all of them. On each device the tasks come in any order in which inputs come
    no later and outputs are needed no later; a task that is first in both respects may be first.
    """
    chosen, join = NOWHERE, -2
    for v in range(len(jobs.task)):
        task, mine = jobs.task[v], path.task[v]
        if mine.device == NOWHERE and mine.missing == 0:
            count = task.end_out - task.first_out
            consumer = -1 if count == 0 else jobs.out[task.first_out].task
            if count > 1 or join not in (-2, consumer):
                return NOWHERE
            join = consumer
    for v in range(len(jobs.task)):
        longest = chosen == NOWHERE or jobs.task[v].least > jobs.task[chosen].least
        ready = path.task[v].device == NOWHERE and path.task[v].missing == 0
        if longest and ready and _precedes(jobs, path, k, v):
            chosen = v
    return chosen


@njit(cache=True, inner=True)
def _precedes(jobs: Jobs, path: Path, k: int, v: int) -> bool:
    """Whether, on every device, no other ready task has its inputs sooner or is needed sooner than `v`."""
    arrival, now = path.arrival, path.level[k].now
    first = jobs.task[v].first_out
    for w in range(len(jobs.task)):
        if path.task[w].device != NOWHERE or path.task[w].missing or w == v:
            continue
        task = jobs.task[w]
        if task.first_out < task.end_out and jobs.out[task.first_out].cost > jobs.out[first].cost:
            return False
        for d in range(len(jobs.device)):
            sooner = max(arrival[k, w, d], max(path.spot[k, d].free, now))
            if arrival[k, v, d] > sooner and path.earliest[v, d] < np.inf:
                return False
    return True
