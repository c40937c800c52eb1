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
    """What a device can hold at most: a share of every supernode, shape (n,), and its weight.

    Of the true sets only the best one matters; where finding it takes too long, the best mixture of
    sets whose mean load is the threshold stands for it. It weighs no less, and is not `exact`.
    """

    share: Floats
    weight: float
    exact: bool = True


Columns = list[Column]  # of each kind in use


class Oracle(Protocol):
    """Finds the column of the largest weight for a kind."""

    def __call__(self, weight: Floats) -> Column:
        """The best column; `weight` has shape (n,)."""
        ...


class SetOracle:
    """For a kind that pays for transfers: the best set, by labels.

    Parameters
    ----------
    states
        The states of its sets.
    threshold
        The largest load.
    left
        Returns how many seconds are left.
    """

    def __init__(
        self, states: CoverStates, threshold: float, left: Callable[[], float] = lambda: np.inf
    ) -> None:
        self.left = left
        self.ways = states.start, states.after, states.load
        self.rest, self.threshold = states.rest, threshold
        self.price, self.short, self.room, self.most = 1.0, 0.004, FEWEST, MOST

    def __call__(self, weight: Floats) -> Column:
        """The best set, or a mixture where labels are too many."""
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
        """The smallest bound on the best weight over all prices of load (a convex function of them)."""
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
        """The sets on both sides of the price, mixed such that the mean load is the threshold."""
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
    """For a kind that pays nothing: the best fractions of supernodes by weight over time.

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
        """Fill the device with what weighs most for its time."""
        share = np.where(self.time <= 0, 1.0, 0.0)
        timed = (self.time > 0) & np.isfinite(self.time) & (weight > 0)
        ratio = np.divide(weight, self.time, out=np.zeros(len(weight)), where=timed)
        order = np.argsort(-ratio, kind="stable")
        order = order[timed[order]]
        before = np.concatenate(([0.0], np.cumsum(self.time[order])[:-1]))
        share[order] = np.clip((self.threshold - before) / self.time[order], 0.0, 1.0)
        return Column(share, float(share @ weight))
