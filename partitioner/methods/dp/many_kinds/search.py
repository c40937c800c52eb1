"""The search for the best chain over many kinds of devices: ever wider searches, forwards and backwards.

Each search decides about one threshold. A chain that it finds is the new incumbent. If it left out no partial
chain and found nothing, the threshold is a better bound, so that the optimum is proven in the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp.bracket import UNLIMITED, Stopped
from partitioner.methods.dp.linear import LinearSearch
from partitioner.methods.dp.many_kinds.levels import LevelAnswer, LevelSearch
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
        unit = load_unit(problem)
        self.unit = unit if unit.is_integer() else 0.0  # sums of whole numbers are exact
        if self.unit and np.isfinite(self.linear.bound):
            self.linear.bound = float(np.ceil(self.linear.bound / self.unit - SLACK) * self.unit)
        self.ways = [
            LevelSearch(each, self.relaxation, self.settings) for each in (problem, turned_chain(problem))
        ]

    @property
    def chains(self) -> int:
        """Partial chains extended so far."""
        return sum(way.chains for way in self.ways)

    @property
    def done(self) -> bool:
        """Whether the bracket is closed, or it is proven that there is no chain."""
        return self.linear.closed or bool(np.isinf(self.linear.bound))

    def run(self) -> None:
        """Search with ever wider levels until the bracket is closed or a limit is reached."""
        width, widest = FIRST_WIDTH, min(way.widest for way in self.ways)
        try:
            while not self.done:
                for way in self.ways:
                    self._descend(way, min(width, widest))
                for way in self.ways:
                    self._raise(way, min(width, widest))
                if width >= widest:
                    return
                width *= WIDER
        except Stopped:
            return

    def _descend(self, way: LevelSearch, width: int) -> None:
        """Look for better chains until a search that aims just below the value fails.

        While the interval from the largest threshold that failed up to the value is wide, it is halved.
        """
        step, low = 0, self.linear.bound
        if width > FIRST_WIDTH:
            low = max(low, (1 - LATER) * self.linear.value)
        while not self.done:
            value, last = self.linear.value, self._below(0)
            halved = WIDE * value < value - low < np.inf and (step or width == FIRST_WIDTH)
            load = self._whole((low + value) / 2) if halved else self._below(step)
            load = load if load > low else last
            answer = self._ask(way, load, width)
            if answer.stages is None and not answer.complete and load >= last:
                return
            step = 0 if answer.stages is None else step + 1
            low = self.linear.bound if answer.complete else low if answer.stages else load

    def _raise(self, way: LevelSearch, width: int) -> None:
        """Look for thresholds that no chain meets, where no level has to leave out a chain to find that."""
        high = self.linear.value
        for _ in range(TRIALS):
            load = self._whole((self.linear.bound + high) / 2)
            if self.done or np.isinf(high) or load <= self.linear.bound:
                return
            answer = self._ask(way, load, width, exact=True)
            high = self.linear.value if answer.complete else load

    def _ask(self, way: LevelSearch, load: float, width: int, exact: bool = False) -> LevelAnswer:
        """Narrow the bracket by a search for a threshold."""
        answer = way.find(load, width, exact)
        if answer.stages is not None:
            problem, stages = self.linear.problem, answer.stages
            stages = turned_stages(stages, problem.n) if way is self.ways[1] else stages
            if value_of(problem, stages) >= self.linear.value:  # by rounding
                return LevelAnswer(None, False)
            self.linear.stages, self.linear.value = stages, value_of(problem, stages)
        elif answer.complete:
            self._prove(load)
        value, bound = self.linear.value, self.linear.bound
        self.settings.report_progress("partial chains", self.chains, 0, value, bound)
        return answer

    def _below(self, step: int) -> float:
        """Return a threshold below the value by a step; for 0 the largest one that proves the value."""
        value = self.linear.value
        if np.isinf(value):
            return UNLIMITED
        if step == 0:
            return self._whole(value - self.unit / 2) if self.unit else value * (1 - ROUNDING)
        return max(self._whole(value - max(self.unit, FINE * value) * 2.0**step), self.linear.bound)

    def _whole(self, load: float) -> float:
        """Return the largest load up to the given one that stages can have."""
        return float(np.floor(load / self.unit) * self.unit) if self.unit else load

    def _prove(self, load: float) -> None:
        """Raise the bound: no chain has a load of at most the given one."""
        if load == UNLIMITED:
            self.linear.bound = np.inf
        elif load >= self._below(0):
            self.linear.bound = self.linear.value
        else:
            self.linear.bound = max(self.linear.bound, load + self.unit)


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
