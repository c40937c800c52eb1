"""The best stages at given prices if no device exceeds a limit: a walk over pairs of cuts, device by device.

Both stages of a device are chosen together, so that the path along the device is known. Where stages go round
the devices, both rounds are walked at once for every cut between them; in a V both ends are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from partitioner.methods.bounds.several_stages.arcs import StageArcs
from partitioner.methods.bounds.several_stages.pair_kernel import cheapest_sums, pair_step
from partitioner.methods.method import Settings
from partitioner.problem.arrays import Bools, Floats, Ints

MOST_STEPS = 30_000_000  # of all walks with a limit, at first
MOST_CUTS = 320
Pair = tuple[int, int]
Table = TypeVar("Table", Bools, Floats)
JointNets = tuple[Ints, Ints, Ints, Floats]


@dataclass(eq=False)
class PairWalk:
    """A walk for open stages and a limit on the path along each device.

    Parameters
    ----------
    arcs
        The times of stages.
    vee
        Whether device i has stages i and 2 p - 1 - i, else i and p + i.
    rows
        For every device the path along it, shape (stages, 3) each.
    open_
        Shape (stages, m, m): which stages there may be.
    nets
        For every device the nets that are not in the times of its stages.
    limit
        The limit on the paths.
    settings
        Say when the run must end.
    """

    arcs: StageArcs
    vee: bool
    rows: list[Floats]
    open_: Bools
    nets: list[JointNets]
    limit: float
    settings: Settings
    steps: int = 0
    most_steps: int = MOST_STEPS

    def __post_init__(self) -> None:
        self.devices, self.cuts = len(self.rows), self.open_.shape[1]
        self.own = [(i, self._other(i)) for i in range(self.devices)]
        self.along = [self._along(i) for i in range(self.devices)]
        self.lists = [
            (_lists(self.open_[one]), _lists(self._turned(self.open_[other]))) for one, other in self.own
        ]

    def _other(self, rank: int) -> int:
        return 2 * self.devices - 1 - rank if self.vee else self.devices + rank

    def _turned(self, each: Table) -> Table:
        """Return the arcs as the second stages of devices are walked."""
        return np.ascontiguousarray(each.T) if self.vee else each

    def _along(self, rank: int) -> tuple[Floats, Floats]:
        """Return the parts of the path along a device, with the least that comes before and after."""
        one, other = self.own[rank]
        costs = self.arcs.costs(self.rows[rank], self.open_)
        before, rest = self.arcs.before(costs), self.arcs.rest(costs)
        return before[one][:, None] + costs[one], self._turned(costs[other] + rest[other + 1][None, :])

    @property
    def over(self) -> bool:
        """Whether the walk is to be cut short."""
        return self.settings.expired or self.steps > self.most_steps

    def least(self, path: Floats) -> tuple[float, Ints | None] | None:
        """Return the least length of a weighted path, and the borders with it; None if cut short.

        The length is infinite, and there are no borders, if no stages keep to the limit.
        """
        best, borders = np.inf, None
        costs = self.arcs.costs(path, self.open_)
        for start, togo in self._vee(costs) if self.vee else self._rounds(costs):
            value, parents = self._walk(path, costs, start, togo, min(self.limit, best))
            if self.over:
                return None
            end = divmod(int(np.argmin(value)), self.cuts)
            if value[end] < best:
                best, borders = float(value[end]), self._borders(parents, end)
        return best, borders

    def _vee(self, costs: list[Floats]) -> Iterator[tuple[Pair, list[Floats]]]:
        """Yield where the walk begins, and for each device the least length from each pair of cuts on."""
        togo = [np.where(np.eye(self.cuts, dtype=bool), 0.0, np.inf)]
        for one, other in self.own[:0:-1]:
            togo.append(cheapest_sums(costs[one], cheapest_sums(togo[-1], costs[other])))
        yield (0, self.cuts - 1), togo[::-1]

    def _rounds(self, costs: list[Floats]) -> Iterator[tuple[Pair, list[Floats]]]:
        """Yield the same for every cut between the two rounds."""
        rest, first = self.arcs.rest(costs), costs[: self.devices]
        for middle in range(1, self.cuts - 1):
            left = self.arcs.rest(first, middle)
            if left[0][0] + rest[self.devices][middle] <= self.limit:
                togo = [left[one + 1][:, None] + rest[other + 1][None, :] for one, other in self.own]
                yield (0, middle), togo

    def _walk(
        self, path: Floats, costs: list[Floats], start: Pair, togo: list[Floats], limit: float
    ) -> tuple[Floats, list[Ints]]:
        """Return the least lengths by the pair of cuts reached, and the pairs before each device."""
        parents, value = list[Ints](), np.full((self.cuts, self.cuts), np.inf)
        value[start] = 0.0
        for rank, (one, other) in enumerate(self.own):
            if self.over:
                break
            found = np.full(value.shape, np.inf)
            parent = np.full(value.shape, -1, dtype=np.int64)
            sides = costs[one], self._turned(costs[other])
            prices = float(path[[one, other], :2].min()), float(self.rows[rank][[one, other], :2].min())
            self.steps += pair_step(
                value, limit, *self.lists[rank], *sides, *self.along[rank], togo[rank],
                self.nets[rank], *prices, found, parent,
            )  # fmt: skip
            value = found
            parents.append(parent)
        return value, parents

    def _borders(self, parents: list[Ints], end: Pair) -> Ints:
        """Return the cuts of the stages that lead to a pair."""
        front, back, at = [end[0]], [end[1]], end
        for parent in reversed(parents):
            at = divmod(int(parent[at]), self.cuts)
            front, back = [at[0], *front], [at[1], *back]
        return np.array([*front, *back[-2::-1]] if self.vee else [*front, *back[1:]])


def _lists(open_: Bools) -> tuple[Ints, Ints]:
    """Return the starts and items of the cuts to which stages lead from every cut."""
    return np.concatenate(([0], np.cumsum(open_.sum(axis=1)))), np.nonzero(open_)[1]
