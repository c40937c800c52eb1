"""The search for the best chain over many kinds of devices: ever wider searches, forwards and backwards.

Each search decides about one threshold. A chain that it finds is the new incumbent. If it left out no partial
chain and found nothing, the threshold is a better bound, so that the optimum is proven in the end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp.bracket import UNKNOWN, UNLIMITED, Asked, Decision, Stopped, ThresholdRule
from partitioner.methods.dp.linear import LinearBracket, LinearSearch
from partitioner.methods.dp.many_kinds.levels import LevelSearch
from partitioner.methods.dp.pipeline.turned import turned_chain, turned_stages
from partitioner.methods.loads import value_of
from partitioner.methods.method import ROUNDING, Settings
from partitioner.methods.units import load_unit
from partitioner.problem.variants import ChainProblem

FIRST_WIDTH, WIDER = 100, 5
FINE = 0.001  # of the value: the least step below it where loads have no unit
WIDE = 0.02  # of the value: intervals that are halved
LATER = 0.1  # of the value: how far below it searches look after the first ones
TRIALS = 3  # searches of one width that aim at a better bound
SLACK = 1e-6


class LevelEffort(NamedTuple):
    """The effort of one search.

    Parameters
    ----------
    backwards
        Whether it begins with the last stage.
    width, exact
        See :meth:`partitioner.methods.dp.many_kinds.levels.LevelSearch.find`.
    """

    backwards: bool
    width: int
    exact: bool = False


class ManyKindsSearch(LinearBracket[LevelEffort]):
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

    def __init__(
        self, linear: LinearSearch[ChainProblem], relaxation: Relaxation, settings: Settings
    ) -> None:
        super().__init__(linear, settings)
        problem = _plain(linear.problem)
        unit = load_unit(problem)
        self.unit = unit if unit.is_integer() else 0.0  # sums of whole numbers are exact
        if self.unit and np.isfinite(self.bound):
            self.bound = float(np.ceil(self.bound / self.unit - SLACK) * self.unit)
        self.ways = [LevelSearch(each, relaxation, settings) for each in (problem, turned_chain(problem))]

    @property
    def chains(self) -> int:
        """Partial chains extended so far."""
        return sum(way.chains for way in self.ways)

    def run(self) -> None:
        """Search with ever wider levels until the bracket is closed or a limit is reached."""
        width, widest = FIRST_WIDTH, min(way.widest for way in self.ways)
        try:
            while not self.over:
                most = min(width, widest)
                for backwards in (False, True):
                    self.ask_by(self._descending(width > FIRST_WIDTH), LevelEffort(backwards, most))
                for backwards in (False, True):
                    self.ask_by(self._raising(), LevelEffort(backwards, most, exact=True))
                if width >= widest:
                    return
                width *= WIDER
        except Stopped:
            return

    def decide(self, threshold: float, effort: LevelEffort) -> Decision:
        """Return a chain within a threshold; unknown if it is no better than the best one by rounding."""
        answer = self.ways[effort.backwards].find(threshold, effort.width, effort.exact)
        if answer.stages is None:
            return answer
        problem, stages = self.linear.problem, answer.stages
        stages = turned_stages(stages, problem.n) if effort.backwards else stages
        value = value_of(problem, stages)
        return UNKNOWN if value >= self.value else Decision(stages, value, answer.complete)

    def ask(self, threshold: float, effort: LevelEffort) -> Decision:
        """Narrow the bracket by one search, and report the progress."""
        answer = super().ask(threshold, effort)
        self.settings.report_progress("partial chains", self.chains, 0, self.value, self.bound)
        return answer

    def _descending(self, later: bool) -> ThresholdRule:
        """Return the rule that looks for better chains until a search that aims just below the value fails.

        While the interval from :attr:`low` up to the value is wide, it is halved: in the first searches
        always, in `later` ones after a chain was found.
        """
        step, last = 0, 0.0

        def rule(asked: Asked | None) -> float | None:
            nonlocal step, last
            if asked is None:
                self.low = max(self.low, (1 - LATER) * self.value) if later else self.low
            elif not asked.improved and not asked.decision.complete and asked.threshold >= last:
                return None
            else:
                step = step + 1 if asked.improved else 0
                self.low = self.bound if asked.decision.complete else self.low
            value, last = self.value, self._below(0)
            halved = WIDE * value < value - self.low < np.inf and (step or not later)
            load = self._whole(self.middle()) if halved else self._below(step)
            return load if load > self.low else last

        return rule

    def _raising(self) -> ThresholdRule:
        """Return the rule that halves the interval from the bound to a threshold that was not refuted."""
        high, left = self.value, TRIALS

        def rule(asked: Asked | None) -> float | None:
            nonlocal high, left
            if asked is not None:
                high = self.value if asked.decision.complete else asked.threshold
            left -= 1
            load = self._whole((self.bound + high) / 2)
            return None if left < 0 or np.isinf(high) or load <= self.bound else load

        return rule

    def _below(self, step: int) -> float:
        """Return a threshold below the value by a step; for 0 the largest one that proves the value."""
        value = self.value
        if np.isinf(value):
            return UNLIMITED
        if step == 0:
            return self._whole(value - self.unit / 2) if self.unit else value * (1 - ROUNDING)
        return max(self._whole(value - max(self.unit, FINE * value) * 2.0**step), self.bound)

    def _whole(self, load: float) -> float:
        """Return the largest load up to the given one that stages can have."""
        return float(np.floor(load / self.unit) * self.unit) if self.unit else load

    def refute(self, threshold: float, _: LevelEffort) -> None:
        """Raise the bound: no chain has a load of at most the threshold, and loads may have a unit."""
        if threshold == UNLIMITED:
            self.bound = np.inf
        elif threshold >= self._below(0):
            self.bound = self.value
        else:
            self.bound = max(self.bound, threshold + self.unit)


def pays_for_nets(problem: ChainProblem) -> bool:
    """Return whether some present kind pays for transfers, and some net has a cost."""
    return bool(problem.pays[problem.count > 0].any() and problem.nets.cost.any())


def _plain(problem: ChainProblem) -> ChainProblem:
    """Return the problem without transfer factors if no stage pays."""
    free = np.zeros_like(problem.transfer_factor)
    return problem if pays_for_nets(problem) else replace(problem, transfer_factor=free)


def improve(linear: LinearSearch[ChainProblem], relaxation: Relaxation, settings: Settings) -> None:
    """Improve the chain and the bound of `linear`; an infinite bound says that there is no chain.

    The bound stays as it is if free nodes were merged at the risk of losing the optimum.
    """
    known = linear.bound
    ManyKindsSearch(linear, relaxation, settings).run()
    linear.affordable = linear.problem  # this search leaves out no device
    if not linear.problem.lossless:
        linear.bound = known
