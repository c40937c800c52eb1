"""Local search for a split: from the known parts, then from random ones."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from partitioner.base.clock import METER
from partitioner.base.interruption import CompilationStopped
from partitioner.methods.ip.splits import SplitSearch
from partitioner.methods.local_search.rounds import LocalSearch, PartLayout
from partitioner.methods.local_search.search import improve
from partitioner.methods.method import Part
from partitioner.methods.solvers.portfolio import is_worth_while


@dataclass(frozen=True)
class DescentEffort:
    """How the time of the local search beside solvers is shared.

    Measured by the clock, 6 s each, at half and at twice each value on three published free splits (gnmt,
    inceptionv3 and bert6 training) while other programs ran: the mean of the values changes by at most
    0.25 %, which is what a field changes that does not come into play.

    Parameters
    ----------
    share
        The share of the time that is left, if solvers can use the rest.
    polish, patience
        Seconds for each supernode of local search from the first parts, and without progress before the end.
    small
        Supernodes: with fewer, the seconds for each are reduced in proportion.
    progress
        The fall of the value, as a fraction, that counts as progress and restarts the covering bound.
    slice
        Seconds that each of the two runs in turn if there is only one core.
    moment
        Seconds for a local search alone.
    """

    share: float = 0.85
    polish: float = 1e-2
    patience: float = 5e-2
    small: int = 100
    progress: float = 1e-3
    slice: float = 0.2
    moment: float = 1.0


EFFORT = DescentEffort()


def descend(search: SplitSearch) -> None:
    """Improve the parts by local search alone, for a moment or until they meet the bound."""
    descent = Descent(search, EFFORT.moment)
    descent.run()
    descent.hand_over()


class Descent:
    """A local search that may run in a thread: from the known parts, then from random ones.

    Parameters
    ----------
    search
        The search whose parts it improves.
    seconds
        Its limit, in addition to that of the search.

    Attributes
    ----------
    value, parts
        The best parts so far and their value; another thread may read a value that is larger than that of
        the parts, never a smaller one.
    leaving
        Set to True to end the run.
    """

    def __init__(self, search: SplitSearch, seconds: float = math.inf) -> None:
        self.search = search
        self.value, self.parts = search.value, search.best
        self.milestone = self.value
        self.leaving = False
        self.size = search.problem.n * min(1.0, search.problem.n / EFFORT.small)
        self.began = self.moved = time.perf_counter()
        left = search.settings.clock.left
        share = EFFORT.share if is_worth_while((1 - EFFORT.share) * left) else 1.0
        self.clock = search.settings.clock.at_most(min(share * left, seconds))

    @property
    def late(self) -> bool:
        """Whether its share of the time is over."""
        return self.left() <= 0

    def left(self) -> float:
        """Return the seconds that are left of its share of the time; 0 if the run should end."""
        return 0.0 if self.search.settings.expired else self.clock.left

    @property
    def idle(self) -> bool:
        """Whether it has made no progress for long."""
        now = time.perf_counter()
        patience = max(EFFORT.patience * self.size, (self.moved - self.began) / 2)
        return now - self.moved > patience

    def hand_over(self) -> None:
        """Offer the best parts to the search if they are better than its own."""
        if self.parts is not None and self.value < self.search.value:
            self.search.offer(self.parts)

    def run(self) -> None:
        """Search until `leaving` is set, which also stops the compilation of kernels."""
        with METER.watched(self._on_compile), suppress(CompilationStopped):
            self._run()

    def _on_compile(self) -> None:
        settings = self.search.settings
        if settings.compiled_enough:
            self.search.left_out.append("local search")
        if self.leaving or settings.expired or settings.compiled_enough:
            raise CompilationStopped

    def _run(self) -> None:
        problem, settings = self.search.problem, self.search.settings
        seconds = min(EFFORT.polish * self.size, self.left())
        found = improve(problem, self.parts, settings, seconds, settings.seed, floor=self._floor)
        if found is not None:
            self._keep(*found)
        annealing = LocalSearch(PartLayout(problem), settings.seed)
        annealing.run(lambda: self._goes_on(annealing))
        self._keep(annealing.value, annealing.parts)

    def give_way(self, turn: int) -> None:
        """Wait for a turn (0 for the local search, 1 for the bound) if there is only one core."""
        while self.search.settings.workers == 1 and not (self.leaving or self.late):
            if int(time.perf_counter() / EFFORT.slice) % 2 == turn:
                return
            time.sleep(EFFORT.slice / 10)

    @property
    def _floor(self) -> float:
        return self.search.bound / (1 - self.search.gap)

    def _goes_on(self, annealing: LocalSearch) -> bool:
        self._keep(annealing.value, annealing.parts)
        self.give_way(0)
        ends = self.leaving or self.late or self.search.settings.expired
        return not ends and self.value > self._floor

    def _keep(self, value: float, parts: Sequence[Part] | None) -> None:
        if value < self.milestone * (1 - EFFORT.progress):
            self.milestone, self.moved = value, time.perf_counter()
        if value < self.value:
            self.parts = parts
            self.value = value
