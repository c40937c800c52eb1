"""The anytime search for chains, where the ideals do not fit the memory budget.

A bracket of the optimum is narrowed by asking whether there are chains in which no load exceeds a threshold
(:mod:`partitioner.methods.dp.anytime.decide`). All attempts of a round have the same effort, which grows
from round to round; they search from the first stage and from the last one in turn. What an attempt cannot
decide is left behind in its round only.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from partitioner.methods.bounds.cuts.known import holds
from partitioner.methods.dp.anytime.decide import Decider, Effort
from partitioner.methods.dp.improvement import ChainImprovement
from partitioner.methods.dp.linear import LinearSearch
from partitioner.methods.dp.search import UNLIMITED
from partitioner.methods.dp.table import state_count
from partitioner.methods.imported import imported
from partitioner.methods.loads import value_of
from partitioner.methods.method import ROUNDING, Outcome, Settings, meets
from partitioner.methods.units import load_unit, rounded_up
from partitioner.problem.variants import ChainProblem

if TYPE_CHECKING:
    from partitioner.methods.bounds.cuts.bound import CutBound

FIRST = Effort(steps=300_000, steps_each=300, stages_each=30)
GROWTH = Effort(steps=3, steps_each=2, stages_each=2)
HIGHEST = Effort(steps=10**15, steps_each=10**9, stages_each=100_000)
CLOSE = 1e-4  # a narrower bracket is not halved again in the same round
MOST, VECTORS = 20_000, 1_000_000  # supernodes, and vectors of used devices, of problems that are searched
ROUNDS, MOST_ROUNDS = 5, 24  # of a run whose work must not depend on the clock, and of any run
CUT_BOUND = "partitioner.methods.bounds.cuts.bound:CutBound"  # imported when it is needed: it loads a solver
CUT_SHARE = 0.2  # of the time that is left


def solve_beyond(
    linear: LinearSearch[ChainProblem], settings: Settings, note: str, rounds: int = MOST_ROUNDS
) -> Outcome:
    """Search on from the best linear chain, until the gap is closed or the run must end.

    Parameters
    ----------
    linear
        The search over linear orders, which has ended.
    settings
        The settings of the run from now on.
    note
        Says why not all ideals were searched.
    rounds
        How many rounds the search may take.
    """
    linear.settings, problem = settings, linear.problem
    search = AnytimeSearch(linear)
    if problem.n <= MOST and state_count(problem) <= VECTORS:
        search.run(min(rounds, ROUNDS) if settings.deterministic else rounds)
    proven = meets(linear.bound, linear.value)
    return Outcome(
        problem,
        linear.stages,
        linear.value,
        min(linear.bound, linear.value),
        "optimal" if proven else settings.ended(linear.bound, linear.value),
        infeasible=proven and linear.stages is None,
        notes=() if proven else (note,),
        statistics={
            "orders": linear.orders,
            "linear_value": search.linear_value,
            "attempts": search.attempts,
            "steps": linear.steps + search.steps,
        },
    )


class AnytimeSearch:
    """The best chain found so far, and a bound, which one attempt after another narrows.

    Parameters
    ----------
    linear
        The search over linear orders, which has the problem, its relaxation and the settings, and holds the
        bound, the best chain and its value.

    Attributes
    ----------
    steps, attempts
        How much was searched.
    """

    def __init__(self, linear: LinearSearch[ChainProblem]) -> None:
        self.problem, self.settings = linear.problem, linear.settings
        problem, relaxation = linear.problem, linear.relaxation
        self.unit = load_unit(problem.relaxed())
        self.linear, self.linear_value = linear, linear.value
        linear.bound = rounded_up(linear.bound, self.unit)
        self.improvement = ChainImprovement(linear)
        self.steps = self.attempts = 0
        self._relaxed = cache(lambda: Decider(problem.relaxed(), relaxation, backwards=False))
        self._decider = cache(lambda backwards: Decider(problem, relaxation, backwards))

    @property
    def closed(self) -> bool:
        """Whether the bound meets the value within the requested gap, or there is no chain."""
        return np.isinf(self.linear.bound) or meets(self.linear.bound, self.linear.value, self.settings.gap)

    @property
    def over(self) -> bool:
        """Whether the gap is closed or a limit is reached."""
        return self.closed or self.settings.expired or self.steps > self.settings.step_limit

    def run(self, rounds: int) -> None:
        """Search until the gap is closed, nothing better can be found, or the run must end."""
        self._count_cuts()
        effort = FIRST
        for number in range(rounds):
            self.improvement.run(number)
            self._round(number, effort)
            if self.over or self._finish(number, effort):
                return
            grown = (one * other for one, other in zip(effort, GROWTH, strict=True))
            effort = Effort(*map(min, grown, HIGHEST))

    def _count_cuts(self) -> None:
        """Raise the bound by what the cuts between stages must cost."""
        problem, linear = self.problem.relaxed(), self.linear
        if self.over or not holds(problem) or np.isinf(linear.value):
            return
        left = self.settings.seconds_left
        limited = self.settings if left is None else self.settings.within(CUT_SHARE * left)
        bound: type[CutBound] = imported(CUT_BOUND)
        raised = bound(problem, lambda: limited.expired).rise(linear.bound, linear.value)
        linear.bound = min(rounded_up(raised, self.unit), linear.value)

    def _round(self, number: int, effort: Effort) -> None:
        """Halve the bracket, whose lower end is the highest threshold at which this round found nothing."""
        low = threshold = self.linear.bound
        while not self.over and threshold < self.linear.value:
            if not self._attempt(threshold, effort, number):
                low = threshold
            low = max(low, self.linear.bound)
            if low == UNLIMITED or self.linear.value < low + max(1.5 * self.unit, CLOSE * low):
                return
            threshold = self._between(low)

    def _between(self, low: float) -> float:
        """Return a threshold between `low` and the value."""
        if np.isinf(self.linear.value):
            return UNLIMITED
        middle = (low + self.linear.value) / 2
        return middle if self.unit == 0 else min(rounded_up(middle, self.unit), self.linear.value - self.unit)

    def _finish(self, number: int, effort: Effort) -> bool:
        """Look for anything better; return whether it is known that there is none."""
        refuted = False
        while not refuted and not self.over and np.isfinite(self.linear.value):
            before = self.linear.value
            refuted = self._ask(self.linear.value * (1 - 4 * ROUNDING), effort, number)
            if self.linear.value >= before:
                break
        return refuted

    def _attempt(self, threshold: float, effort: Effort, number: int) -> bool:
        """Ask for a chain; return whether a better one was found."""
        before = self.linear.value
        self._ask(threshold, effort, number)
        return self.linear.value < before

    def _ask(self, threshold: float, effort: Effort, number: int) -> bool:
        """Narrow the bracket by one attempt; return whether it proved that there is no such chain."""
        decider = self._decider((number + self.attempts) % 2 == 1)
        verdict = decider.decide(threshold, effort, self.settings, number)
        self.attempts += 1
        self.steps += verdict.steps
        if verdict.stages is not None:
            self.linear.offer(value_of(self.problem, verdict.stages), verdict.stages)
        if verdict.refuted and self._holds_for_the_graph(threshold, effort):
            self.linear.bound = max(self.linear.bound, self._above(threshold))
        self.settings.report_progress("attempts", self.attempts, 0, self.linear.value, self.linear.bound)
        return verdict.refuted

    def _holds_for_the_graph(self, threshold: float, effort: Effort) -> bool:
        """Whether there is no chain of the user's graph either, if supernodes were merged at a risk."""
        if self.problem.lossless:
            return True
        return self._relaxed().decide(threshold, effort, self.settings, 0).refuted

    def _above(self, threshold: float) -> float:
        """Return a bound that follows if no chain keeps to a threshold."""
        if threshold >= UNLIMITED:
            return np.inf
        above = rounded_up(threshold * (1 + 4 * ROUNDING), self.unit)
        return self.linear.value if meets(above, self.linear.value) else above
