"""Simulated annealing over the stages of a chain, for graphs whose ideals do not fit in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partitioner.methods.local_search.layouts import StageLayout
from partitioner.methods.local_search.rounds import LocalSearch
from partitioner.methods.method import Part, Settings, meets
from partitioner.problem.arrays import Ints
from partitioner.problem.variants import ChainProblem

BYTES = 16  # that the search takes for each net and device
SHARE = 4  # of the memory budget, as a divisor


class ChainAnnealing:
    """Annealing of chains, with the kinds of devices in the order in which the best chain has them.

    Parameters
    ----------
    problem, settings
        The problem and the settings, of which the memory budget and the seed count here.
    """

    def __init__(self, problem: ChainProblem, settings: Settings) -> None:
        self.problem, self._budget, self._seed = problem, settings.memory_budget, settings.seed
        self._search: LocalSearch | None = None

    @property
    def is_affordable(self) -> bool:
        """Whether annealing knows the costs of these chains, and fits the memory budget."""
        devices, nets = int(self.problem.count.sum()), len(self.problem.nets.cost)
        fits = BYTES * nets * devices <= self._budget // SHARE
        return fits and devices > 1 and self.problem.pipeline is None

    def run(
        self, stages: Sequence[Part], bound: float, moves: int, settings: Settings
    ) -> tuple[float, list[Part]] | None:
        """Anneal from a chain and from random ones.

        Parameters
        ----------
        stages
            The best chain known.
        bound
            A lower bound; annealing ends if a chain meets it.
        moves
            How many moves of one supernode to make.
        settings
            Say when to stop, and the gap that is to be closed.

        Returns
        -------
        tuple or None
            The value and the stages of the best chain found; None if there is none that obeys the rules.
        """
        kind = self._kinds(stages)
        if self._search is None or not np.array_equal(self._search.layout.kind, kind):
            self._search = LocalSearch(StageLayout(self.problem, kind), self._seed)
        search = self._search
        search.offer(stages)
        end = search.shifts + moves
        search.run(lambda: not (settings.expired or meets(bound, search.value, settings.gap)), end)
        return None if search.parts is None else (search.value, search.parts)

    def _kinds(self, stages: Sequence[Part]) -> Ints:
        """Return the kinds of the stages in their order, and those of the unused devices after them."""
        used = np.array([stage.kind for stage in stages], dtype=np.int64)
        left = self.problem.count - np.bincount(used, minlength=len(self.problem.count))
        return np.concatenate((used, np.repeat(np.arange(len(left)), left)))
