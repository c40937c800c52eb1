"""Moves of one supernode over the boundary of two stages."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from partitioner.problem.arrays import Ints, Rows
from partitioner.problem.problem import Problem
from partitioner.workload.graph import Bools


def boundary_moves(problem: Problem, stage: Ints) -> Iterator[Ints]:
    """Yield the stages of all supernodes after each move of one of them to the stage before or after.

    A supernode may move to the next stage if nothing of its own stage depends on it, and to the stage
    before if it depends on nothing of its own stage; so chains stay chains. No stage is emptied.

    Parameters
    ----------
    problem
        The contracted problem of n supernodes.
    stage
        Shape (n,): the stage of every supernode, from 0.
    """
    size, last = np.bincount(stage), int(stage.max())
    later, earlier = _free(problem.successors, stage), _free(problem.predecessors, stage)
    for node, own in enumerate(stage.tolist()):
        for free, other in ((later, own + 1), (earlier, own - 1)):
            if free[node] and 0 <= other <= last and size[own] > 1:
                moved = stage.copy()
                moved[node] = other
                yield moved


def _free(neighbours: Rows, stage: Ints) -> Bools:
    """Return for each supernode, shape (n,), whether it has no neighbour in its own stage."""
    count = np.diff(neighbours.start)
    owner = np.repeat(np.arange(len(count)), count)
    within = np.bincount(owner[stage[owner] == stage[neighbours.items]], minlength=len(count))
    return np.asarray(within == 0)
