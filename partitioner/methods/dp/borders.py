"""The borders between the stages of a known chain, all moved at once by the exact dynamic program.

The chain is written as a linear order, stage by stage. Supernodes near a border stay single, and the rest
of each stage is one block. The ideals of these blocks fit in memory even if those of the graph do not, and
the best chain through them is found exactly. Another random order puts other supernodes near the borders.
"""

from __future__ import annotations

from typing import Generic

import numpy as np

from partitioner.methods.dp.ideals import Lattice, ideal_lattice
from partitioner.methods.dp.lattice_limits import COVERS_PER_IDEAL, ideal_bytes
from partitioner.methods.dp.linear import Chain, LinearSearch, refined
from partitioner.problem.arrays import Ints

IDEALS, BYTES = 20_000, 8 * 2**20  # of one lattice, and of its table
FIRST_REACH, LEAST_REACH = 8.0, 1.0  # supernodes on each side of a border that stay single
CLOSER, WIDER, ROOMY = 0.9, 1.05, 0.25  # changes of the reach, the latter if so little of the lattice is used


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
        self._most = min(IDEALS, min(BYTES, linear.settings.memory_budget) // each)
        self._reach = FIRST_REACH

    def run(self, steps: int, most_idle: int) -> None:
        """Try random orders for about so many steps, or until so many in a row have failed."""
        end, self.idle = self.linear.steps + steps, 0
        while self._goes_on(end) and self.idle < most_idle:
            self.idle = 0 if self.attempt() else self.idle + 1

    def attempt(self) -> bool:
        """Try one random order; return whether the chain has improved."""
        found = self.linear.search(self._blocks(), self._lattice)
        if found is None:
            self._reach = max(LEAST_REACH, CLOSER * self._reach)
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
        lattice = ideal_lattice(problem, most, COVERS_PER_IDEAL * most, lambda: settings.expired)
        if lattice is not None and lattice.size < ROOMY * self._most:
            self._reach = min(WIDER * self._reach, float(self.linear.problem.n))
        return lattice
