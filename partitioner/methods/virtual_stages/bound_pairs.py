"""The best stages at given prices if no device exceeds a limit: a walk over pairs of cuts, device by device.

Both stages of a device are chosen together, so that the path along the device is known. Where stages go round
the devices, both rounds are walked at once for every cut between them; in a V both ends are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.method import Settings
from partitioner.methods.virtual_stages.bound_arcs import StageArcs
from partitioner.methods.virtual_stages.kernel import CutNets, joint_transfers
from partitioner.problem.arrays import Bools, Floats, Ints


class PricedStages(NamedTuple):
    """The stages that a device may take at one of two places; both matrices have shape (m, m).

    Parameters
    ----------
    start, items
        The cuts to which stages lead from every cut, as rows.
    cost, row
        What a stage adds to the weighted path, and its part of the path along the device.
    """

    start: Ints
    items: Ints
    cost: Floats
    row: Floats


class PricedNets(NamedTuple):
    """The nets that are not in the times of stages.

    Parameters
    ----------
    nets
        The nets.
    price, samples
        What a unit of their transfers adds to the weighted path at least, and to the path along the device.
    """

    nets: CutNets
    price: float
    samples: float


@njit(cache=True, nogil=True)
def pair_step(
    value: Floats, limit: float, front: PricedStages, back: PricedStages, togo: Floats, nets: PricedNets,
    found: Floats, parent: Ints,
) -> int:  # fmt: skip
    """Extend pipelines by the two stages of a device; return the number of steps.

    Parameters
    ----------
    value
        Shape (m, m): the least length of a weighted path over the stages so far, by the cuts to which they
        lead at the front and at the back; infinity if there are none.
    limit
        Only pipelines whose lengths may be at most this count.
    front, back, nets
        The stages at either place, and the nets that their times leave out.
    togo
        Shape (m, m): the least that all further stages add, by the cuts reached.
    found, parent
        Shape (m, m): filled with the values after this device, and with the pair of cuts before it.
    """
    m, steps = len(value), 0
    for a in range(m):
        for b in range(m):
            if value[a, b] > limit:
                continue
            for i in range(front.start[a], front.start[a + 1]):
                c = front.items[i]
                path, row = value[a, b] + front.cost[a, c], front.row[a, c]
                if path > limit or row > limit:
                    continue
                for j in range(back.start[b], back.start[b + 1]):
                    e = back.items[j]
                    steps += 1
                    length = path + back.cost[b, e]
                    if row + back.row[b, e] > limit or length + togo[c, e] > limit:
                        continue
                    if length >= found[c, e]:
                        continue
                    into, out = joint_transfers(nets.nets, a, c, b, e)
                    length += nets.price * (into + out)
                    if row + back.row[b, e] + nets.samples * (into + out) > limit:
                        continue
                    if length < found[c, e] and length + togo[c, e] <= limit:
                        found[c, e] = length
                        parent[c, e] = a * m + b
    return steps


@njit(cache=True, nogil=True)
def cheapest_sums(one: Floats, other: Floats) -> Floats:
    """Return the least sums over a middle cut, shape (m, m), of two matrices of that shape."""
    m = len(one)
    found = np.full((m, m), np.inf)
    for a in range(m):
        for c in range(m):
            if one[a, c] < np.inf:
                for b in range(m):
                    found[a, b] = min(found[a, b], one[a, c] + other[c, b])
    return found


@dataclass(frozen=True)
class PairWalkEffort:
    """How far the stages of two devices are walked together.

    At half and at twice each value the makespan and the bound of gnmt training on four devices (``zbv``) stay
    as they are.

    Parameters
    ----------
    steps, cuts
        The most steps of all walks with a limit, at first, and the most cuts of a graph.
    """

    steps: int = 30_000_000
    cuts: int = 320


EFFORT = PairWalkEffort()


Pair = tuple[int, int]
Table = TypeVar("Table", Bools, Floats)


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
    nets: list[CutNets]
    limit: float
    settings: Settings
    steps: int = 0
    most_steps: int = EFFORT.steps

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
            lists, along = self.lists[rank], self.along[rank]
            front = PricedStages(*lists[0], costs[one], along[0])
            back = PricedStages(*lists[1], self._turned(costs[other]), along[1])
            prices = float(path[[one, other], :2].min()), float(self.rows[rank][[one, other], :2].min())
            nets = PricedNets(self.nets[rank], *prices)
            self.steps += pair_step(value, limit, front, back, togo[rank], nets, found, parent)
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
