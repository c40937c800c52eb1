"""The heaviest set for given weights: one oracle for each kind of device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from partitioner.methods.bounds.cover.labels import FULL, best_set, follow, priced
from partitioner.methods.bounds.cover.states import CoverStates
from partitioner.methods.solvers.backends.apart import apart
from partitioner.problem.arrays import Floats, Ints

FEWEST, MOST = 20_000, 5_000_000
LABELS_PER_SECOND = 2_000_000
AROUND = np.array([1.0, 0.9, 1.1, 0.7, 1.4])
HALVINGS = 40


class Column(NamedTuple):
    """The heaviest content of a device: the share of every supernode in it, shape (n,), and its weight.

    It is the heaviest set; where finding that takes too long, it is the best mixture of two sets whose mean
    load is the threshold, which weighs no less and is not `exact`.
    """

    share: Floats
    weight: float
    exact: bool = True


Columns = list[Column]  # one for each kind that is present


class Oracle(Protocol):
    """A function that finds the column of the largest weight for a kind of device."""

    def __call__(self, weight: Floats) -> Column:
        """Return the heaviest column for weights of shape (n,)."""
        ...


class SetOracle:
    """The oracle of a kind that pays for transfers: it finds the heaviest set by labels.

    Parameters
    ----------
    states
        The states of its sets.
    threshold
        The largest load.
    left
        Function that returns how many seconds are left.
    """

    def __init__(
        self, states: CoverStates, threshold: float, left: Callable[[], float] = lambda: np.inf
    ) -> None:
        self.left = left
        self.ways = states.start, states.after, states.load
        self.rest, self.threshold = states.rest, threshold
        self.price, self.short, self.room, self.most = 1.0, 0.004, FEWEST, MOST

    def __call__(self, weight: Floats) -> Column:
        """Return the heaviest set, or a mixture where there are too many labels."""
        value = self._cheapest_price(weight)
        if value <= 0:
            return Column(np.zeros(len(weight)), 0.0)
        prices = self.price * AROUND
        ahead = np.array([self._ahead(weight, price) for price in prices])
        short = self.short / 2
        while True:
            target = value * (1 - short)
            most = int(min(self.most, max(self.left() * LABELS_PER_SECOND, FEWEST)))
            room = min(self.room, most)
            labels, found, chosen = apart(
                partial(best_set, *self.ways, self.rest, weight, prices, ahead, self.threshold, target, room)
            )
            if labels > 0:
                self.short = short
                return Column(chosen.astype(np.float64), found)
            if labels == FULL and room >= most and most < self.most:
                return self._mixture(weight, value)
            if labels == FULL and self.room >= self.most:
                self.most = max(self.most // 2, FEWEST)
                self.room = min(self.room, self.most)
                return self._mixture(weight, value)
            if labels == FULL:
                self.room = min(4 * self.room, self.most)
            else:
                short *= 1.5

    def _ahead(self, weight: Floats, price: float) -> Floats:
        best = np.empty(len(self.rest))
        priced(*self.ways, weight, price, best)
        return best

    def _cheapest_price(self, weight: Floats) -> float:
        """Return the smallest bound on the best weight over all prices of load, in which it is convex."""
        best = np.empty(len(self.rest))

        def bound(price: float) -> float:
            return float(priced(*self.ways, weight, price, best)) + price * self.threshold

        low, high = 0.0, max(4 * self.price, 1e-12)
        while bound(high) < bound(high / 2):
            high *= 2
        for _ in range(HALVINGS):
            left, right = low + 0.382 * (high - low), low + 0.618 * (high - low)
            low, high = (low, right) if bound(left) < bound(right) else (left, high)
        self.price = (low + high) / 2
        return bound(self.price)

    def _mixture(self, weight: Floats, value: float) -> Column:
        """Return a mixture of the sets for a lower and a higher price, with the threshold as mean load."""
        sides = [self.price * (1 + side) for side in (-1e-6, 1e-6)]
        sets = [follow(*self.ways, weight, price, self._ahead(weight, price)) for price in sides]
        large, small = (self._load(chosen) for chosen in sets)
        part = (self.threshold - small) / (large - small) if large > small else 0.0
        part = min(max(part, 0.0), 1.0)
        return Column(part * sets[0] + (1 - part) * sets[1], value, exact=False)

    def _load(self, chosen: Ints) -> float:
        _, after, load = self.ways
        total, state = 0.0, 0
        for bit in chosen.tolist():
            total += load[state, bit]
            state = after[state, bit]
        return float(total)


class FractionOracle:
    """The oracle of a kind that does not pay for transfers: it takes fractions of supernodes.

    Parameters
    ----------
    time
        Shape (n,): time of each supernode, infinity if it may not run there.
    threshold
        The largest load.
    """

    def __init__(self, time: Floats, threshold: float) -> None:
        self.time, self.threshold = time, threshold

    def __call__(self, weight: Floats) -> Column:
        """Return the column that takes supernodes by decreasing weight over time until the device is full."""
        share = np.where(self.time <= 0, 1.0, 0.0)
        timed = (self.time > 0) & np.isfinite(self.time) & (weight > 0)
        ratio = np.divide(weight, self.time, out=np.zeros(len(weight)), where=timed)
        order = np.argsort(-ratio, kind="stable")
        order = order[timed[order]]
        before = np.concatenate(([0.0], np.cumsum(self.time[order])[:-1]))
        share[order] = np.clip((self.threshold - before) / self.time[order], 0.0, 1.0)
        return Column(share, float(share @ weight))
