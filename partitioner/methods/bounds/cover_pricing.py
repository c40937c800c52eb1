"""The heaviest set for given weights: one oracle for each kind of device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from partitioner.base.compiled import njit, stable_order
from partitioner.methods.bounds.cover_steps import CoverStates
from partitioner.methods.bounds.relaxation import fullest
from partitioner.methods.solvers.backends.backend import apart
from partitioner.problem.arrays import Floats, Ints

FULL, NOTHING = -2, -1


@njit(cache=True, nogil=True)
def priced(states: CoverStates, weight: Floats, price: float, best: Floats, chosen: Floats) -> float:
    """Fill `best` with the largest weight minus price times load from every state to the end.

    Returns the load of the set that has the largest from the start, whose members are ones in `chosen`.
    """
    start, after, load = states.start, states.after, states.load
    n = len(start) - 2
    best[start[n]] = 0.0
    for v in range(n - 1, -1, -1):
        for s in range(start[v], start[v + 1]):
            out, inside = after[s, 0], after[s, 1]
            top = -np.inf
            if out >= 0:
                top = best[out] - price * load[s, 0]
            if inside >= 0:
                top = max(top, best[inside] - price * load[s, 1] + weight[v])
            best[s] = top
    spent, s = 0.0, 0
    for v in range(n):
        out, inside = after[s, 0], after[s, 1]
        bit = int(out < 0 or (inside >= 0 and best[inside] - price * load[s, 1] + weight[v] == best[s]))
        spent += load[s, bit]
        chosen[v] = bit
        s = after[s, bit]
    return spent


@njit(cache=True, nogil=True)
def best_set(
    states: CoverStates,
    weight: Floats,
    prices: Floats,
    ahead: Floats,
    threshold: float,
    target: float,
    room: int,
    beam: int,
) -> tuple[int, float, Ints]:
    """Return the heaviest set whose load is at most the threshold and whose weight is at least the target.

    Parameters
    ----------
    states
        The sets to choose from.
    weight
        Shape (n,).
    prices, ahead
        Shapes (p,) and (p, states): prices of load, and for each the array that :func:`priced` filled.
    threshold, target
        Largest load, smallest weight.
    room
        The largest number of labels.
    beam
        The largest number of labels a supernode: of more than these the most promising are kept.

    Returns
    -------
    labels, weight, chosen
        The number of labels made (`FULL` if `room` or `beam` was too small, `NOTHING` if no set reaches the
        target); the set's weight and its members as zeros and ones. Where `beam` alone was too small they
        are those of the best set that was kept.
    """
    start, after, load, rest = states.start, states.after, states.load, states.rest
    n = len(start) - 2
    # Labels: the state, load and weight of a set of the first supernodes, and the label that it extends.
    state = np.empty(room, dtype=np.int64)
    spent = np.empty(room)
    gained = np.empty(room)
    parent = np.empty(room, dtype=np.int64)
    taken = np.empty(room, dtype=np.int8)
    state[0], spent[0], gained[0] = 0, 0.0, 0.0
    chosen = np.zeros(n, dtype=np.int64)
    low, high, top = 0, 1, 1
    whole = True
    for v in range(n):
        born = np.empty(2 * (high - low), dtype=np.int64)  # 2 * label + bit
        hope = np.empty(2 * (high - low))
        # Extend every label; leave out what no completion makes light and heavy enough.
        count = 0
        for x in range(low, high):
            for bit in range(2):
                j = after[state[x], bit]
                if j < 0:
                    continue
                cost = spent[x] + load[state[x], bit]
                if cost + rest[j] > threshold:
                    continue
                total = np.inf
                for p in range(len(prices)):
                    total = min(total, ahead[p, j] + prices[p] * (threshold - cost))
                total += gained[x] + weight[v] * bit
                if total >= target:
                    born[count], hope[count] = 2 * x + bit, total
                    count += 1
        if count == 0:
            return NOTHING, 0.0, chosen
        kept = min(count, beam)
        if top + kept > room:
            return FULL, 0.0, chosen
        if count > kept:  # keep the most promising
            whole, born = False, born[stable_order(hope[:count])[count - kept :]]
            count = kept
        first = np.zeros(start[v + 2] - start[v + 1], dtype=np.int64)
        for y in range(count):
            first[after[state[born[y] // 2], born[y] % 2] - start[v + 1]] += 1
        first = np.cumsum(first) - first
        grouped = np.empty(count, dtype=np.int64)  # what is new, by its state
        cost_of = np.empty(count)
        for y in range(count):
            x, bit = born[y] // 2, born[y] % 2
            q = after[state[x], bit] - start[v + 1]
            grouped[first[q]] = born[y]
            cost_of[first[q]] = spent[x] + load[state[x], bit]
            first[q] += 1
        low, begin = top, 0
        # Of each state keep those that weigh more than all lighter loads.
        for q, end in enumerate(first):
            if end == begin:
                continue
            group, cost_here = grouped[begin:end], cost_of[begin:end]
            begin = end
            heaviest = -np.inf
            for y in stable_order(cost_here):
                x, bit = group[y] // 2, group[y] % 2
                total = gained[x] + weight[v] * bit
                if total > heaviest:
                    heaviest = total
                    state[top], spent[top], gained[top] = q + start[v + 1], cost_here[y], total
                    parent[top], taken[top] = x, bit
                    top += 1
        high = top
    label = top - 1  # of the last state's labels, by rising load, the heaviest
    weight_found = gained[label]
    if weight_found < target:  # a heavier one may have been dropped
        return NOTHING, 0.0, chosen
    for v in range(n - 1, -1, -1):
        chosen[v] = taken[label]
        label = parent[label]
    return (top if whole else FULL), weight_found, chosen


@dataclass(frozen=True)
class PricingEffort:
    """How many labels the search of the heaviest set makes.

    Measured as the covering bound's effort: at half and at twice each value the bounds stay as they are. The
    free split of BERT-12 training is within 1 % after 17 s; with `most` at 5 million it is in some runs after
    23 s, in others not after 100 s (1.3 %).

    Parameters
    ----------
    fewest, most
        The labels that it may make at first, and at most.
    beam
        The labels a supernode where only a heavy set is looked for.
    below, further
        How far below the bound the heaviest set is sought, at least, and how much further each time that
        there is none, as fractions of the bound. The first distance is that of the set found before.
    labels_per_second
        Labels made in a second, which limit them where there is a time limit.
    tangents
        Prices of load that are tried, at most.
    close
        How near the bound of the price comes to the least of all prices, as a fraction.
    """

    fewest: int = 20_000
    most: int = 20_000_000
    beam: int = 300
    below: float = 0.002
    further: float = 0.006
    labels_per_second: int = 2_000_000
    tangents: int = 20
    close: float = 1e-6


EFFORT = PricingEffort()
LABEL_BYTES = 33  # of the arrays of `best_set`

ROUNDED = 1 + 1e-12
AROUND = np.array([1.0, 0.9, 1.1, 0.7, 1.4])


class Column(NamedTuple):
    """A content of a device: the share of every supernode in it, shape (n,), and the most that any weighs.

    It is the heaviest set; where finding that takes too long, it is a heavy one, and `weight` is a bound on
    the weight of all of them.
    """

    share: Floats
    weight: float


Columns = list[Column]  # one for each kind that is present


class Oracle(Protocol):
    """The columns of the largest weight for a kind of device."""

    def quick(self, weight: Floats) -> Column:
        """Return a heavy column for weights of shape (n,), with a bound on the weight of all of them."""
        ...

    def exact(self, weight: Floats, quick: Column) -> Column:
        """Return the heaviest column, given the answer of :meth:`quick` for the same weights."""
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
    memory
        Bytes that labels may take.
    """

    def __init__(
        self,
        states: CoverStates,
        threshold: float,
        left: Callable[[], float] = lambda: np.inf,
        memory: float = np.inf,
    ) -> None:
        self.left, self.memory = left, memory
        self.states, self.threshold = states, threshold
        self.price, self.short, self.room = 1.0, EFFORT.below, EFFORT.fewest
        self.known: list[Floats] = []
        self.ahead = np.empty((len(AROUND), len(states.rest)))

    def exact(self, weight: Floats, quick: Column) -> Column:
        """Return the heaviest set, or a heavy one and a bound where there are too many labels."""
        heaviest = max(self.known, key=lambda share: float(share @ weight))
        known, bound = float(heaviest @ weight) * ROUNDED, quick.weight
        if bound <= known:
            return Column(heaviest, bound)
        for price, best in zip(self.price * AROUND, self.ahead, strict=True):
            priced(self.states, weight, price, best, np.empty(len(weight)))
        value, short = bound, self.short
        while True:
            target = max(value * (1 - short), known)
            labels, found, chosen = self._heaviest(weight, target)
            if labels > 0:
                self.short = max(1 - found / value, EFFORT.below)
                return self._learn(chosen, found)
            if labels == FULL:
                room = EFFORT.beam * len(weight) + 1
                return self._learn(self._search(weight, 0.0, room, EFFORT.beam)[2], bound)
            bound = target
            if known >= target:
                return Column(heaviest, bound)
            short += EFFORT.further

    def _heaviest(self, weight: Floats, target: float) -> tuple[int, float, Ints]:
        """Return what :func:`best_set` finds with more and more room for labels."""
        limit = int(min(EFFORT.most, max(self.memory / LABEL_BYTES, EFFORT.fewest)))
        while True:
            most = int(min(limit, max(self.left() * EFFORT.labels_per_second, EFFORT.fewest)))
            room = min(self.room, most)
            answer = self._search(weight, target, room, room)
            if answer[0] != FULL or room >= most:
                return answer
            self.room = min(4 * self.room, limit)

    def _search(self, weight: Floats, target: float, room: int, beam: int) -> tuple[int, float, Ints]:
        prices = self.price * AROUND
        answer: tuple[int, float, Ints] = apart(  # an array that is returned loses a handler's exception
            partial(best_set, self.states, weight, prices, self.ahead, self.threshold, target, room, beam)
        )
        return answer

    def _learn(self, chosen: Ints | Floats, weight: float) -> Column:
        """Return a set as a column that is known from now on."""
        self.known.append(chosen.astype(np.float64))
        return Column(self.known[-1], weight)

    def quick(self, weight: Floats) -> Column:
        """Return a heavy set and the smallest bound on the best weight over all prices of load.

        The bound of a price is the most of the lines of all sets. The next price is where the lines of two
        sets cross, of which one takes more than the largest load and the other does not.
        """
        heavy, light = Tangent(float(weight.sum()), -np.inf), Tangent(0.0, self.threshold)
        price, bound, lightest = self.price, np.inf, np.zeros(len(weight))
        for _ in range(EFFORT.tangents):
            chosen = np.empty(len(weight))
            free = self.threshold - priced(self.states, weight, price, self.ahead[0], chosen)
            line = Tangent(float(chosen @ weight), free)
            if line.at(price) < bound:
                self.price, bound = price, line.at(price)
            if free < 0:
                heavy = line
            else:
                light, lightest = line, chosen
            price = max(heavy.weight - light.weight, 0.0) / (light.free - heavy.free)
            if light.at(price) >= bound * (1 - EFFORT.close):
                break
        return self._learn(lightest, bound)


class Tangent(NamedTuple):
    """The bound that a set gives for each price of load: its weight, and the load that it leaves."""

    weight: float
    free: float

    def at(self, price: float) -> float:
        """Return the bound for a price."""
        return self.weight + price * self.free


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

    def quick(self, weight: Floats) -> Column:
        """Return the column that takes supernodes by decreasing weight over time until the device is full."""
        share = fullest(self.time, weight, self.threshold)
        return Column(share, float(share @ weight))

    def exact(self, weight: Floats, quick: Column) -> Column:
        """Return the answer of :meth:`quick`, which is the heaviest column."""
        return quick
