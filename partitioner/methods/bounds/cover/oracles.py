"""The oracles of a problem for a threshold: one for each kind of device that is present."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from partitioner.methods.bounds.cover.pricing import FractionOracle, Oracle, SetOracle
from partitioner.methods.bounds.cover.states import Ways, enumerate_ways
from partitioner.methods.bounds.cover.steps import steps_of
from partitioner.problem.arrays import Floats
from partitioner.problem.variants import PartsProblem

MOST_STATES = 400_000
ROUNDING = 1e-12


class Shares(NamedTuple):
    """Factors of processing and of transfers whose weighted sum is a load, or a lower bound on it."""

    processing: float
    transfers: float


SHARES = {
    "sequential": Shares(1.0, 1.0),
    "overlapped": Shares(0.5, 0.5),
    "duplex": Shares(0.5, 0.25),
}
FREE = Shares(1.0, 0.0)


class Oracles:
    """The source of oracles for all thresholds up to a largest one.

    Parameters
    ----------
    problem
        The problem.
    threshold
        The largest threshold of interest.
    left
        Function that returns how many seconds are left.

    Attributes
    ----------
    count
        Shape (kinds present,): devices of each kind that is present.
    ready
        False if there are too many states, or the time ended before they were enumerated.
    """

    def __init__(
        self, problem: PartsProblem, threshold: float, left: Callable[[], float] = lambda: np.inf
    ) -> None:
        self.left = left
        self.time = problem.work()
        self.threshold = threshold
        self.kinds = np.flatnonzero(problem.count > 0).tolist()
        self.count = problem.count[self.kinds]
        whole = [kind for kind in self.kinds if problem.pays[kind] or problem.contiguous[kind]]
        self.ways = {kind: _ways(problem, kind, self.time[kind], threshold, left) for kind in whole}
        self.ready = None not in self.ways.values()

    def within(self, threshold: float) -> list[Oracle]:
        """Return an oracle for each kind that is present."""
        return [self._oracle(kind, threshold * (1 + ROUNDING)) for kind in self.kinds]

    def _oracle(self, kind: int, threshold: float) -> Oracle:
        ways = self.ways.get(kind)
        if ways is None:
            return FractionOracle(self.time[kind], threshold)
        return SetOracle(ways.within(threshold), threshold, self.left)


def _ways(
    problem: PartsProblem, kind: int, time: Floats, threshold: float, left: Callable[[], float]
) -> Ways | None:
    shares = SHARES[problem.communication] if problem.pays[kind] else FREE
    transfers = problem.nets.cost * problem.transfer_factor[kind] * shares.transfers
    steps = steps_of(problem, transfers, bool(problem.contiguous[kind]), left)
    if steps is None:
        return None
    return enumerate_ways(steps, time * shares.processing, threshold, MOST_STATES, left)
