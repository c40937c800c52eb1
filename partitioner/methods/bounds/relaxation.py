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
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.problem import Problem

ROUNDS = 3
MOST_MOVES = 36  # multipliers x rounds: fewer rounds where there are many kinds
HUGE = 1e300
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


class _Each(NamedTuple):
    """Kinds with devices (k,), and of each supernode its time there, its size, and where it may not run."""

    kinds: Ints
    time: Floats
    size: Floats
    barred: NDArray[np.bool_]


def relax(problem: Problem) -> Relaxation:
    """Return the relaxation for multipliers that are improved one at a time, so that the bound is large.

    Any multipliers give a valid bound. With one kind of device and no memory limit the bound is the total
    work over the number of devices; with two kinds it is the optimum of the fractional assignment up to the
    step of the search.
    """
    problem = problem.relaxed()
    present = np.flatnonzero(problem.count)
    each = _Each(present, problem.time[present].sum(axis=1), problem.size, ~problem.allowed[present])
    scale = _scales(problem)
    kinds = len(problem.count)
    price = np.concatenate((np.ones(kinds), np.zeros(kinds)))
    best = _dual(problem, each, price, scale)
    movable = _movable(problem)
    rounds = min(ROUNDS, max(1, MOST_MOVES // max(len(movable), 1)))
    for _ in range(rounds if len(movable) > 1 else 0):
        for steps in STEPS:
            for k in movable:
                best, price = _best_step(problem, each, price, scale, k, steps, best)
    heaviest = float((problem.work() / problem.copies[:, None])[problem.count > 0].min(axis=0).max())
    weight = _weight(each, price * scale)
    return Relaxation(
        max(best, heaviest), weight, price[:kinds] * scale[:kinds], price[kinds:] * scale[kinds:]
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
    problem: Problem, each: _Each, price: Floats, scale: Floats, k: int, steps: Floats, best: float
) -> tuple[float, Floats]:
    base = price[k] if price[k] > 0 else 1.0
    for step in steps:
        trial = price.copy()
        trial[k] = base * step
        value = _dual(problem, each, trial, scale)
        if value > best:
            best, price = value, trial
    return best, price


def _weight(each: _Each, price: Floats) -> Floats:
    """Return the least cost of each supernode on any kind at these prices, shape (n,)."""
    time_price, memory_price = price.reshape(2, -1)[:, each.kinds, None]
    cost = each.time * time_price
    if memory_price.any():
        cost += each.size * memory_price
    cost[each.barred] = np.inf
    return reduce(np.minimum, cost)


def _dual(problem: Problem, each: _Each, price: Floats, scale: Floats) -> float:
    """Return the bound that these prices prove; infinity if they prove that memory is too small."""
    kinds = len(problem.count)
    time_price, memory_price = (price * scale)[:kinds], (price * scale)[kinds:]
    need = float(_weight(each, price * scale).sum())
    priced = memory_price > 0
    room = np.where(priced, problem.memory, 0.0) * memory_price
    excess = need - float((problem.count * room).sum())
    speed = float((problem.count * time_price).sum())
    if speed <= 0:
        return np.inf if excess > 1e-9 * need else 0.0
    return max(excess / speed, 0.0)
