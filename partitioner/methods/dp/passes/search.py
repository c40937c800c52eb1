"""The search for the chain of a lattice with the least sum of its largest forward and largest backward load.

Two lower bounds rise in turn: the largest forward load, and the largest backward load, that a chain better
than the incumbent must have at least. A table says whether there is a chain with at most a threshold in one
pass, among the chains whose loads in the other pass, and whose sums of both, are small enough for a better
one. If there is none, the bound of the pass rises to the threshold; else it rises to the least load of such
chains, or one of them is a better incumbent. The search ends when the sum of both bounds meets the incumbent.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from partitioner.methods.dp.passes.tables import LimitedTables, PassTables
from partitioner.methods.dp.search import FIRST_STEP, HIGHEST, NARROW, UNLIMITED, Bracket, Stopped
from partitioner.methods.dp.table import ChainTables
from partitioner.methods.method import ROUNDING, Part, Progress, Settings, meets
from partitioner.problem.measure import Measure


@dataclass(eq=False)
class PassSearch:
    """The search for the best chain of a lattice, which minimises one pass after the other.

    Parameters
    ----------
    tables, settings, bound, value, stages, steps
        As for :class:`partitioner.methods.dp.search.Bracket`.

    Attributes
    ----------
    least
        The largest load that a chain better than the incumbent must have at least, in each pass.
    complete
        Whether the search ended without reaching a limit.
    """

    tables: PassTables
    settings: Settings
    bound: float
    value: float = np.inf
    stages: list[Part] | None = None
    steps: int = 0
    least: list[float] = field(default_factory=list, init=False)
    complete: bool = field(default=False, init=False)

    def narrow(self, from_top: bool = False) -> None:
        """Find the best chain; `from_top` is for the bound on the loads of both passes together."""
        self.least = [relaxation.bound for relaxation in self.tables.relaxation.passes]
        try:
            self._bound_sums(from_top)
            self._rise_in_turn()
            self.complete = True
        except Stopped:
            if np.isinf(self.value):
                self._search(1).narrow()

    @property
    def closed(self) -> bool:
        """Whether the bound meets the value within the requested gap, or there is no chain."""
        return bool(np.isinf(self.bound)) or meets(self.bound, self.value, self.settings.gap)

    def offer(self, stages: list[Part]) -> None:
        """Make a chain the incumbent if it is better."""
        value = sum(self.tables.largest_loads(stages))
        if value < self.value:
            self.value, self.stages = value, stages

    def raised(self, load: float, pass_: int) -> float:
        """Return the bound that follows if better chains have at least this largest load in a pass."""
        return max(self.bound, min(load + self.least[1 - pass_], self.value))

    def _bound_sums(self, from_top: bool) -> None:
        """Raise the bound to the least largest load of both passes together."""
        shared = self.tables
        together = replace(shared.problem, measure=Measure.LARGEST_LOAD)
        tables = ChainTables(together, shared.relaxation, shared.lattice)
        sums = Bracket(tables, self._reporting(), self.bound, self.value, steps=self.steps)
        sums.narrow(from_top)
        self.steps, self.bound = sums.steps, max(self.bound, min(sums.bound, self.value))
        if not sums.complete:
            raise Stopped

    def _rise_in_turn(self) -> None:
        """Raise the bound of the pass that took fewer steps so far, until the search is closed."""
        step = [FIRST_STEP * load for load in self.least]
        highest, spent = [HIGHEST * load for load in self.least], [0, 0]
        while not self.closed:
            before, steps, pass_ = (*self.least, self.value), self.steps, int(np.argmin(spent))
            self._rise(pass_, step[pass_])
            if before == (*self.least, self.value):
                return  # only rounding errors are between bound and value
            spent[pass_] += self.steps - steps
            step[pass_] = 2 * step[pass_] if step[pass_] < highest[pass_] else 0.0

    def _rise(self, pass_: int, step: float) -> None:
        search = self._search(pass_)
        try:
            search.rise(step)
        finally:
            self.steps, self.bound = search.steps, self.raised(search.bound, pass_)
            self.least[pass_] = max(self.least[pass_], search.bound)

    def _search(self, pass_: int) -> _LeastLoad:
        """Return the search for the least load in a pass, among the chains that may be better."""
        limit = min((self.value - self.least[pass_]) * (1 - ROUNDING), UNLIMITED)
        total = min(self.value * (1 - ROUNDING), UNLIMITED)
        tables = self.tables.limited(pass_, limit, total)
        most = self.value - self.least[1 - pass_]
        return _LeastLoad(
            tables, self._reporting(), self.least[pass_], most, steps=self.steps, whole=self, pass_=pass_
        )

    def _reporting(self) -> Settings:
        """Return the settings, with reports of progress that have value and bound of the whole search."""
        report = self.settings.report
        if report is None:
            return self.settings

        def relay(progress: Progress) -> None:
            report(replace(progress, value=self.value, bound=self.bound))

        return replace(self.settings, report=relay)


@dataclass(eq=False)
class _LeastLoad(Bracket):
    """The search for the least largest load in a pass, among chains that may be better than the incumbent.

    Parameters
    ----------
    whole, pass_
        The search that this one is a step of, and the pass.
    """

    tables: LimitedTables
    whole: PassSearch = field(kw_only=True)
    pass_: int = field(kw_only=True)

    @property
    def closed(self) -> bool:
        """Whether there is no better chain, or the bound closes the gap of the whole search."""
        whole = self.whole
        done = np.isinf(self.bound) or meets(self.bound, self.value)
        return bool(done) or meets(whole.raised(self.bound, self.pass_), whole.value, self.settings.gap)

    def rise(self, step: float) -> None:
        """Raise the bound by a step or half of the way, or to the least load if a chain is found there."""
        bound, value = self.bound, self.whole.value
        if step > 0 and bound + 2 * step < self.value:
            self.ask(bound + step)
        elif np.isinf(self.value):
            self.ask(UNLIMITED)
        elif self.value - bound > NARROW * self.value:
            self.ask((bound + self.value) / 2)
        if self.bound == bound and self.whole.value == value:
            self._settle()

    def _fill(self, threshold: float, floor: float, limit: int | None) -> tuple[float, list[Part]] | None:
        found = super()._fill(threshold, floor, limit)
        if found is None:
            return None
        self.whole.offer(found[1])
        return min(found[0], self.whole.value - self.whole.least[1 - self.pass_]), found[1]

    def _hurry(self) -> None:
        super()._hurry()
        if self.stages is not None:
            self.whole.offer(self.stages)
