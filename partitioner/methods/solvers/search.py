"""The state of a run: the best solution, the bound, and the status of each backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np

from partitioner.methods.dispensable import note_on
from partitioner.methods.method import Outcome, Settings, meets
from partitioner.problem.arrays import Bools, Ints
from partitioner.problem.problem import Problem

Solution = TypeVar("Solution")

PRECISION = 1e-6  # the smallest gap that solvers can close
MARGIN = 6e-7  # a solver's bound may be too large by this fraction, because logs show seven digits


@dataclass(eq=False)
class Search(Generic[Solution]):
    """The incumbent and the bound of one run; subclasses define what a solution is.

    Parameters
    ----------
    problem, settings
        The arguments of the method.
    bound
        A lower bound on the value of every solution; infinity if there is no solution.
    value, best
        The best solution found, and its value.
    refused
        How many infeasible solutions of solvers have led to new constraints.
    notes
        Notes for the user.
    left_out
        The steps that would have compiled kernels for too long.
    words
        The status that each backend reported for the whole program.
    look
        Function that processes the messages that have come from solvers.
    cut_short
        Whether a solver was not started because too little time was left.
    """

    problem: Problem
    settings: Settings
    bound: float
    value: float = np.inf
    best: Solution | None = None
    refused: int = 0
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)
    look: Callable[[], None] = lambda: None
    cut_short: bool = False

    @property
    def gap(self) -> float:
        """The relative gap at which the run ends."""
        return max(self.settings.gap, PRECISION)

    @property
    def target(self) -> float:
        """The largest value to look for: a solution up to it closes the gap, and so does the lack of one.

        Without a bound near the best value it is the best value less the gap. In both cases the margin of the
        solvers can be subtracted from a bound at this value, and the gap is still closed.
        """
        better = self.value * (1 - self.gap) / (1 - MARGIN)
        least = self.value * (1 - PRECISION) / (1 - MARGIN)
        return min(max(better, self.bound / (1 - self.gap)), least)

    @property
    def closed(self) -> bool:
        """Whether the gap is closed, or it is proven that there is no solution."""
        return self.bound == np.inf or meets(self.bound, self.value, self.gap)

    @property
    def over(self) -> bool:
        """Whether the run should end."""
        return self.closed or self.settings.expired

    def plan_value(self, solution: Solution) -> float:
        """Return the value of a solution; infinity if it breaks a rule."""
        raise NotImplementedError

    def task(self) -> Any:
        """Return the task that is left: solutions up to `target`, or the proof that there are none."""
        raise NotImplementedError

    def task_near(self, cutoff: float, home: Ints, loose: Bools) -> Any:
        """Return the task of solutions up to `cutoff` in a neighbourhood, for solutions that are parts.

        Parameters
        ----------
        cutoff
            The largest value to look for.
        home, loose
            Shapes (n,) and (n, devices): the device of every supernode, and where it may be in addition.
        """
        raise NotImplementedError

    def found(self, stop_reason: str) -> Outcome:
        """Return the outcome with the fields that depend on what a solution is."""
        raise NotImplementedError

    def offer(self, solution: Solution) -> bool:
        """Keep a solution if it obeys the rules and is better than the best one; return whether it is."""
        value = self.plan_value(solution)
        if value >= self.value:
            return False
        self.value, self.best = value, solution
        self.report()
        return True

    def refuse(self, solution: Solution) -> None:
        """Take note of a solver's solution that was not kept; subclasses may add constraints."""

    def raise_bound(self, bound: float) -> None:
        """Raise the bound if the given one is larger; infinity means that there is no solution."""
        if bound > self.bound:
            self.bound = bound if np.isinf(bound) else min(bound, self.value)
            self.report()

    def report(self) -> None:
        """Report the value and the bound as progress."""
        self.settings.report_progress("integer program", 0, 0, self.value, self.bound)

    def outcome(self, backend: str = "") -> Outcome:
        """Return the outcome of the run."""
        native = "; ".join(f"{name}: {word}" for name, word in self.words.items())
        return replace(
            self.found(self._stop_reason()),
            infeasible=self.best is None and self.bound == np.inf,
            notes=(*self.notes, *note_on(self.left_out, self.settings)),
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
