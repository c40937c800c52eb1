"""Cuts of a line into intervals with a small largest load, by bisection over that load."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.methods.first_plan.line import Line
from partitioner.methods.first_plan.stages import StageRules
from partitioner.problem.arrays import Floats, Ints

ROWS = 1000  # intervals to evaluate in one bisection
FEWEST, MOST = 4, 12  # halvings of the bracket
FIRST_STEP = 0.05  # of the lower bound, above which the first load is tried


class Cut(NamedTuple):
    """An interval of the line for a device of a class."""

    k: int
    begin: int
    end: int


class Cutter:
    """A line with methods that cut it into intervals, one for each device in use.

    Parameters
    ----------
    line
        The line to cut.
    rules
        The rules for intervals in addition to memory; None if there are none.
    exact
        Whether the number of intervals is exactly the one given to a method, instead of at most that.
    """

    def __init__(self, line: Line, rules: StageRules | None = None, exact: bool = False) -> None:
        self.line, self.rules, self.exact = line, rules, exact

    def balanced(self, most: int) -> list[Cut] | None:
        """Return at most `most` intervals with a small largest load; None if no cut is found at any load."""
        best = self.filled(np.inf, most)
        low = self.line.least()
        if best is None or low <= 0:
            return best
        step = FIRST_STEP
        while (found := self.filled(low * (1 + step), most)) is None and step < 1e15:
            step *= 2
        best, low, high = found or best, low * (1 + step / 2 * (step > FIRST_STEP)), low * (1 + step)
        rows = most * int((self.line.count > 0).sum())
        for _ in range(int(np.clip(ROWS // rows, FEWEST, MOST))):
            middle = (low + high) / 2
            found = self.filled(middle, most)
            best, low, high = (best, middle, high) if found is None else (found, low, middle)
        return best

    def filled(self, target: float, most: int) -> list[Cut] | None:
        """Return intervals with loads of at most `target`, or None if the line is not covered.

        Each interval is the widest one that any free device can take.
        """
        left = self.line.count.copy()
        cuts: list[Cut] = []
        taken: set[tuple[int, int]] = set()
        begin = 0
        while begin < self.line.n and len(cuts) < most:
            behind = most - len(cuts) - 1
            cut = self._widest(np.flatnonzero(left).tolist(), begin, target, behind, taken)
            if cut.end == begin:
                return None
            cuts.append(cut)
            if self.rules is not None:
                taken |= self.rules.devices(*cut)
            left[cut.k] -= 1
            begin = cut.end
        return cuts if begin == self.line.n and (not self.exact or len(cuts) == most) else None

    def _widest(
        self, classes: list[int], begin: int, target: float, behind: int, taken: set[tuple[int, int]]
    ) -> Cut:
        """Return the widest interval from `begin` on that a device of some class can take, perhaps empty."""
        best = Cut(0, begin, begin)
        limits = self._limits(np.array(classes, dtype=np.int64), begin, target, behind)
        ends = dict(zip(classes, limits.tolist(), strict=True))
        for k in sorted(classes, key=lambda k: -ends[k]):
            if ends[k] > best.end:
                end = self._end(k, begin, ends[k], target, behind, taken)
                best = Cut(k, begin, end) if end > best.end else best
        return best

    def _limits(self, classes: Ints, begin: int, target: float, behind: int) -> Ints:
        """Return the last possible ends of intervals by times and sizes, without transfers, by class."""
        line = self.line
        held = (line.held[begin] + line.memory[classes]) * (1 + 1e-12)
        ends = np.minimum(line.barred[classes, begin], np.searchsorted(line.held, held, side="right") - 1)
        ends = np.minimum(ends, line.n - behind * self.exact)
        elapsed = line.elapsed[classes, begin] + target
        return np.asarray(np.minimum(ends, _last(line.elapsed, classes, elapsed)))

    def _end(
        self, k: int, begin: int, end: int, target: float, behind: int, taken: set[tuple[int, int]]
    ) -> int:
        """Return the last place up to `end` where the interval can end; `begin` if there is none."""
        line = self.line
        fits = line.loads(k, begin, end) <= target
        if self.rules is not None:
            fits &= self.rules.allow(k, begin, end, behind, taken)
        good = np.flatnonzero(fits)
        return begin + int(good[-1]) + 1 if len(good) else begin


def _last(sums: Floats, rows: Ints, limit: Floats) -> Ints:
    """Return the last place in each row of rising sums that is at most its limit; -1 if there is none."""
    low, high = np.full(len(rows), -1), np.full(len(rows), sums.shape[1])
    while (high - low > 1).any():
        middle = (low + high) // 2
        fits = sums[rows, np.clip(middle, 0, None)] <= limit
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low
