"""The exact search, depth first, compiled."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.exact_makespan.jobs import Jobs
from partitioner.methods.exact_makespan.path import Path, place, take_back
from partitioner.methods.exact_makespan.prune import can_end
from partitioner.methods.exact_makespan.steps import list_steps
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
            end = _keep(path, most + slack, best)
            take_back(jobs, path, k)
            if end <= most + slack:
                return k, node + 1, end
        elif can_end(jobs, path, k + 1, most, slack) and is_new(jobs, path, k + 1, store):
            k += 1
            list_steps(jobs, path, k, most + slack)
        else:
            take_back(jobs, path, k)
    return k, nodes, np.inf


@njit(cache=True, inner=True)
def _keep(path: Path, most: float, best: Ints) -> float:
    """Return the end of a schedule of all tasks; keep the schedule if it ends by `most`."""
    end = 0.0
    for v in range(best.shape[1]):
        end = max(end, path.task[v].finish)
    if end <= most:
        for v in range(best.shape[1]):
            best[0, v], best[1, v] = path.task[v].device, path.task[v].order
    return end
