"""The search for the chain of a lattice with the least sum of its largest forward and largest backward load.

Two lower bounds rise in turn: the largest forward load, and the largest backward load, that a chain better than the
incumbent must have at least. One pass is minimised at a time, over the chains whose largest load in the other
pass is small enough for them to be better. Either the bound of that pass rises to the minimum, or the chain found
is a better incumbent, so the search ends; then the sum of both bounds meets the incumbent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from partitioner.methods.dp.passes.tables import LimitedTables, PassTables
from partitioner.methods.dp.search import UNLIMITED, Bracket
from partitioner.methods.method import ROUNDING, Part, Progress, Settings, meets


@dataclass(eq=False)
class PassSearch(Bracket):
    """The search for the best chain of a lattice, which minimises one pass after the other.

    Attributes
    ----------
    least
        The largest load that a chain better than the incumbent must have at least, in each pass.
    """

    tables: PassTables
    least: list[float] = field(default_factory=list, init=False)

    def narrow(self, from_top: bool = False) -> None:
        """Find the best chain; then `complete` says whether the search ended without reaching a limit.

        With `from_top` each pass is first asked whether any better chain is left.
        """
        self.least = [relaxation.bound for relaxation in self.tables.relaxation.passes]
        pass_ = int(np.argmax(self.least))
        while not self.closed:
            before = (*self.least, self.value)
            if not self._minimise(pass_, from_top):
                return
            if before == (*self.least, self.value):  # only rounding errors are between bound and value
                break
            pass_ = 1 - pass_
        self.complete = True

    def offer(self, stages: list[Part]) -> None:
        """Make a chain the incumbent if it is better."""
        value = sum(self.tables.largest_loads(stages))
        if value < self.value:
            self.value, self.stages = value, stages

    def total(self, load: float, pass_: int) -> float:
        """Return the bound that follows if better chains have at least this largest load in a pass."""
        return max(self.bound, min(load + self.least[1 - pass_], self.value))

    def _minimise(self, pass_: int, from_top: bool) -> bool:
        """Raise the bound of a pass to the least load of better chains; return False if a limit is reached."""
        limit = min((self.value - self.least[pass_]) * (1 - ROUNDING), UNLIMITED)
        search = _LeastLoad(
            self.tables.limited(pass_, limit), self._reporting(), self.least[pass_],
            self.value - self.least[1 - pass_], steps=self.steps, whole=self, pass_=pass_,
        )  # fmt: skip
        search.narrow(from_top and np.isfinite(self.value))
        self.steps = search.steps
        if search.stages is not None:
            self.offer(search.stages)
        self.bound = self.total(search.bound, pass_)
        self.least[pass_] = max(self.least[pass_], search.bound)
        return search.complete

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
    """The search for the least largest load in a pass, among chains that are better than the incumbent.

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
        """Whether there is no better chain, or the whole search has its gap closed by the bound."""
        whole = self.whole
        done = np.isinf(self.bound) or meets(self.bound, self.value)
        return done or meets(whole.total(self.bound, self.pass_), whole.value, self.settings.gap)

    def _fill(self, threshold: float, floor: float, limit: int | None) -> tuple[float, list[Part]] | None:
        found = super()._fill(threshold, floor, limit)
        if found is None:
            return None
        self.whole.offer(found[1])
        return min(found[0], self.whole.value - self.whole.least[1 - self.pass_]), found[1]
