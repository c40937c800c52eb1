"""The improvement of a known chain if the ideals do not fit in memory: annealing, then moves of borders."""

from __future__ import annotations

from typing import Generic

from partitioner.methods.dp.annealing import ChainAnnealing
from partitioner.methods.dp.borders import BorderSearch
from partitioner.methods.dp.linear import Chain, LinearSearch
from partitioner.methods.local_search.rounds import SHIFTS_PER_NODE

WALKED, IDLE = 2_000, 60  # steps of moving borders for each supernode in the first round; failures in a row
GROWTH = 3  # of the effort from round to round
PATIENCE, ROUNDS = 60.0, 4  # seconds and rounds of a run without a time limit


class ChainImprovement(Generic[Chain]):
    """Improves the best chain of a search over linear orders.

    Parameters
    ----------
    linear
        The search, whose best chain, value and steps are updated.
    """

    def __init__(self, linear: LinearSearch[Chain]) -> None:
        self.linear = linear
        self.annealing = ChainAnnealing(linear.problem, linear.settings)
        self.borders = BorderSearch(linear, linear.settings.seed)

    def run(self, number: int) -> None:
        """Improve the chain in a round of this number, counted from 0, if tensors are transferred."""
        if self._is_over or self.linear.stages is None or not len(self.linear.problem.nets.cost):
            return
        effort = self.linear.problem.n * GROWTH**number
        if self.annealing.is_affordable:
            moves, linear = SHIFTS_PER_NODE * effort, self.linear
            found = self.annealing.run(self.linear.stages, linear.bound, moves, linear.settings)
            if found is not None:
                self.linear.offer(*found)
        self.borders.run(WALKED * effort, IDLE)

    def run_on(self) -> None:
        """Improve the chain until the gap is closed or the time limit; without one with a default effort."""
        settings, number = self.linear.settings, 0
        unlimited = settings.deadline is None
        if unlimited and not settings.deterministic:
            self.linear.settings = settings.within(PATIENCE)
        while not self._is_over and self.linear.stages is not None and not (unlimited and number == ROUNDS):
            self.run(number)
            number += 1
        self.linear.settings = settings

    @property
    def _is_over(self) -> bool:
        return self.linear.closed or self.linear.settings.expired
