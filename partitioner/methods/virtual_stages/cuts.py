"""The cuts at which stages may begin and end: all ideals if they are few, else those of one order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from partitioner.methods.dp.ideals import ideal_lattice
from partitioner.methods.method import Settings
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.variants import PipelineProblem

MOST_CUTS = 600
COVERS_PER_CUT = 64


@dataclass(frozen=True, eq=False)
class StageCuts:
    """`m` sets of supernodes, smallest first, of which none leads to one outside; a stage lies between two.

    Parameters
    ----------
    member
        Shape (m, n): the supernodes before each cut.
    complete
        Whether these are all such sets.
    """

    member: Bools
    complete: bool

    def __len__(self) -> int:
        return len(self.member)

    @cached_property
    def size(self) -> Ints:
        """Shape (m,): how many supernodes are before each cut."""
        return np.asarray(self.member.sum(axis=1))

    @cached_property
    def nested(self) -> Bools:
        """Shape (m, m): whether the second cut comes after the first."""
        shared = self.member.astype(np.float64) @ self.member.T.astype(np.float64)
        return np.asarray((shared == self.size[:, None]) & (self.size[:, None] < self.size[None, :]))

    def sums(self, amount: Floats) -> Floats:
        """Return the sum of an amount over the supernodes between two cuts, shape (m, m); `amount`: (n,)."""
        total = self.member @ amount
        return np.asarray(total[None, :] - total[:, None])

    def stage(self, first: int, last: int) -> Ints:
        """Return the supernodes between two cuts."""
        return np.flatnonzero(self.member[last] & ~self.member[first])


def cuts_of(problem: PipelineProblem, settings: Settings) -> StageCuts:
    """Return all ideals if there are at most `MOST_CUTS`, else the prefixes of the topological order."""
    limit = min(MOST_CUTS, settings.memory_budget // 2**16)
    lattice = ideal_lattice(problem, limit + 1, COVERS_PER_CUT * MOST_CUTS, lambda: settings.expired)
    if lattice is None or lattice.size > limit:
        return StageCuts(np.tri(problem.n + 1, problem.n, -1, dtype=bool), complete=False)
    member = np.zeros((lattice.size, problem.n), dtype=bool)
    for i in range(1, lattice.size):  # a subset comes before its supersets
        member[i] = member[lattice.parent[i]]
        member[i, lattice.added[i]] = True
    return StageCuts(member, complete=True)
