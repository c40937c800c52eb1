"""The improvement of a known chain if the ideals do not fit in memory: annealing, then moves of borders.

Without annealing 6 of 12 networks with wide branchings have a worse chain, by up to 4 %
(scripts/ablations.py). In the same CPU seconds moves of borders with it are 0.2 % better than annealing alone
on NASNet-A mobile with 8 devices, and 0.4 % worse with 4; of pipelines annealing knows nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np

from partitioner.methods.dp.lattice import Lattice, ideal_lattice
from partitioner.methods.dp.linear import EFFORT as ORDERS
from partitioner.methods.dp.linear import Chain, LinearSearch, ideal_bytes, refined
from partitioner.methods.local_search.rounds import EFFORT as ANNEALING
from partitioner.methods.local_search.rounds import LocalSearch, StageLayout
from partitioner.methods.method import Part, Settings, meets
from partitioner.problem.arrays import Ints
from partitioner.problem.variants import ChainProblem


@dataclass(frozen=True)
class ImprovementEffort:
    """How long each round of annealing and of moving borders takes.

    Parameters
    ----------
    walked, idle
        Steps of moving borders for each supernode in the first round, and attempts in a row that fail.
    growth
        The factor of the effort from round to round.
    patience, rounds
        Seconds and rounds of a run without a time limit.
    ideals, lattice_bytes
        Of one lattice around the borders, and the bytes of its table.
    first_reach, least_reach, closer, wider, roomy
        Supernodes on each side of a border that stay single, at first and at least; the factor if the lattice
        is too large, and if it uses less than a fraction `roomy` of the ideals.
    bytes_a_net, share
        The bytes that annealing takes for each net and device, and the part of the memory budget, as a
        divisor, that it may take.
    """

    walked: int = 2_000
    idle: int = 60
    growth: int = 3
    patience: float = 60.0
    rounds: int = 4
    ideals: int = 20_000
    lattice_bytes: int = 8 * 2**20
    first_reach: float = 8.0
    least_reach: float = 1.0
    closer: float = 0.9
    wider: float = 1.05
    roomy: float = 0.25
    bytes_a_net: int = 16
    share: int = 4


EFFORT = ImprovementEffort()


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
        fits = EFFORT.bytes_a_net * nets * devices <= self._budget // EFFORT.share
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


class BorderSearch(Generic[Chain]):
    """Improves the chain of a search over linear orders.

    Parameters
    ----------
    linear
        The search, whose best chain, value and steps are updated.
    seed
        Of the random orders.

    Attributes
    ----------
    idle
        How many attempts in a row have not improved the chain.
    """

    def __init__(self, linear: LinearSearch[Chain], seed: int) -> None:
        self.linear, self.idle = linear, 0
        self._random = np.random.default_rng(seed)
        each = ideal_bytes(linear.problem, linear.model)
        self._most = min(EFFORT.ideals, min(EFFORT.lattice_bytes, linear.settings.memory_budget) // each)
        self._reach = EFFORT.first_reach

    def run(self, steps: int, most_idle: int) -> None:
        """Try random orders for about `steps` steps, or until `most_idle` in a row have failed."""
        end, self.idle = self.linear.steps + steps, 0
        while self._goes_on(end) and self.idle < most_idle:
            self.idle = 0 if self.attempt() else self.idle + 1

    def attempt(self) -> bool:
        """Try one random order; return whether the chain has improved."""
        found = self.linear.search(self._blocks(), self._lattice)
        if found is None:
            self._reach = max(EFFORT.least_reach, EFFORT.closer * self._reach)
        return bool(found)

    def _goes_on(self, end: int) -> bool:
        linear = self.linear
        known = linear.stages is not None and len(linear.stages) > 1
        return known and linear.steps < end and not (linear.closed or linear.settings.expired)

    def _blocks(self) -> Ints:
        """Return the block of every supernode, shape (n,): single near the borders of a random order."""
        stages, n = self.linear.stages or [], self.linear.problem.n
        order = refined(self.linear.problem, stages, self._random)
        starts, reach = np.zeros(n, dtype=bool), int(self._reach)
        for cut in np.cumsum([len(stage.nodes) for stage in stages])[:-1].tolist():
            starts[max(cut - reach, 1) : cut + reach + 1] = True
        block = np.empty(n, dtype=np.int64)
        block[order] = np.cumsum(starts)
        return block

    def _lattice(self, problem: Chain) -> Lattice | None:
        """Return the lattice of the blocks; None if it is too large."""
        settings, most = self.linear.settings, self._most
        lattice = ideal_lattice(problem, most, ORDERS.covers_per_ideal * most, lambda: settings.expired)
        if lattice is not None and lattice.size < EFFORT.roomy * self._most:
            self._reach = min(EFFORT.wider * self._reach, float(self.linear.problem.n))
        return lattice


def patient(settings: Settings) -> Settings:
    """Return the settings with a deadline: ``EFFORT.patience`` seconds from now if there is none.

    A run whose work must not depend on the clock gets none; it ends after a number of rounds.
    """
    if settings.deterministic or settings.deadline is not None:
        return settings
    return settings.within(EFFORT.patience)


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
        effort = linear.problem.n * EFFORT.growth**number
        if self.annealing.is_affordable:
            moves = ANNEALING.shifts * effort
            found = self.annealing.run(linear.stages, linear.bound, moves, linear.settings)
            if found is not None:
                linear.offer(*found)
        self.borders.run(EFFORT.walked * effort, EFFORT.idle)

    def run_on(self) -> None:
        """Improve the chain until the gap is closed or the time limit; without one with a default effort."""
        settings, number = self.linear.settings, 0
        unlimited, self.linear.settings = settings.deadline is None, patient(settings)
        while (
            not self._is_over
            and self.linear.stages is not None
            and not (unlimited and number == EFFORT.rounds)
        ):
            self.run(number)
            number += 1
        self.linear.settings = settings

    @property
    def _is_over(self) -> bool:
        return self.linear.closed or self.linear.settings.expired
