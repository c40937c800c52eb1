"""The one search between a lower bound and the best value known: one question after another.

A question is whether there are stages whose value is at most a threshold t. Its answer is one of three:

    found      stages of value v <= t     value := min(value, v)
    refuted    there are no such stages   bound := max(bound, t)
    unknown    the effort is spent        neither changes

until ``bound >= value``. :class:`Bracket` holds both ends and the loop; a method says how a question is
decided and, by a rule, which threshold is asked next. For three nodes in a row that take 1, 2 and 3 on two
devices the bound is 6 / 2 = 3. If the value is 5, halving asks for t = 4, which finds the stages {1, 2} and
{3} of value 3 and closes the bracket.

:class:`TableBracket` is the search through a lattice of ideals whose questions are decided by filling a table
(paper, Section 5.1.1). A low threshold takes few steps, so thresholds rise from the lower bound. The last
filling, in a narrow bracket, finds the optimum.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from partitioner.methods.dp.lattice import Lattice
from partitioner.methods.method import ROUNDING, Part, Settings, meets

UNLIMITED = 1e200  # above every load: times and costs are at most 1e100
Spent = TypeVar("Spent")


class Stopped(Exception):  # noqa: N818 - not an error
    """Raised when a limit of the settings is reached."""


@dataclass(frozen=True)
class Decision:
    """The answer to the question whether there are stages within a threshold.

    Parameters
    ----------
    stages, value
        What was found, and its value; None and infinity if nothing was.
    complete
        Whether nothing was left out, so that finding nothing is a proof.
    steps
        The steps that were taken, of the methods that count them here.

    Examples
    --------
    >>> Decision(complete=True).refuted, Decision().refuted
    (True, False)
    """

    stages: list[Any] | None = None
    value: float = np.inf
    complete: bool = False
    steps: int = 0

    @property
    def refuted(self) -> bool:
        """Whether it is proven that there are no such stages."""
        return self.complete and self.stages is None


UNKNOWN = Decision()


class Asked(NamedTuple):
    """A question that was asked: its threshold, whether the value was lowered, and the answer."""

    threshold: float
    improved: bool
    decision: Decision


ThresholdRule = Callable[[Asked | None], float | None]


class Bracket(Generic[Spent]):
    """A lower bound and the best value known, which questions of some effort narrow.

    A subclass defines :meth:`decide`, and has the attributes.

    Attributes
    ----------
    settings
        Say the deadline, the gap and whom to report to.
    bound
        A lower bound on the value.
    value, stages
        The least value known, infinity if there is none; and the best stages found, if any.
    low
        The highest threshold at which the present round found nothing; at least the bound.
    """

    settings: Settings
    bound: float
    value: float
    stages: Any
    low: float = 0.0

    def decide(self, threshold: float, effort: Spent) -> Decision:
        """Return whether there are stages within a threshold, as far as the effort suffices to know.

        Raises
        ------
        Stopped
            If the run should end.
        """
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        """Whether the bound meets the value within the requested gap, or there are no stages."""
        return bool(np.isinf(self.bound)) or meets(self.bound, self.value, self.settings.gap)

    @property
    def over(self) -> bool:
        """Whether no further question is asked."""
        return self.closed

    def ask(self, threshold: float, effort: Spent) -> Decision:
        """Narrow the bracket by the answer to one question, and return it."""
        answer = self.decide(threshold, effort)
        if answer.stages is not None:
            self.take(answer)
        elif answer.complete:
            self.refute(threshold, effort)
        return answer

    def take(self, answer: Decision) -> None:
        """Keep the stages found if they are better than the best ones known."""
        if answer.value < self.value:
            self.value, self.stages = answer.value, answer.stages

    def refute(self, threshold: float, _: Spent) -> None:
        """Raise the bound: there are no stages whose value is at most the threshold."""
        if threshold >= UNLIMITED:
            self.bound = np.inf
        else:
            self.bound = self.value if meets(threshold, self.value) else max(self.bound, threshold)

    def ask_by(self, rule: ThresholdRule, effort: Spent) -> Asked | None:
        """Ask for one threshold after another, as a rule says after each answer, until it says None.

        Returns
        -------
        Asked or None
            The last question; None if there was none.
        """
        asked: Asked | None = None
        for question in self.questions(rule, effort):
            asked = question
        return asked

    def questions(self, rule: ThresholdRule, effort: Spent) -> Iterator[Asked]:
        """Yield one question after another as it is answered, with thresholds as a rule says."""
        asked: Asked | None = None
        self.low = self.bound
        while not self.over:
            threshold = rule(asked)
            if threshold is None:
                return
            before = self.value
            answer = self.ask(threshold, effort)
            asked = Asked(threshold, self.value < before, answer)
            self.low = max(self.low if asked.improved else threshold, self.bound)
            yield asked

    def just_below(self) -> float:
        """Return the largest threshold that asks for anything better than the value."""
        return min(self.value * (1 - ROUNDING), UNLIMITED)

    def middle(self) -> float:
        """Return the threshold halfway between :attr:`low` and the value."""
        return (self.low + self.value) / 2


class Filling(Protocol):
    """A table that is being filled, see :class:`TableFilling`."""

    ideal: int
    steps: int

    def advance(self, budget: int) -> None:
        """Fill the table for about `budget` further steps."""
        ...

    def best(self) -> tuple[float, list[Part]] | None:
        """Return the value and the stages of the best chain that holds all; None if there is none."""
        ...


class TableFilling(ABC):
    """A table over the ideals of a lattice, filled from the empty ideal up.

    Attributes
    ----------
    ideal
        The next ideal to extend; at the last one the table is filled.
    steps
        Steps walked up the lattice so far.
    """

    ideal = 0
    steps = 0

    def advance(self, budget: int) -> None:
        """Fill the table for about `budget` further steps."""
        self.ideal, steps = self._sweep(budget)
        self.steps += steps

    @abstractmethod
    def _sweep(self, budget: int) -> tuple[int, int]:
        """Extend the ideals from :attr:`ideal` on; return the next one to extend, and the steps."""


class LatticeTables(Protocol):
    """The source of tables over one lattice."""

    @property
    def lattice(self) -> Lattice:
        """The lattice."""
        ...

    def filling(self, threshold: float, floor: float) -> Filling:
        """Return an empty table for a threshold, in which values up to the floor count as equal."""
        ...


class ChainSearch(Protocol):
    """A search for the best chain of a lattice, as :class:`TableBracket` is one."""

    bound: float
    value: float
    stages: list[Part] | None
    steps: int
    complete: bool

    def narrow(self, from_top: bool = False) -> None:
        """Find the best chain; then `complete` says whether the search ended without reaching a limit."""
        ...


class _Costly(Exception):  # noqa: N818 - not an error
    """Raised when a filling takes more steps than its limit."""


@dataclass(frozen=True)
class TableEffort:
    """How thresholds rise and the bracket is halved before a table finds the optimum.

    The sentences on steps say how those of the 16 published workloads together, 10.9 million, change with
    half and with twice the value (``scripts/effort_fields.py``). The fields from `first_slice` on are about
    seconds and change no result without a time limit.

    Parameters
    ----------
    first_step, highest
        The first step above the bound as a fraction of it, which doubles with each question, and the largest.
        Steps: +0.4 and -0.6 % for the first; not reached by any workload.
    narrow
        A bracket of less than this fraction of the value is not halved any more. Steps: -27 and -1 %.
    bisections
        A bracket that was halved that often is not halved any more. Not reached by any workload.
    least_cost
        The steps that a table of all loads in the bracket may always take; it may take three times as many as
        the last question if these are more. Steps: -2 and +3 %.
    first_slice, most_slice
        The steps between two readings of the clock, at first and at most.
    look, least_look, growth
        The seconds between two readings, the least ones that are believed, and the largest factor between the
        steps of two slices.
    hurry
        The steps that one table may take after the deadline if no value is known.
    """

    first_step: float = 0.01
    highest: float = 20.0
    narrow: float = 0.01
    bisections: int = 12
    least_cost: int = 100_000
    first_slice: int = 50_000
    most_slice: int = 5_000_000
    look: float = 0.05
    least_look: float = 1e-4
    growth: float = 8.0
    hurry: int = 600_000


EFFORT = TableEffort()


class Fill(NamedTuple):
    """The effort of one table.

    Parameters
    ----------
    floor
        Loads up to this one count as equal, so that fewer steps are needed; None: the threshold.
    limit
        The most steps; None: no limit but that of the settings.
    """

    floor: float | None = None
    limit: int | None = None


DECIDE = Fill()


@dataclass(eq=False)
class TableBracket(Bracket[Fill]):
    """The search for the best chain of a lattice, which one table after the other narrows.

    Parameters
    ----------
    tables
        The problem and the lattice.
    settings
        Say the deadline, the step limit and whom to report to.
    bound
        A lower bound on the value of the chains of the lattice.
    value, stages
        The value of the incumbent, below which chains are looked for; and the best chain found, if any.
    steps
        Steps walked up the lattice.
    """

    tables: LatticeTables
    settings: Settings
    bound: float
    value: float = np.inf
    stages: list[Part] | None = None
    steps: int = 0
    complete: bool = field(default=False, init=False)
    last_cost: int = field(default=0, init=False)
    piece: int = field(default=EFFORT.first_slice, init=False)

    def narrow(self, from_top: bool = False) -> None:
        """Find the best chain; then `complete` says whether the search ended without reaching a limit.

        With `from_top` the first threshold is just below the incumbent, to decide whether there is a better
        chain at all; else thresholds rise from the bound, which takes fewer steps while they are low.
        """
        try:
            if from_top:
                self.ask(self.just_below())
            else:
                self.ask_by(self._rising(), DECIDE)
            if np.isinf(self.value):
                self.ask(UNLIMITED)
            self.settle()
            self.complete = True
        except Stopped:
            self._hurry()

    def ask(self, threshold: float, effort: Fill = DECIDE) -> Decision:
        """Narrow the bracket by one table, unless it is closed."""
        if self.closed:
            return UNKNOWN
        before = self.steps
        answer = super().ask(threshold, effort)
        self.last_cost = self.steps - before
        return answer

    def decide(self, threshold: float, effort: Fill) -> Decision:
        """Return the best chain of one table; unknown if that would take more steps than the limit."""
        floor = threshold if effort.floor is None else effort.floor
        try:
            found = self._fill(threshold, floor, effort.limit)
        except _Costly:
            return UNKNOWN
        return Decision(complete=True) if found is None else Decision(found[1], found[0], complete=True)

    def settle(self) -> None:
        """Find the optimum in the bracket, which is halved first while that takes fewer steps."""
        self.ask_by(self._settling(), DECIDE)

    def _rising(self) -> ThresholdRule:
        """Return the rule by which thresholds rise from the bound, with steps that double."""
        step, base = EFFORT.first_step * self.bound / 2, self.bound

        def rule(_: Asked | None) -> float | None:
            nonlocal step
            step *= 2
            rises = 0 < step < EFFORT.highest * base and base + 2 * step < self.value
            return base + step if rises else None

        return rule

    def _settling(self) -> ThresholdRule:
        """Return the rule that halves the bracket until a table of all loads in it is filled."""
        left = EFFORT.bisections

        def rule(_: Asked | None) -> float | None:
            nonlocal left
            wide = self.value - self.bound > EFFORT.narrow * self.value and left > 0
            left -= 1
            done = self._finish(3 * self.last_cost + EFFORT.least_cost if wide else None)
            return None if done else self.middle()

        return rule

    def _finish(self, limit: int | None) -> bool:
        """Fill the table that distinguishes all loads above the bound; return False if that exceeds `limit`.

        That table holds the optimum, so that bound and value are equal afterwards. `limit` is in steps.
        """
        answer = self.decide(self.just_below(), Fill(self.bound, limit))
        if not answer.complete:
            return False
        if answer.stages is not None:
            self.take(answer)
        self.bound = self.value
        return True

    def _fill(self, threshold: float, floor: float, limit: int | None) -> tuple[float, list[Part]] | None:
        found = self._filled(self.tables.filling(threshold, floor), limit)
        return found if found is not None and found[0] < self.value else None  # better by more than rounding

    def _filled(self, filling: Filling, limit: int | None = None) -> tuple[float, list[Part]] | None:
        """Fill the table in at most `limit` steps and return its best chain."""
        before, last = self.steps, self.tables.lattice.size - 1
        while filling.ideal < last:
            if self.settings.expired:
                raise Stopped
            self._advance(filling, EFFORT.most_slice if limit is None else limit - filling.steps)
            self.steps = before + filling.steps
            if self.steps > self.settings.step_limit:
                raise Stopped
            if limit is not None and filling.ideal < last and filling.steps > limit:
                raise _Costly
            done = min(filling.ideal, last)  # no chain is extended from the last ideal
            self.settings.report_progress("ideals", done, last, self.value, self.bound)
        return filling.best()

    def _advance(self, filling: Filling, most: int) -> None:
        """Take at most `most` further steps, about as many as take `EFFORT.look` seconds."""
        began, walked = time.perf_counter(), filling.steps
        filling.advance(max(0, min(self.piece, most)))
        spent = max(time.perf_counter() - began, EFFORT.least_look)
        if filling.steps - walked >= self.piece // 2 or spent > EFFORT.look:
            self.piece = int(
                min(max(self.piece * min(EFFORT.look / spent, EFFORT.growth), 1), EFFORT.most_slice)
            )

    def _hurry(self) -> None:
        """Take the best chain of one filling with few steps if the deadline has passed and none is known."""
        if not self.settings.expired or np.isfinite(self.value):
            return
        filling = self.tables.filling(UNLIMITED, 0.0)
        filling.advance(EFFORT.hurry)
        self.steps += filling.steps
        found = filling.best() if filling.ideal >= self.tables.lattice.size - 1 else None
        if found is not None:
            self.value, self.stages = found
