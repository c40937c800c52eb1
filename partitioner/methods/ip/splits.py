"""The state of a run for a convex or free split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from partitioner.methods.ip.task import Task
from partitioner.methods.loads import value_of
from partitioner.methods.method import Outcome, Part
from partitioner.methods.rules import obeys
from partitioner.methods.solvers.search import Search
from partitioner.problem.arrays import Bools, Ints
from partitioner.problem.variants import PartsProblem


@dataclass(eq=False)
class SplitSearch(Search[Sequence[Part]]):
    """A search whose solutions are the parts of a convex or free split.

    Parameters
    ----------
    problem
        For a convex or free split.
    covers
        See :class:`partitioner.methods.ip.task.Task`.
    """

    problem: PartsProblem
    covers: tuple[tuple[int, Ints], ...] = ()

    def plan_value(self, solution: Sequence[Part]) -> float:
        """Return the objective; infinity if the parts are better than the best ones but break a rule."""
        value = value_of(self.problem, solution)
        return value if value >= self.value or obeys(self.problem, solution) else np.inf

    def refuse(self, solution: Sequence[Part]) -> None:
        """Record which parts of a solver's solution exceed their device's memory, for new constraints."""
        size, memory = self.problem.size, self.problem.memory
        heavy = [part for part in solution if size[part.nodes].sum() > memory[part.kind]]
        self.covers += tuple((part.kind, part.nodes) for part in heavy)
        self.refused += bool(heavy)

    def task(self) -> Task:
        """Return the task of finding parts with a value of at most `target`."""
        return Task(self.problem, self.target, self.bound, self.covers)

    def task_near(self, cutoff: float, home: Ints, loose: Bools) -> Task:
        """Return the task of parts near a plan: a supernode is at its `home`, or where it is `loose`."""
        return replace(self.task(), cutoff=cutoff, home=home, loose=loose)

    def found(self, stop_reason: str) -> Outcome:
        """Return the outcome with the best parts, their value and the bound."""
        return Outcome(self.problem, self.best, self.value, min(self.bound, self.value), stop_reason)
