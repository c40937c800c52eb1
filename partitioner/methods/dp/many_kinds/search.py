"""The search for the best chain over many kinds of devices: ever wider searches, forwards and backwards.

Each search decides about one threshold. A chain that it finds is the new incumbent. If it left out no partial
chain and found nothing, the threshold is a better bound, so that the optimum is proven in the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp.linear import LinearSearch
from partitioner.methods.dp.many_kinds.levels import LevelSearch
from partitioner.methods.dp.pipeline.turned import turned_chain, turned_stages
from partitioner.methods.dp.search import UNLIMITED, Stopped
from partitioner.methods.loads import value_of
from partitioner.methods.method import ROUNDING, Settings
from partitioner.problem.variants import ChainProblem

FIRST_WIDTH, WIDER = 100, 5
NEAR = 0.002  # halve a bracket only while it is wider than this fraction of the value
LARGEST_WHOLE = 2.0**50


@dataclass(eq=False)
class ManyKindsSearch:
    """The bracket of the best chain, which searches of both directions narrow.

    Parameters
    ----------
    linear
        The best chain so far and its bound; improved by :meth:`run`.
    relaxation
        The relaxation of its problem.
    settings
        Say when to end.
    """

    linear: LinearSearch[ChainProblem]
    relaxation: Relaxation
    settings: Settings
    unit: float = field(init=False)
    ways: list[LevelSearch] = field(init=False)

    def __post_init__(self) -> None:
        problem = _plain(self.linear.problem)
        self.unit = unit_of(problem)
        self.ways = [
            LevelSearch(each, self.relaxation, self.settings) for each in (problem, turned_chain(problem))
        ]

    @property
    def chains(self) -> int:
        """Partial chains extended so far."""
        return sum(way.chains for way in self.ways)

    def run(self) -> None:
        """Search with ever wider levels until the bracket is closed or a limit is reached."""
        self._prove(float(self.ways[0].prices.bound[-1]))
        width, widest = FIRST_WIDTH, min(way.widest for way in self.ways)
        try:
            while not self.linear.closed and not np.isinf(self.linear.bound):
                for backwards in (False, True):
                    self._narrow(backwards, min(width, widest))
                if width >= widest:
                    return
                width *= WIDER
        except Stopped:
            return

    def _narrow(self, backwards: bool, width: int) -> None:
        """Halve the bracket by searches of one width until one that aims just below the value fails."""
        low = self.linear.bound
        while not self.linear.closed and not np.isinf(self.linear.bound):
            load = self._between(low)
            last = np.isinf(load) or load >= self._below_value()
            answer = self.ways[backwards].find(min(load, UNLIMITED), width)
            if answer.stages is not None:
                n = self.linear.problem.n
                stages = turned_stages(answer.stages, n) if backwards else answer.stages
                self.linear.stages, self.linear.value = stages, value_of(self.linear.problem, stages)
            elif answer.complete:
                self._prove(min(load + self.unit, self.linear.value) if not last else self.linear.value)
                low = self.linear.bound
            elif last:
                return
            else:
                low = load
            self._report(width)

    def _between(self, low: float) -> float:
        """Return the next threshold: in the middle of the bracket; above `low` while there is no chain."""
        value = self.linear.value
        if np.isinf(value):
            return 1.3 * low if 0 < low < 100 * self.linear.bound else np.inf
        if value - low <= max(NEAR * value, 2 * self.unit):
            return self._below_value()
        return min(self._whole((low + value) / 2), self._below_value())

    def _below_value(self) -> float:
        """Return the largest threshold that only better chains meet."""
        below = self.linear.value * (1 - ROUNDING)
        return self._whole(self.linear.value - self.unit / 2) if self.unit else below

    def _whole(self, load: float) -> float:
        """Return the largest load up to the given one that stages can have."""
        return float(np.floor(load / self.unit) * self.unit) if self.unit else load

    def _prove(self, bound: float) -> None:
        """Raise the bound to the least load that stages can have from this one up."""
        if self.unit and np.isfinite(bound):
            bound = float(np.ceil(bound / self.unit - 1e-6) * self.unit)
        self.linear.bound = max(self.linear.bound, min(bound, self.linear.value))

    def _report(self, width: int) -> None:
        value, bound = self.linear.value, self.linear.bound
        self.settings.report_progress("partial chains", self.chains, 0, value, bound)


def unit_of(problem: ChainProblem) -> float:
    """Return a number of which all loads are multiples; 0 if times and transfers are not all integers."""
    work = problem.work()
    paid = np.multiply.outer(problem.transfer_factor[problem.pays], problem.nets.cost)
    each = np.concatenate((work[np.isfinite(work)], paid.ravel()))
    if not len(each) or (each != np.rint(each)).any() or each.sum() > LARGEST_WHOLE:
        return 0.0
    return float(np.gcd.reduce(each.astype(np.int64)))


def _plain(problem: ChainProblem) -> ChainProblem:
    """Return the problem without transfer factors if no present kind pays or no net has a cost."""
    if problem.pays[problem.count > 0].any() and problem.nets.cost.any():
        return problem
    return replace(problem, transfer_factor=np.zeros_like(problem.transfer_factor))


def improve(linear: LinearSearch[ChainProblem], relaxation: Relaxation, settings: Settings) -> None:
    """Improve the chain and the bound of `linear`; if no chain keeps to the limits, the bound is infinite."""
    search = ManyKindsSearch(linear, relaxation, settings)
    search.run()
    linear.affordable = linear.problem  # this search leaves out no device
