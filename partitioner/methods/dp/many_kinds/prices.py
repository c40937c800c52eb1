"""Prices of the devices' time for every set of kinds, which bound the work that a set can still take.

A set of kinds may be all that is left for the rest of a chain. Then a supernode costs the least over these
kinds alone, and prices that suit these kinds prove more than those for all kinds
(:mod:`partitioner.methods.bounds.relaxation` says why any prices give a bound).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp.many_kinds.price_kernel import fill_weights, improve_prices
from partitioner.problem.arrays import Bools, Floats
from partitioner.problem.problem import Problem

MOST_ENTRIES = 20_000_000  # sets x kinds x supernodes; above that there is one row of prices for all sets
ROUNDS, FURTHER_ROUNDS = 150, 40
EFFORT, FURTHER_EFFORT = 60_000_000, 16_000_000  # entries x rounds
FIRST_STEP, LAST_STEP = 0.3, 0.01


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
    if kinds <= 16 and kinds * problem.n << kinds <= MOST_ENTRIES:
        present = (np.arange(1 << kinds)[:, None] >> np.arange(kinds)) & 1 == 1
    time = np.tile(relaxation.time_price, (len(present), 1))
    memory = np.tile(relaxation.memory_price, (len(present), 1))
    rounds = min(ROUNDS, EFFORT // (len(present) * work.size))
    return _priced(problem, work, present, time, memory, rounds)


def prices_within(problem: Problem, prices: SetPrices, load: float) -> SetPrices:
    """Return prices for stages of at most this load: kinds on which a supernode takes more do not count."""
    work = problem.work()
    fits = np.where(work <= load, work, np.inf)
    if (fits == work).all():
        return prices
    rounds = min(FURTHER_ROUNDS, FURTHER_EFFORT // (len(prices.present) * work.size))
    return _priced(problem, fits, prices.present, prices.time, prices.memory, rounds)


def _priced(
    problem: Problem, work: Floats, present: Bools, time: Floats, memory: Floats, rounds: int
) -> SetPrices:
    """Return the prices with the weights that follow, improved where time alone has prices."""
    work = np.ascontiguousarray(work)
    if len(present) > 1 and not memory.any():
        best, steps = time.copy(), np.geomspace(FIRST_STEP, LAST_STEP, rounds)
        improve_prices(time.copy(), best, work, problem.count, present, steps)
        time = best
    weight = np.empty((len(present), problem.n))
    fill_weights(time, memory, work, problem.size, present, weight)
    return SetPrices(present, time, memory, weight)
