"""A lower bound on the largest load: the fractional assignment, through its dual.

Let T be the largest load of any placement, chain or not. Device i of kind k has T time and M_k
memory, so for all multipliers a_k, b_k >= 0

    sum over v of  min over kinds k that may run v of (a_k time_kv + b_k size_v)
        <=  sum over kinds k of  count_k (a_k T + b_k M_k).

The left side is additive over supernodes, so the same multipliers also bound what any *part* of the
graph needs of the devices that remain. The dynamic program prunes with that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.problem import Problem

ROUNDS = 3
MOST_MOVES = 36  # multipliers x rounds: fewer rounds where there are many kinds
HUGE = 1e300
SLACK = 1e-9  # of sums of weights: a part that exceeds a capacity by less may be within it
STEPS = [
    np.concatenate(([0.0], base ** np.arange(-reach, reach + 1.0)))
    for base, reach in ((4.0, 8), (1.4, 6), (1.06, 6), (1.01, 6), (1.0015, 6))
]


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A lower bound on the largest load, and the multipliers that prove it.

    Parameters
    ----------
    bound
        No placement has a smaller largest load. Infinity: no placement fits the memory.
    weight
        Shape (n,): how much of the joint capacity of the devices each supernode takes.
    time_price, memory_price
        Shape (K,): the multipliers a and b.
    passes
        The relaxations of the forward and of the backward pass alone, where methods need them; else empty.
    """

    bound: float
    weight: Floats
    time_price: Floats
    memory_price: Floats
    passes: tuple[Relaxation, ...] = ()

    def merged(self, block: Ints) -> Relaxation:
        """Return the relaxation of blocks of supernodes; `block` has shape (n,)."""
        weight: Floats = np.bincount(block, self.weight).astype(np.float64)
        return replace(self, weight=weight, passes=tuple(each.merged(block) for each in self.passes))

    def capacity(self, load: float, counts: Ints, memory: Floats) -> Floats:
        """Return how much sets of devices can take at a largest load; `counts` has shape (..., K)."""
        room = np.where(self.memory_price > 0, memory, 0.0) * self.memory_price
        with np.errstate(over="ignore"):
            time = np.where(self.time_price > 0, load, 0.0) * self.time_price
            each = np.minimum(time + room, HUGE)
        return np.asarray(counts @ each)


class _Costs:
    """What each supernode costs on each kind with devices at given prices, and the least of it.

    Parameters
    ----------
    problem
        The problem.
    price
        Shape (2 K,): of time and of memory, by kind.
    """

    def __init__(self, problem: Problem, price: Floats) -> None:
        self.kinds = np.flatnonzero(problem.count)
        self.time, self.size = problem.time[self.kinds].sum(axis=1), problem.size
        self.barred = ~problem.allowed[self.kinds]
        self.total = len(problem.count)
        self.rows = np.empty(self.time.shape)
        for row in range(len(self.kinds)):
            self.rows[row] = self._row(row, *self._prices(price, row))
        self._rank()

    def change(self, k: int, price: Floats) -> None:
        """Take over a changed price, the one at place `k`."""
        row = self._place(k)
        self.rows[row] = self._row(row, *self._prices(price, row))
        self._rank()

    def least(self) -> Floats:
        """Return the least cost of each supernode on any kind, shape (n,)."""
        return np.asarray(self.first)

    def least_sums(self, k: int, prices: Floats) -> Floats:
        """Return the summed least costs at each of some prices, shape (s, 2 K), which differ at `k` alone."""
        row = self._place(k)
        others = np.where(self.kind == row, self.second, self.first)
        time_price, memory_price = prices[:, [self.kinds[row], self.total + self.kinds[row]]].T[:, :, None]
        return np.asarray(np.minimum(self._row(row, time_price, memory_price), others).sum(axis=1))

    def _place(self, k: int) -> int:
        return int(np.searchsorted(self.kinds, k % self.total))

    def _prices(self, price: Floats, row: int) -> tuple[float, float]:
        return float(price[self.kinds[row]]), float(price[self.total + self.kinds[row]])

    def _row(self, row: int, time_price: Floats | float, memory_price: Floats | float) -> Floats:
        """Return costs on a kind, shape (n,), or (s, n) for prices of shape (s, 1)."""
        cost = self.time[row] * time_price + self.size * memory_price
        cost[..., self.barred[row]] = np.inf
        return np.asarray(cost)

    def _rank(self) -> None:
        """Compute the cheapest kind of each supernode, the cost there, and the least one elsewhere."""
        self.kind = self.rows.argmin(axis=0)
        everywhere = np.arange(len(self.kind))
        self.first = self.rows[self.kind, everywhere]
        others = self.rows.copy()
        others[self.kind, everywhere] = np.inf
        self.second = others.min(axis=0)


def relax(problem: Problem) -> Relaxation:
    """Return the relaxation for multipliers that are improved one at a time, so that the bound is large.

    Any multipliers give a valid bound. With one kind of device and no memory limit the bound is the total
    work over the number of devices; with two kinds it is the optimum of the fractional assignment up to the
    step of the search.
    """
    problem = problem.relaxed
    scale = _scales(problem)
    kinds = len(problem.count)
    price = np.concatenate((np.ones(kinds), np.zeros(kinds)))
    costs = _Costs(problem, price * scale)
    best = float(_duals(problem, price[None] * scale, costs.least().sum(keepdims=True))[0])
    movable = _movable(problem)
    rounds = min(ROUNDS, max(1, MOST_MOVES // max(len(movable), 1)))
    for _ in range(rounds if len(movable) > 1 else 0):
        for steps in STEPS:
            for k in movable:
                best, price = _best_step(problem, costs, price, scale, k, steps, best)
    heaviest = float((problem.work() / problem.copies[:, None])[problem.count > 0].min(axis=0).max())
    return Relaxation(
        max(best, heaviest), costs.least(), price[:kinds] * scale[:kinds], price[kinds:] * scale[kinds:]
    )


def _scales(problem: Problem) -> Floats:
    """Return the units of the prices, shape (2 K,): one over the mean time, and one over the mean size."""
    time = problem.time.sum(axis=1)[problem.allowed]
    mean_time = time.mean() if time.sum() > 0 else 1.0
    mean_size = problem.size.mean() if problem.size.sum() > 0 else 1.0
    kinds = len(problem.count)
    return np.concatenate((np.full(kinds, 1 / mean_time), np.full(kinds, 1 / mean_size)))


def _movable(problem: Problem) -> list[int]:
    """Return the multipliers whose change can raise the bound: times of present kinds, scarce memories."""
    present = problem.count > 0
    limited = present & (problem.memory < problem.size.sum())
    return np.flatnonzero(np.concatenate((present, limited))).tolist()


def _best_step(
    problem: Problem, costs: _Costs, price: Floats, scale: Floats, k: int, steps: Floats, best: float
) -> tuple[float, Floats]:
    """Return the best value and prices with price `k` multiplied by one of the steps, or as they are."""
    trials = np.repeat(price[None], len(steps), axis=0)
    trials[:, k] = (price[k] if price[k] > 0 else 1.0) * steps
    values = _duals(problem, trials * scale, costs.least_sums(k, trials * scale))
    found = int(values.argmax())
    if not values[found] > best:
        return best, price
    costs.change(k, trials[found] * scale)
    return float(values[found]), trials[found]


def _duals(problem: Problem, prices: Floats, need: Floats) -> Floats:
    """Return the bounds that some prices (s, 2 K) prove; infinity if they prove that memory is too small.

    `need` has the summed least costs of the supernodes, shape (s,).
    """
    kinds = len(problem.count)
    time_price, memory_price = prices[:, :kinds], prices[:, kinds:]
    room = np.where(memory_price > 0, problem.memory, 0.0) * memory_price
    excess = need - (problem.count * room).sum(axis=1)
    speed = (problem.count * time_price).sum(axis=1)
    none = np.where(excess > 1e-9 * need, np.inf, 0.0)  # without a price of time
    return np.where(speed > 0, np.maximum(excess / np.where(speed > 0, speed, 1.0), 0.0), none)


def fullest(time: Floats, weight: Floats, threshold: float) -> Floats:
    """Return the shares of supernodes with the largest weight on a device with a load of at most `threshold`.

    They are the shares of the fractional knapsack: supernodes by decreasing weight over time until the device
    is full.

    Parameters
    ----------
    time, weight
        Shape (n,): time of each supernode, infinity if it may not run there, and its weight.
    threshold
        The largest load.

    Examples
    --------
    >>> fullest(np.array([2.0, 2.0, np.inf]), np.array([1.0, 3.0, 9.0]), 3.0).tolist()
    [0.5, 1.0, 0.0]
    """
    share = np.where(time <= 0, 1.0, 0.0)
    timed = (time > 0) & np.isfinite(time) & (weight > 0)
    ratio = np.divide(weight, time, out=np.zeros(len(weight)), where=timed)
    order = np.argsort(-ratio, kind="stable")
    order = order[timed[order]]
    before = np.concatenate(([0.0], np.cumsum(time[order])[:-1]))
    share[order] = np.clip((threshold - before) / time[order], 0.0, 1.0)
    return np.asarray(share)
