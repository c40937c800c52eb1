"""The improvement of a known chain if the ideals do not fit in memory: annealing, then moves of borders."""

from __future__ import annotations

from typing import Generic

from partitioner.methods.dp.annealing import ChainAnnealing
from partitioner.methods.dp.borders import BorderSearch
from partitioner.methods.dp.linear import Chain, LinearSearch
from partitioner.methods.local_search.rounds import SHIFTS_PER_NODE
from partitioner.methods.method import Settings

WALKED, IDLE = 2_000, 60  # steps of moving borders for each supernode in the first round; failures in a row
GROWTH = 3  # of the effort from round to round
PATIENCE, ROUNDS = 60.0, 4  # seconds and rounds of a run without a time limit


def patient(settings: Settings) -> Settings:
    """Return the settings with a deadline: :data:`PATIENCE` seconds from now if there is none.

    A run whose work must not depend on the clock gets none; it ends after a number of rounds.
    """
    if settings.deterministic or settings.deadline is not None:
        return settings
    return settings.within(PATIENCE)


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
        linear = self.linear
        if self._is_over or linear.stages is None or not len(linear.problem.nets.cost):
            return
        effort = linear.problem.n * GROWTH**number
        if self.annealing.is_affordable:
            moves = SHIFTS_PER_NODE * effort
            found = self.annealing.run(linear.stages, linear.bound, moves, linear.settings)
            if found is not None:
                linear.offer(*found)
        self.borders.run(WALKED * effort, IDLE)

    def run_on(self) -> None:
        """Improve the chain until the gap is closed or the time limit; without one with a default effort."""
        settings, number = self.linear.settings, 0
        unlimited, self.linear.settings = settings.deadline is None, patient(settings)
        while not self._is_over and self.linear.stages is not None and not (unlimited and number == ROUNDS):
            self.run(number)
            number += 1
        self.linear.settings = settings

    @property
    def _is_over(self) -> bool:
        return self.linear.closed or self.linear.settings.expired
