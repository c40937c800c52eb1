"""What a threshold demands of the states of the search: bounds on what the rest of the graph needs."""

from __future__ import annotations

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.communication_kernel import SEQUENTIAL
from partitioner.methods.dp.anytime.arrays import Demand
from partitioner.methods.dp.table import SLACK, growth_of, used_devices
from partitioner.methods.method import ROUNDING
from partitioner.problem.arrays import Floats
from partitioner.problem.problem import Problem
from partitioner.workload.devices import COMMUNICATION_MODELS

THIRD = 1 / 3


class DemandSource:
    """The demands of one problem at any threshold.

    Parameters
    ----------
    problem, relaxation
        The problem, and its relaxation, whose weights make the first bound.
    """

    def __init__(self, problem: Problem, relaxation: Relaxation) -> None:
        self.problem, self.relaxation = problem, relaxation
        _, self.left, self.following = used_devices(problem)
        self.growth = growth_of(problem)
        self.toll = _toll(problem, relaxation)

    def at(self, threshold: float) -> Demand:
        """Return what the threshold demands; loads may exceed it by the error of rounding."""
        threshold *= 1 + ROUNDING
        capacity = self.relaxation.capacity(threshold, self.left, self.problem.memory)
        capacity += SLACK * (self.relaxation.weight.sum() + capacity)
        shares = device_shares(self.problem, threshold)
        devices = self.left.sum(axis=1) + SLACK * (self.problem.n + self.problem.count.sum())
        return Demand(
            threshold=threshold,
            weight=np.vstack((self.relaxation.weight, shares)),
            capacity=np.vstack((capacity, *(devices for _ in shares))),
            toll=self.toll,
            left=self.left,
            following=self.following,
            growth=self.growth,
        )


def _toll(problem: Problem, relaxation: Relaxation) -> float:
    """Return what a cut net takes at least of the joint capacity of later devices, for each unit of its cost.

    One of them pays for it, so that it is the least over all kinds; 0 unless transfers add to the load.
    """
    if COMMUNICATION_MODELS.index(problem.communication) != SEQUENTIAL:
        return 0.0
    return float((relaxation.time_price * problem.transfer_factor)[problem.count > 0].min())


def device_shares(problem: Problem, threshold: float) -> Floats:
    """Return two shares of a device that every supernode needs at a threshold, shape (2, n).

    No two supernodes that take more than half of the threshold share a device, and no three that take more
    than a third; what takes exactly a half or a third counts as much of it (bounds 2 and 3 of assembly
    lines: Scholl and Becker 2006, Section 2.2.1).
    """
    time = problem.work()[problem.count > 0].min(axis=0)
    share = np.divide(time, threshold, out=np.where(time > 0, np.inf, 0.0), where=threshold > 0)
    above = [share > limit * (1 + SLACK) for limit in (0.5, 2 * THIRD, THIRD)]
    about = [share >= limit * (1 - SLACK) for limit in (0.5, 2 * THIRD, THIRD)]
    halves = np.select([above[0], about[0]], [1.0, 0.5])
    thirds = np.select([above[1], about[1], above[2], about[2]], [1.0, 2 * THIRD, 0.5, THIRD])
    return np.vstack((halves, thirds))
