"""Prices of the devices' time and memory, for each set of kinds that may be left in a search over many kinds.

With prices p the rest of a chain cannot be within threshold t if it needs more than its devices offer:

    sum over v of min over k of p[k] * time[k, v]  >  sum over k of p[k] * t * left[k]

Any prices give a valid bound. Those of kinds that the cheapest assignment overloads rise, round by round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.bounds.relaxation import HUGE, Relaxation
from partitioner.problem.arrays import Bools, Floats
from partitioner.problem.problem import Problem


@dataclass(frozen=True)
class PricesEffort:
    """How many prices are tried.

    Parameters
    ----------
    rounds, further_rounds, entries, further_entries
        How often prices change at first and for each threshold, and the entries of them that may change then.
    first_step, last_step
        By which factor a price changes at first and at last.
    most_entries
        Prices have a row for each set of kinds up to this number of sets x kinds x supernodes.
    """

    rounds: int = 150
    further_rounds: int = 40
    entries: int = 60_000_000
    further_entries: int = 16_000_000
    first_step: float = 0.3
    last_step: float = 0.01
    most_entries: int = 20_000_000


EFFORT = PricesEffort()
STEEPEST = 4.0  # times the mean load, above which a load raises its price no faster


class SetPrices(NamedTuple):
    """The prices for each set of kinds, the set of kinds in bits: R sets, or one row for every set.

    Parameters
    ----------
    present
        Shape (R, K): whether each kind is in the set.
    time, memory
        Shape (R, K): the prices.
    weight
        Shape (R, n): the least cost of each supernode on any kind of the set, infinity if none may run it.
    """

    present: Bools
    time: Floats
    memory: Floats
    weight: Floats

    @property
    def by_set(self) -> bool:
        """Whether every set of kinds has a row."""
        return len(self.time) > 1


def prices_of(problem: Problem, relaxation: Relaxation) -> SetPrices:
    """Return prices for every set of kinds; one row, those of the relaxation, if the sets are too many."""
    kinds, work = len(problem.count), problem.work()
    present = np.ones((1, kinds), dtype=bool)
    if kinds <= 16 and kinds * problem.n << kinds <= EFFORT.most_entries:
        present = (np.arange(1 << kinds)[:, None] >> np.arange(kinds)) & 1 == 1
    time = np.tile(relaxation.time_price, (len(present), 1))
    memory = np.tile(relaxation.memory_price, (len(present), 1))
    rounds = min(EFFORT.rounds, EFFORT.entries // (len(present) * work.size))
    return _priced(problem, work, present, time, memory, rounds)


def prices_within(problem: Problem, prices: SetPrices, load: float) -> SetPrices:
    """Return prices for stages of at most this load: kinds on which a supernode takes more do not count."""
    work = problem.work()
    fits = np.where(work <= load, work, np.inf)
    if (fits == work).all():
        return prices
    rounds = min(EFFORT.further_rounds, EFFORT.further_entries // (len(prices.present) * work.size))
    return _priced(problem, fits, prices.present, prices.time, prices.memory, rounds)


def _priced(
    problem: Problem, work: Floats, present: Bools, time: Floats, memory: Floats, rounds: int
) -> SetPrices:
    """Return the prices with the weights that follow, improved where time alone has prices."""
    work = np.ascontiguousarray(work)
    if len(present) > 1 and not memory.any():
        best, steps = time.copy(), np.geomspace(EFFORT.first_step, EFFORT.last_step, rounds)
        _improve(time.copy(), best, work, problem.count, present, steps)
        time = best
    return SetPrices(present, time, memory, _weights(time, memory, work, problem.size, present))


@njit(cache=True, nogil=True)
def _improve(price, best, work, count, present, steps):  # type: ignore[no-untyped-def]
    """Raise prices of kinds that the cheapest assignment overloads, lower others; `best` gets the best ones.

    Parameters
    ----------
    price, best
        Shape (R, K): the first prices of each set; they are changed.
    work, count, present
        Shapes (K, n), (K,) and (R, K): times, infinity where a kind may not run a supernode; devices of each
        kind; and whether the kind is in the set.
    steps
        The step of each round.
    """
    kinds, n = work.shape
    load = np.empty(kinds)
    for row in range(len(price)):
        value = -1.0
        for e in range(len(steps)):
            need, speed, mean, members = 0.0, 0.0, 0.0, 0
            for k in range(kinds):
                load[k] = 0.0
            for v in range(n):
                least, chosen = np.inf, -1
                for k in range(kinds):
                    if present[row, k] and work[k, v] * price[row, k] < least:
                        least, chosen = work[k, v] * price[row, k], k
                if chosen >= 0:
                    need += least
                    load[chosen] += work[chosen, v]
            for k in range(kinds):
                if present[row, k] and count[k] > 0:
                    speed += price[row, k] * count[k]
                    load[k] /= count[k]
                    mean += load[k]
                    members += 1
            if speed <= 0.0 or mean <= 0.0:
                break
            if need > value * speed:
                value = need / speed
                for k in range(kinds):
                    best[row, k] = price[row, k]
            for k in range(kinds):
                excess = min(load[k] * members / mean, STEEPEST) - 1.0
                if present[row, k]:
                    price[row, k] *= math.exp(steps[e] * excess)


def _weights(time: Floats, memory: Floats, work: Floats, size: Floats, present: Bools) -> Floats:
    """Return the least cost of each supernode on any kind of each set, infinity if none may run it."""
    weight = np.full((len(present), work.shape[1]), np.inf)
    for k, each in enumerate(work):
        rows = present[:, k]
        may = each < np.inf
        cost = np.minimum(np.where(may, each, 0.0) * time[rows, k, None], HUGE) + memory[rows, k, None] * size
        weight[rows] = np.minimum(weight[rows], np.where(may, cost, np.inf))
    return weight
