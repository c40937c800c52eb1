"""The search for the best chain through a lattice of ideals (paper, Section 5.1.1).

One filling of the table (:mod:`partitioner.methods.dp.table`) decides whether there is a chain in which
no load exceeds a threshold. A low threshold takes few steps, so thresholds rise from the lower bound; a
threshold that no chain meets is a better bound, and a chain that meets one is a better incumbent. Bound
and incumbent are a bracket of the optimum. The last filling, in a narrow bracket, finds the optimum.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from partitioner.methods.dp.ideals import Lattice
from partitioner.methods.method import ROUNDING, Part, Settings, meets

UNLIMITED = 1e200  # above every load: times and costs are at most 1e100
FIRST_STEP = 0.01
HIGHEST = 20
NARROW = 0.01
BISECTIONS = 12
LEAST_COST = 100_000
FIRST_SLICE, SLICE = 50_000, 5_000_000  # steps between two readings of the clock, at first and at most
LOOK, LEAST, GROWTH = 0.05, 1e-4, 8.0  # seconds between two readings, and how fast the steps may grow
HURRY = 600_000  # steps that are allowed after the deadline if no chain is known


class Filling(Protocol):
    """A table that is being filled, see :class:`partitioner.methods.dp.table.ChainFilling`."""

    ideal: int
    steps: int

    def advance(self, budget: int) -> None:
        """Fill the table for about `budget` further steps."""
        ...

    def best(self) -> tuple[float, list[Part]] | None:
        """Return the value and the stages of the best chain that holds all; None if there is none."""
        ...


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
    """A search for the best chain of a lattice, as :class:`Bracket` is one."""

    bound: float
    value: float
    stages: list[Part] | None
    steps: int
    complete: bool

    def narrow(self, from_top: bool = False) -> None:
        """Find the best chain; then `complete` says whether the search ended without reaching a limit."""
        ...


class Stopped(Exception):  # noqa: N818 - not an error
    """Raised when a limit of the settings is reached."""


class _Costly(Exception):  # noqa: N818 - not an error
    """Raised when a filling takes more steps than its limit."""


@dataclass(eq=False)
class Bracket:
    """A bracket of the best chain of a lattice, which one filling after the other narrows.

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
    piece: int = field(default=FIRST_SLICE, init=False)

    def narrow(self, from_top: bool = False) -> None:
        """Find the best chain; then `complete` says whether the search ended without reaching a limit.

        With `from_top` the first threshold is just below the incumbent, to decide whether there is a better
        chain at all; else thresholds rise from the bound, which takes fewer steps while they are low.
        """
        try:
            if from_top:
                self.ask(min(self.value * (1 - ROUNDING), UNLIMITED))
            else:
                self._rise()
            if np.isinf(self.value):
                self.ask(UNLIMITED)
            self._settle()
            self.complete = True
        except Stopped:
            self._hurry()

    @property
    def closed(self) -> bool:
        """Whether the bound meets the value within the requested gap, or there is no chain."""
        return np.isinf(self.bound) or meets(self.bound, self.value, self.settings.gap)

    def ask(self, threshold: float) -> None:
        """Narrow the bracket by deciding whether there is a chain with no load above the threshold."""
        if self.closed:
            return
        before = self.steps
        found = self._fill(threshold, threshold, None)
        self.last_cost = self.steps - before
        if found is not None:
            self.value, self.stages = found
        elif threshold == UNLIMITED:
            self.bound = np.inf
        elif meets(threshold, self.value):
            self.bound = self.value
        else:
            self.bound = max(self.bound, threshold)

    def _settle(self) -> None:
        """Find the optimum in the bracket, which is halved first while that takes fewer steps."""
        for halving in range(BISECTIONS + 1):
            wide = self.value - self.bound > NARROW * self.value and halving < BISECTIONS
            if self.closed or self._finish(3 * self.last_cost + LEAST_COST if wide else None):
                return
            self.ask((self.bound + self.value) / 2)

    def _finish(self, limit: int | None) -> bool:
        """Fill the table that distinguishes all loads above the bound; return False if that exceeds `limit`.

        That table holds the optimum, so that bound and value are equal afterwards. `limit` is in steps.
        """
        try:
            found = self._fill(self.value * (1 - ROUNDING), self.bound, limit)
        except _Costly:
            return False
        if found is not None:
            self.value, self.stages = found
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
            self._advance(filling, SLICE if limit is None else limit - filling.steps)
            self.steps = before + filling.steps
            if self.steps > self.settings.step_limit:
                raise Stopped
            if limit is not None and filling.ideal < last and filling.steps > limit:
                raise _Costly
            done = min(filling.ideal, last)  # no chain is extended from the last ideal
            self.settings.report_progress("ideals", done, last, self.value, self.bound)
        return filling.best()

    def _advance(self, filling: Filling, most: int) -> None:
        """Take at most `most` further steps, about as many as take `LOOK` seconds."""
        began, walked = time.perf_counter(), filling.steps
        filling.advance(max(0, min(self.piece, most)))
        spent = max(time.perf_counter() - began, LEAST)
        if filling.steps - walked >= self.piece // 2 or spent > LOOK:
            self.piece = int(min(max(self.piece * min(LOOK / spent, GROWTH), 1), SLICE))

    def _hurry(self) -> None:
        """Take the best chain of one filling with few steps if the deadline has passed and none is known."""
        if not self.settings.expired or np.isfinite(self.value):
            return
        filling = self.tables.filling(UNLIMITED, 0.0)
        filling.advance(HURRY)
        self.steps += filling.steps
        found = filling.best() if filling.ideal >= self.tables.lattice.size - 1 else None
        if found is not None:
            self.value, self.stages = found

    def _rise(self) -> None:
        step, base = FIRST_STEP * self.bound, self.bound
        while 0 < step < HIGHEST * base and base + 2 * step < self.value and not self.closed:
            self.ask(base + step)
            step *= 2
