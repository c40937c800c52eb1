"""Simulated annealing on the makespan, compiled."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.refine.moves import propose, take_back
from partitioner.methods.list_scheduling.refine.walk import Walk, sort_by_start, time_from, trace
from partitioner.methods.list_scheduling.task_arrays import FIRST, NOWHERE, PartialSchedule, TaskArrays
from partitioner.problem.arrays import Floats, Ints

ROUNDING = 1 + 1e-12


@njit(cache=True, nogil=True)
def anneal(
    arrays: TaskArrays,
    state: PartialSchedule,
    walk: Walk,
    best_device: Ints,
    best_order: Ints,
    best: float,
    heat: Floats,
    seed: int,
) -> float:
    """Try one move for every temperature in `heat`; keep the best placement and return its makespan.

    Parameters
    ----------
    arrays, state
        The tasks, and a schedule as scratch space for the timing with contention.
    walk
        The current placement of the search, from which it continues.
    best_device, best_order, best
        The best placement so far, which is overwritten, and its makespan.
    heat
        Shape (moves,): the temperatures, in the unit of time.
    seed
        Seed of the random moves.

    Returns
    -------
    float
        The makespan of the best placement.
    """
    np.random.seed(seed)
    sort_by_start(arrays, walk)
    value = time_from(arrays, state, walk, FIRST, np.inf)[0]
    walk.finish[:] = walk.trial
    steps = trace(arrays, state, walk)
    for temperature in heat:
        most = (value - temperature * np.log(1.0 - np.random.random())) * ROUNDING
        first, count, source, target = propose(arrays, walk, steps)
        if first == NOWHERE:
            continue
        reached, until = time_from(arrays, state, walk, first, most)
        if reached > most:
            for i in range(first, until):
                walk.trial[walk.order[i]] = walk.finish[walk.order[i]]
            take_back(arrays, walk, count, source, target)
            continue
        value = reached
        walk.finish[:] = walk.trial
        steps = trace(arrays, state, walk)
        if value < best:
            best = value
            best_device[:] = walk.device
            best_order[:] = walk.order
    return best
