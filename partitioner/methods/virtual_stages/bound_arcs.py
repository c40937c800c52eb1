"""The times of all stages that may lie between two cuts, and the best stages at given prices of passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.virtual_stages.cut_costs import CutCosts
from partitioner.methods.virtual_stages.kernel import cut_transfers, stage_nets, stage_transfers
from partitioner.methods.virtual_stages.model import VirtualModel
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.problem import Nets

SEQUENTIAL = "sequential"
Kinds = tuple[int, ...]  # positions of costs
Dealing = tuple[Kinds, ...]  # for each device the kinds of which it may be


class ArcLists(NamedTuple):
    """The stages that are open between `m` cuts.

    Parameters
    ----------
    start, items
        Shape (stages, m + 1) and flat: the cuts to which a stage from each cut leads, as rows.
    times
        Shape (items, 3): the times of the passes of each of them.
    surely
        The same with the transfers of shared nets that each surely pays.
    """

    start: Ints
    items: Ints
    times: Floats
    surely: Floats

    @property
    def stages(self) -> int:
        """How many stages a chain has."""
        return len(self.start)

    @property
    def cuts(self) -> int:
        """How many cuts there are."""
        return int(self.start.shape[1]) - 1

    def rest(self, path: Floats) -> Floats:
        """Return the least that the stages from each one on add to a weighted path, shape (stages + 1, m)."""
        found = np.empty((self.stages + 1, self.cuts))
        fill_least(self, path, found, np.empty(0))
        return found

    def least(self, path: Floats) -> tuple[float, Ints | None]:
        """Return the least length of a weighted path, and the borders with it; None if there are none."""
        rest, borders = self.rest(path), [0]
        if not np.isfinite(rest[0, 0]):
            return np.inf, None
        for stage, prices in enumerate(path):
            start, end = self.start[stage, borders[-1] : borders[-1] + 2]
            cuts = self.items[start:end]
            borders.append(int(cuts[np.argmin(self.surely[start:end] @ prices + rest[stage + 1, cuts])]))
        return float(rest[0, 0]), np.array(borders)

    def up_to(self, path: Floats, most: float) -> ArcLists:
        """Return the stages with which a weighted path may have at most some length."""
        rest, found = np.empty((self.stages + 1, self.cuts)), np.empty(len(self.items))
        fill_least(self, path, rest, found)
        return self._where(found <= most)

    def beginning(self, borders: Ints) -> ArcLists:
        """Return the stages of the chains whose first cuts are given."""
        keep = np.ones(len(self.items), dtype=bool)
        for stage, (first, last) in enumerate(pairwise(borders.tolist())):
            keep[self.start[stage, 0] : self.start[stage, -1]] = False
            start, end = self.start[stage, first : first + 2]
            keep[start:end] = self.items[start:end] == last
        return self._where(keep)

    def places(self, chains: Ints) -> Ints:
        """Return the places in `items` of the stages of chains, by their cuts, shape (..., stages + 1).

        Shape (..., stages); -1 for stages that are not open.
        """
        rows = np.repeat(np.arange(self.stages * self.cuts), np.diff(self.start).ravel())
        open_ = np.append(rows * self.cuts + self.items, -1)
        asked = (np.arange(self.stages) * self.cuts + chains[..., :-1]) * self.cuts + chains[..., 1:]
        found = np.searchsorted(open_[:-1], asked)
        return np.where(open_[found] == asked, found, -1)

    def _where(self, keep: Bools) -> ArcLists:
        """Return the stages of which `keep`, shape of `items`, is true."""
        before = np.append(0, np.cumsum(keep))
        return ArcLists(before[self.start], self.items[keep], self.times[keep], self.surely[keep])


@njit(cache=True, nogil=True)
def fill_least(arcs: ArcLists, path: Floats, rest: Floats, through: Floats) -> None:
    """Write :meth:`ArcLists.rest`, and the least length with each stage, unless `through` is empty."""
    before = np.full(rest.shape, np.inf)
    before[0, 0] = 0.0
    rest[:] = np.inf
    rest[-1, -1] = 0.0
    for stage in range(len(path) - 1, -1, -1):
        prices = path[stage]
        for a in range(rest.shape[1]):
            for i in range(arcs.start[stage, a], arcs.start[stage, a + 1]):
                times, following = arcs.surely[i], rest[stage + 1, arcs.items[i]]
                cost = prices[0] * times[0] + prices[1] * times[1] + prices[2] * times[2]
                rest[stage, a] = min(rest[stage, a], cost + following)
    for stage in range(len(path) if len(through) else 0):
        prices = path[stage]
        for a in range(rest.shape[1]):
            for i in range(arcs.start[stage, a], arcs.start[stage, a + 1]):
                c, times = arcs.items[i], arcs.surely[i]
                cost = prices[0] * times[0] + prices[1] * times[1] + prices[2] * times[2]
                before[stage + 1, c] = min(before[stage + 1, c], before[stage, a] + cost)
                through[i] = before[stage, a] + cost + rest[stage + 1, c]


@dataclass(frozen=True, eq=False)
class StageArcs:
    """The times of the passes of the stages between `m` cuts; each stage number may have its own times.

    Parameters
    ----------
    times
        For every stage by its number, shape (3, m, m): the least times of the forward pass, and of the
        backward pass or its two halves; infinity where there is no stage. Transfers that occupy the device
        are included, but for stages that may send tensors to a neighbour on the same device.
    """

    times: Sequence[Floats]

    def of(self, stage: int) -> Floats:
        """Return the times of a stage by its number, shape (3, m, m)."""
        return self.times[stage]

    def stage_times(self, borders: Ints) -> Floats:
        """Return the times of the passes of stages between cuts, shape (stages, 3)."""
        pairs = enumerate(pairwise(borders.tolist()))
        return np.stack([self.of(stage)[:, first, last] for stage, (first, last) in pairs])

    def lists(self, open_: Sequence[Bools]) -> ArcLists:
        """Return the stages that are open, shape (m, m) for each number."""
        starts, items, times, count = [], list[Ints](), list[Floats](), 0
        for stage, each in enumerate(open_):
            starts.append(count + np.append(0, np.cumsum(each.sum(axis=1))))
            first, last = np.nonzero(each)
            items.append(last)
            times.append(self.of(stage)[:, first, last].T)
            count = int(starts[-1][-1])
        found = np.concatenate(times)
        return ArcLists(np.stack(starts), np.concatenate(items), found, found)


@dataclass(eq=False)
class StageTimes:
    """The least times of the passes of stages by the kind of their device, without tensors that it may share.

    Parameters
    ----------
    model
        The devices and stages; the nets of its problem distinguish the passes.
    input_share
        The fraction of a backward pass that its first half takes.
    halves
        Whether backward passes are in halves.
    """

    model: VirtualModel
    input_share: float
    halves: bool

    def __post_init__(self) -> None:
        self.known: dict[tuple[Kinds, bool], Floats] = {}

    def arcs(self, dealing: Dealing, bare: bool = False) -> StageArcs:
        """Return the times of all stages where each device is of one of some kinds; `bare`: no transfers."""
        model = self.model
        inner = (model.devices - 1, model.devices) if model.schedule.vee else ()
        none = range(model.stages) if bare else inner
        ranks = model.ranks.tolist()
        return StageArcs([self._least(dealing[rank], stage in none) for stage, rank in enumerate(ranks)])

    def of_chain(self, dealing: Dealing, borders: Ints) -> Floats:
        """Return the times of the passes of a chain with all its transfers, shape (stages, 3).

        `borders`, shape (stages + 1,), are its cuts; each device is of the only kind that it may be of.
        """
        model, problem = self.model, self.model.problem
        kinds = np.array([model.costs[kinds[0]].kind for kinds in dealing])[model.ranks]
        found = self.arcs(dealing, bare=True).stage_times(borders)
        if problem.communication == SEQUENTIAL:
            nets, moved = problem.nets, np.zeros((2, model.stages, 2))
            stage_transfers(model.cuts.stages(borders), model.ranks, stage_nets(nets), *moved)
            found[:, :2] += moved.sum(axis=0) * problem.transfer_factor[kinds, None]
        return found

    def _least(self, kinds: Kinds, bare: bool) -> Floats:
        """Return the least times on one of some kinds, shape (3, m, m), with or without transfers."""
        if (kinds, bare) not in self.known:
            if len(kinds) == 1:
                found = self._of(self.model.costs[kinds[0]], bare)
            else:
                found = np.asarray(np.min([self._least((place,), bare) for place in kinds], axis=0))
            self.known[kinds, bare] = found
        return self.known[kinds, bare]

    def _of(self, costs: CutCosts, bare: bool) -> Floats:
        problem = costs.problem
        time = np.where(problem.allowed[costs.kind], problem.time[costs.kind], 0.0)
        forward, backward = (costs.cuts.sums(time[w]) for w in (0, 1))
        share = self.input_share if self.halves else 1.0
        found = np.stack((forward, backward * share, backward * (1 - share)))
        found = np.where(costs.possible, found, np.inf)
        if not bare and problem.communication == SEQUENTIAL:
            found[:2] += _transfers(costs, ~self.model.shared)
        return found


def _transfers(costs: CutCosts, which: Bools) -> Floats:
    """Return the transfers of some nets in both passes of the stages between two cuts, shape (2, m, m)."""
    nets, member = costs.problem.nets, costs.cuts.member
    early = np.ascontiguousarray(early_pins(nets, member)[:, which])
    found = np.zeros((2, len(member), len(member)))
    cut_transfers(costs.cuts.nested, costs.nets(which), early, nets.made[which], found)
    return found


def early_pins(nets: Nets, member: Bools) -> Ints:
    """Return how many pins that read a net in a forward pass are before each cut, shape (m, nets).

    `member` has shape (m, n).
    """
    owner = nets.pins.owners()
    reads = (nets.read == 0) & (nets.pins.items != nets.source[owner])
    readers = np.zeros((member.shape[1], len(nets.cost)))
    readers[nets.pins.items[reads], owner[reads]] = 1.0
    return np.asarray((member @ readers).astype(np.int64))
