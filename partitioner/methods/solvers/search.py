"""What a run knows so far: the best solution, the bound, and what the backends said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np

from partitioner.methods.method import Outcome, Settings, meets
from partitioner.problem.problem import Problem

Solution = TypeVar("Solution")

PRECISION = 1e-6  # solvers prove no closer than this
MARGIN = 6e-7  # a solver's bound may be too large by that fraction: logs show seven digits


@dataclass(eq=False)
class Search(Generic[Solution]):
    """The incumbent and the bound of one run; what a solution is, subclasses know.

    Parameters
    ----------
    problem, settings
        As given to the method.
    bound
        No solution has a smaller value; infinity if there is none at all.
    value, best
        The best solution found.
    refused
        How many solutions of solvers taught the program something.
    notes
        For the user.
    words
        What each backend said of the whole program.
    look
        Takes in what solvers have found meanwhile.
    cut_short
        True once a solver was not asked because too little time was left.
    """

    problem: Problem
    settings: Settings
    bound: float
    value: float = np.inf
    best: Solution | None = None
    refused: int = 0
    notes: list[str] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)
    look: Callable[[], None] = lambda: None
    cut_short: bool = False

    @property
    def gap(self) -> float:
        """The gap that counts as closed."""
        return max(self.settings.gap, PRECISION)

    @property
    def target(self) -> float:
        """The largest value of interest: if there is one it closes the gap, and if there is none, too.

        Without a bound near it that is what is better than the best value by the gap. Either way it is
        so much above what a bound must reach that the solvers' margin can be taken off.
        """
        better = self.value * (1 - self.gap) / (1 - MARGIN)
        least = self.value * (1 - PRECISION) / (1 - MARGIN)
        return min(max(better, self.bound / (1 - self.gap)), least)

    @property
    def closed(self) -> bool:
        """True once nothing of interest can be left."""
        return self.bound == np.inf or meets(self.bound, self.value, self.gap)

    @property
    def over(self) -> bool:
        """True once the run should end."""
        return self.closed or self.settings.expired

    def plan_value(self, solution: Solution) -> float:
        """Return the value of a solution; infinity if it breaks a rule."""
        raise NotImplementedError

    def task(self) -> Any:
        """Return what is left to prove or to find."""
        raise NotImplementedError

    def found(self, stop_reason: str) -> Outcome:
        """Return the outcome, as far as it depends on what a solution is."""
        raise NotImplementedError

    def offer(self, solution: Solution) -> bool:
        """Keep a solution if it obeys the rules and is better than the best one; say whether it is."""
        value = self.plan_value(solution)
        if value >= self.value:
            return False
        self.value, self.best = value, solution
        self.report()
        return True

    def refuse(self, solution: Solution) -> None:
        """Learn what can be learnt from a solver's solution that was not kept: here, nothing."""

    def raise_bound(self, bound: float) -> None:
        """Learn of a bound; infinity says that there is no solution at all."""
        if bound > self.bound:
            self.bound = bound if np.isinf(bound) else min(bound, self.value)
            self.report()

    def report(self) -> None:
        """Tell whoever listens."""
        self.settings.report_progress("integer program", 0, 0, self.value, self.bound)

    def outcome(self, backend: str = "") -> Outcome:
        """Return what the run found."""
        native = "; ".join(f"{name}: {word}" for name, word in self.words.items())
        return replace(
            self.found(self._stop_reason()),
            infeasible=self.best is None and self.bound == np.inf,
            notes=tuple(self.notes),
            backend=backend,
            native_status=native,
        )

    def _stop_reason(self) -> str:
        if self.bound == np.inf or meets(self.bound, self.value, PRECISION):
            return "optimal"
        if self.closed:
            return "gap"
        reason = self.settings.stop_reason
        return "time_limit" if self.cut_short and reason == "heuristic" else reason
