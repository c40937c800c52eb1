"""The times of all stages that may lie between two cuts, and the best stages at given prices of passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.virtual_stages.cut_costs import CutCosts
from partitioner.methods.virtual_stages.kernel import NetReach, cut_transfers, stage_nets, stage_transfers
from partitioner.methods.virtual_stages.model import VirtualModel
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.problem import Nets

SEQUENTIAL = "sequential"
Kinds = tuple[int, ...]  # positions of costs
Dealing = tuple[Kinds, ...]  # for each device the kinds of which it may be
NOTHING: Floats = np.empty(0)


def is_decided(dealing: Dealing) -> bool:
    """Return whether every device is of one kind."""
    return all(len(kinds) == 1 for kinds in dealing)


class ArcLists(NamedTuple):
    """The stages that are open between `m` cuts.

    Parameters
    ----------
    start, end
        Shape (stages, m): where the cuts in `items` to which a stage leads from each cut begin and end.
    items
        These cuts, ascending for each stage and cut.
    times
        Shape (items, 3): the times of the passes of each of them.
    surely
        The same with the transfers of shared nets that each surely pays.
    """

    start: Ints
    end: Ints
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
        return int(self.start.shape[1])

    @classmethod
    def joined(cls, parts: Sequence[ArcLists]) -> ArcLists:
        """Return the lists of stages one after another, without shared transfers."""
        before = np.append(0, np.cumsum([len(part.items) for part in parts]))
        moved = list(zip(parts, before, strict=False))
        start = np.concatenate([part.start + first for part, first in moved])
        end = np.concatenate([part.end + first for part, first in moved])
        items = np.concatenate([part.items for part in parts])
        times = np.concatenate([part.times for part in parts])
        return cls(start, end, items, times, times)

    def rest(self, path: Floats, through: Floats = NOTHING) -> tuple[Floats, Ints]:
        """Return `rest` and `via` of a weighted path, see :func:`fill_least`; fill `through`."""
        rest, via = np.empty((self.stages + 1, self.cuts)), np.empty((self.stages, self.cuts), dtype=np.int64)
        fill_least(self, path, rest, via, through)
        return rest, via

    def least(self, path: Floats) -> tuple[float, Ints | None]:
        """Return the least length of a weighted path, and the chain with it; None if there is none.

        The chain is the places in `items` of its stages, shape (stages,).
        """
        rest, via = self.rest(path)
        if not np.isfinite(rest[0, 0]):
            return np.inf, None
        places, cut = [], 0
        for each in via:
            places.append(int(each[cut]))
            cut = int(self.items[places[-1]])
        return float(rest[0, 0]), np.array(places)

    def up_to(self, paths: Iterable[Floats], most: float) -> ArcLists:
        """Return the stages with which each of some weighted paths may have at most some length."""
        keep = np.ones(len(self.items), dtype=bool)
        for path in paths:
            through = np.full(len(self.items), np.inf)
            self.rest(path, through)
            keep &= through <= most
        return self._where(keep)

    def beginning(self, borders: Ints) -> ArcLists:
        """Return the stages of the chains whose first cuts are given."""
        keep = np.ones(len(self.items), dtype=bool)
        for stage, (first, last) in enumerate(pairwise(borders.tolist())):
            keep[self.start[stage, 0] : self.end[stage, -1]] = False
            start, end = self.start[stage, first], self.end[stage, first]
            keep[start:end] = self.items[start:end] == last
        return self._where(keep)

    def places(self, chains: Ints) -> Ints:
        """Return the places in `items` of the stages of chains, by their cuts, shape (k, stages + 1).

        Shape (k, stages); -1 for stages that are not open.
        """
        found = np.full((len(chains), self.stages), -1)
        for chain, stage in np.ndindex(*found.shape):
            first, last = chains[chain, stage : stage + 2]
            start, end = self.start[stage, first], self.end[stage, first]
            place = start + int(np.searchsorted(self.items[start:end], last))
            if place < end and self.items[place] == last:
                found[chain, stage] = place
        return found

    def _where(self, keep: Bools) -> ArcLists:
        """Return the stages of which `keep`, shape of `items`, is true."""
        before, chosen = np.append(0, np.cumsum(keep)), np.flatnonzero(keep)
        times = self.times.take(chosen, axis=0)
        surely = times if self.surely is self.times else self.surely.take(chosen, axis=0)
        return ArcLists(before[self.start], before[self.end], self.items[chosen], times, surely)


@njit(cache=True, nogil=True)
def fill_least(arcs: ArcLists, path: Floats, rest: Floats, via: Ints, through: Floats) -> None:
    """Find the least lengths of a weighted path, shape (stages, 3).

    Parameters
    ----------
    arcs
        The stages.
    rest, via
        Shape (stages + 1, m) and (stages, m): filled with the least that the stages from each one on add, by
        the cut where they begin, and with the place in ``arcs.items`` of the first of them.
    through
        Shape of ``arcs.items``: filled with the least length with each open stage; not if it is empty.
    """
    before = np.full(rest.shape, np.inf)
    before[0, 0] = 0.0
    rest[:] = np.inf
    rest[-1, -1] = 0.0
    for stage in range(len(path) - 1, -1, -1):
        prices = path[stage]
        for a in range(rest.shape[1]):
            for i in range(arcs.start[stage, a], arcs.end[stage, a]):
                times, following = arcs.surely[i], rest[stage + 1, arcs.items[i]]
                cost = prices[0] * times[0] + prices[1] * times[1] + prices[2] * times[2]
                if cost + following < rest[stage, a]:
                    rest[stage, a], via[stage, a] = cost + following, i
    for stage in range(len(path) if len(through) else 0):
        prices = path[stage]
        for a in range(rest.shape[1]):
            for i in range(arcs.start[stage, a], arcs.end[stage, a]):
                c, times = arcs.items[i], arcs.surely[i]
                cost = prices[0] * times[0] + prices[1] * times[1] + prices[2] * times[2]
                before[stage + 1, c] = min(before[stage + 1, c], before[stage, a] + cost)
                through[i] = before[stage, a] + cost + rest[stage + 1, c]


@dataclass(eq=False)
class StageTimes:
    """The least times of the passes of stages by the kind of their device.

    They are those of the forward pass, and of the backward pass or its two halves.

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

    @property
    def inner(self) -> range:
        """The stages that may send tensors to a neighbour on the same device."""
        devices = self.model.devices
        return range(devices - 1, devices + 1) if self.model.schedule.vee else range(0)

    def arcs(self, kinds: Kinds, bare: bool, open_: Bools) -> ArcLists:
        """Return a stage of some kinds between open cuts, with its times, see :meth:`least`.

        `open_` has shape (m, groups, m): from each cut the stages of the first group come first.
        """
        first, _, last = np.nonzero(open_)
        places = np.append(0, np.cumsum(open_.sum(axis=(1, 2))))[None]
        times = np.ascontiguousarray(self.least(kinds, bare)[:, first, last].T)
        return ArcLists(places[:, :-1], places[:, 1:], last, times, times)

    def of_chain(self, dealing: Dealing, borders: Ints) -> Floats:
        """Return the times of the passes of a chain, shape (stages, 3).

        `borders`, shape (stages + 1,), are its cuts. All transfers are in its times if each device is of the
        only kind that it may be of; if not, those are missing that stages may share.
        """
        model, problem = self.model, self.model.problem
        decided, cuts = is_decided(dealing), list(pairwise(borders.tolist()))
        found = np.stack(
            [
                self.least(dealing[rank], decided or stage in self.inner)[:, first, last]
                for stage, (rank, (first, last)) in enumerate(zip(model.ranks.tolist(), cuts, strict=True))
            ]
        )
        if decided and problem.communication == SEQUENTIAL:
            kinds = np.array([model.costs[kinds[0]].kind for kinds in dealing])[model.ranks]
            nets, moved = problem.nets, np.zeros((2, model.stages, 2))
            stage_transfers(model.cuts.stages(borders), model.ranks, stage_nets(nets), *moved)
            found[:, :2] += moved.sum(axis=0) * problem.transfer_factor[kinds, None]
        return found

    def least(self, kinds: Kinds, bare: bool) -> Floats:
        """Return the least times on one of some kinds, shape (3, m, m); infinity where there is no stage.

        Transfers that occupy the device are included unless `bare`, but for tensors that it may share.
        """
        if (kinds, bare) not in self.known:
            if len(kinds) == 1:
                found = self._of(self.model.costs[kinds[0]], bare)
            else:
                found = np.asarray(np.min([self.least((place,), bare) for place in kinds], axis=0))
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
    nets, member, chosen = costs.problem.nets, costs.cuts.member, costs.nets(which)
    early = np.ascontiguousarray(early_pins(nets, member)[:, which])
    found = np.zeros((2, len(member), len(member)))
    cut_transfers(costs.cuts.nested, chosen, NetReach.alone(chosen), early, nets.made[which], found)
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
