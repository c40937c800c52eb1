"""What a run knows so far: the best parts, the bound, and what the backends said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from partitioner.methods.ip.task import Task
from partitioner.methods.loads import value_of
from partitioner.methods.method import Outcome, Part, Settings, meets
from partitioner.methods.rules import obeys
from partitioner.preprocess.problem import Ints, Problem

PRECISION = 1e-6  # solvers prove no closer than this
MARGIN = 6e-7  # a solver's bound may be too large by that fraction: logs show seven digits


@dataclass(eq=False)
class Search:
    """The incumbent and the bound of one run.

    Parameters
    ----------
    problem, settings
        As given to the method.
    bound
        No parts of the shape asked for have a smaller value; infinity if there are none at all.
    value, parts
        The best parts found.
    covers
        See :class:`partitioner.methods.ip.task.Task`.
    notes
        For the user.
    words
        What each backend said of the whole program.
    look
        Takes in what solvers have found meanwhile.
    """

    problem: Problem
    settings: Settings
    bound: float
    value: float = np.inf
    parts: Sequence[Part] | None = None
    covers: tuple[tuple[int, Ints], ...] = ()
    notes: list[str] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)
    look: Callable[[], None] = lambda: None

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

    def offer(self, parts: Sequence[Part]) -> bool:
        """Keep parts if they obey the rules and are better than the best ones; say whether they are."""
        value = value_of(self.problem, parts)
        if value >= self.value or not obeys(self.problem, parts):
            return False
        self.value, self.parts = value, list(parts)
        self.report()
        return True

    def refuse(self, parts: Sequence[Part]) -> None:
        """Remember which parts of a solver's solution do not fit their memory."""
        size, memory = self.problem.size, self.problem.memory
        heavy = [part for part in parts if size[part.nodes].sum() > memory[part.kind]]
        self.covers += tuple((part.kind, part.nodes) for part in heavy)

    def raise_bound(self, bound: float) -> None:
        """Learn of a bound; infinity says that there are no parts at all."""
        if bound > self.bound:
            self.bound = bound if np.isinf(bound) else min(bound, self.value)
            self.report()

    def task(self) -> Task:
        """What is left to prove or to find."""
        return Task(self.problem, self.target, self.bound, self.covers)

    def report(self) -> None:
        """Tell whoever listens."""
        self.settings.tell("integer program", 0, 0, self.value, self.bound)

    def outcome(self, backend: str = "") -> Outcome:
        """What the run found."""
        native = "; ".join(f"{name}: {word}" for name, word in self.words.items())
        return Outcome(
            self.problem,
            self.parts,
            self.value,
            min(self.bound, self.value),
            self._stop_reason(),
            infeasible=self.parts is None and self.bound == np.inf,
            notes=tuple(self.notes),
            backend=backend,
            native_status=native,
        )

    def _stop_reason(self) -> str:
        if self.bound == np.inf or meets(self.bound, self.value, PRECISION):
            return "optimal"
        return "gap" if self.closed else self.settings.stop_reason
