"""The interval between a lower bound and the least threshold that could not be refuted, halved step by step.

Searches that find better plans on the way narrow a :class:`partitioner.methods.dp.bracket.Bracket`; here only
one end is a bound, and the other one is where a proof failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
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

    def thresholds(self, near: float = 0.0) -> Iterator[float]:
        """Yield the upper end, and then the middle again and again, until the ends are so near."""
        threshold = self.high
        while self.high - self.bound > near:
            yield threshold
            threshold = (self.bound + self.high) / 2

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
