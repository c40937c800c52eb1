"""The interval between a lower bound and the least threshold that could not be refuted, halved step by step.

Searches that find better plans on the way narrow a :class:`partitioner.methods.dp.bracket.Bracket`; here only
one end is a bound, and the other one is where a proof failed, or a size that suffices. An answer may also be
neither: what is left open is not asked again, and the bound stays below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice


@dataclass
class Halving:
    """An interval that the answers about its thresholds narrow.

    Parameters
    ----------
    bound
        The largest threshold that is refuted: a lower bound.
    high
        The least threshold that is not.
    passed
        Thresholds up to this one are not asked again, though some of them may be left open.

    Examples
    --------
    >>> halving = Halving(0.0, 8.0)
    >>> for threshold in halving.thresholds(1.0):
    ...     print(threshold, halving.learn(threshold, 5.0))
    8.0 True
    6.5 True
    5.75 True
    >>> halving.bound, halving.high
    (5.0, 5.75)
    """

    bound: float
    high: float
    passed: float = field(default=-math.inf, repr=False)

    @property
    def low(self) -> float:
        """The end above which thresholds are asked."""
        return max(self.bound, self.passed)

    @property
    def middle(self) -> float:
        """The threshold halfway between the ends."""
        return (self.low + self.high) / 2

    def thresholds(self, near: float = 0.0) -> Iterator[float]:
        """Yield the upper end, and then the middle again and again, until the ends are so near."""
        threshold = self.high
        while self.high - self.low > near:
            yield threshold
            threshold = self.middle

    def whole_numbers(self, ended: Callable[[], bool]) -> Iterator[int]:
        """Yield the whole number in the middle again and again, until none is left or `ended` says so.

        Examples
        --------
        >>> halving = Halving(0, 9)
        >>> for number in halving.whole_numbers(lambda: False):
        ...     halving.settle(number, suffices=number >= 4, refuted=number < 3)
        >>> halving.bound, halving.passed, halving.high
        (0, 3, 4)
        """
        while self.high - self.low > 1 and not ended():
            yield int(self.low + self.high + 1) // 2

    def settle(self, threshold: float, suffices: bool, refuted: bool) -> None:
        """Narrow the interval by an answer: a threshold suffices, or is refuted, or is left open."""
        if suffices:
            self.high = threshold
            return
        self.passed = threshold
        if refuted:
            self.bound = max(self.bound, threshold)

    def learn(self, threshold: float, least: float) -> bool:
        """Narrow the interval: what keeps to a threshold has at least this value; return if it may exist."""
        self.bound = max(self.bound, min(threshold, least))
        possible = least < threshold
        if possible:
            self.high = threshold
        return possible

    def narrow(self, possible: Callable[[float], bool], times: int) -> Halving:
        """Ask about the middle this number of times, unless the ends meet before, and return the interval.

        Examples
        --------
        >>> Halving(0.0, 8.0).narrow(lambda threshold: threshold > 3.0, times=2)
        Halving(bound=2.0, high=4.0)
        """
        for middle in islice(self.thresholds(), 1, 1 + times):
            if possible(middle):
                self.high = middle
            else:
                self.bound = middle
        return self
