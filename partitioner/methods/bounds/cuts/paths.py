"""The cheapest sequences of cuts through windows of work, from nothing on the left to everything.

A cut is numbered by the paying stages on its left, and has a phase: the free device is not in use yet, has
the next stage, had the last one, or is further to the left. Without a free device the first is the only one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.problem.arrays import Bools, Floats

UNUSED, NEXT, LAST, USED = range(4)
PAYING = (
    (UNUSED, UNUSED),
    (UNUSED, NEXT),
    (LAST, USED),
    (USED, USED),
)  # phases at both ends of a paying stage


class Steps(NamedTuple):
    """Whether a stage may begin at a cut in one window and end at a cut in another, shape (W, W) each."""

    paying: Bools
    free: Bools


class Paths(NamedTuple):
    """What the cuts of a sequence cost at least, shape (count + 1, 4, W) each, infinity if there is none.

    Parameters
    ----------
    ahead, behind
        Cost of a cut and of all cuts before it, and after it.
    cost
        Shape (4, W): cost of a cut in each phase, for all devices that pay.
    """

    ahead: Floats
    behind: Floats
    cost: Floats

    @property
    def through(self) -> Floats:
        """The least cost of a sequence through each cut."""
        return self.ahead + self.behind - self.cost


def cheapest_paths(steps: Steps, allowed: Bools, both: Floats, one: Floats) -> Paths:
    """Return the least cost of sequences of cuts.

    Parameters
    ----------
    steps
        The stages that are possible.
    allowed
        Shape (count + 1, 4, W): the cuts that are possible.
    both, one
        Shape (W,): the cost of a cut for each side if both pay, and where only one side pays.
    """
    cost = np.array([2 * both, one, one, 2 * both])
    last = len(allowed) - 1
    ahead, behind = np.full(allowed.shape, np.inf), np.full(allowed.shape, np.inf)
    ahead[0, [UNUSED, NEXT], 0] = 0.0
    behind[last, [UNUSED, LAST, USED], -1] = 0.0
    for number in range(last + 1):
        if number:
            for start, end in PAYING:
                reached = _forwards(ahead[number - 1, start], steps.paying) + cost[end]
                ahead[number, end] = np.minimum(ahead[number, end], reached)
        ahead[number][~allowed[number]] = np.inf
        reached = _forwards(ahead[number, NEXT], steps.free) + cost[LAST]
        ahead[number, LAST] = np.where(allowed[number, LAST], reached, np.inf)
    for number in range(last, -1, -1):
        if number < last:
            for start, end in PAYING:
                reached = _forwards(behind[number + 1, end], steps.paying.T) + cost[start]
                behind[number, start] = np.minimum(behind[number, start], reached)
        behind[number][~allowed[number]] = np.inf
        reached = _forwards(behind[number, LAST], steps.free.T) + cost[NEXT]
        behind[number, NEXT] = np.where(allowed[number, NEXT], reached, np.inf)
    return Paths(ahead, behind, cost)


def _forwards(cost: Floats, step: Bools) -> Floats:
    """Return the least cost with which each window is reached by one step."""
    reached: Floats = np.where(step, cost[:, None], np.inf).min(axis=0)
    return reached
