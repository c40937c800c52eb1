"""The times of all stages that may lie between two cuts, and the best stages at given prices of passes.

There may be millions of them, and each search sweeps over them hundreds of times. Where cuts are many, a time
takes four bytes, and is less than the true one by a millionth, which is more than all rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit
from partitioner.methods.virtual_stages.cut_costs import CutCosts
from partitioner.methods.virtual_stages.kernel import NetReach, cut_transfers, stage_transfers
from partitioner.methods.virtual_stages.model import VirtualModel
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.problem import Nets

SEQUENTIAL = "sequential"
Kinds = tuple[int, ...]  # positions of costs
Dealing = tuple[Kinds, ...]  # for each device the kinds of which it may be
Cuts = NDArray[np.int32]
Times = NDArray[np.float32] | NDArray[np.float64]
LESS = 1 - 1e-6  # what times of four bytes are multiplied by


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
        Shape (3, items): the times of the passes of each of them.
    surely
        The same with the transfers of shared nets that each surely pays.
    """

    start: Ints
    end: Ints
    items: Cuts
    times: Times
    surely: Times

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
        times = np.concatenate([part.times for part in parts], axis=1)
        return cls(start, end, items, times, times)

    def rest(self, path: Floats) -> Floats:
        """Return the least that the stages from each one on add, by the cut where they begin.

        The shape is (stages + 1, m).
        """
        rest = np.empty((self.stages + 1, self.cuts))
        fill_least(self, path, rest, np.inf, self._replace(start=self.start[:0]))
        return rest

    def least(self, path: Floats) -> tuple[float, Ints | None]:
        """Return the least length of a weighted path, and the chain with it; None if there is none.

        The chain is the places in `items` of its stages, shape (stages,).
        """
        rest = self.rest(path)
        if not np.isfinite(rest[0, 0]):
            return np.inf, None
        places, cut = [], 0
        for stage, prices in enumerate(path):
            start, end = self.start[stage, cut], self.end[stage, cut]
            adds = prices @ self.surely[:, start:end] + rest[stage + 1, self.items[start:end]]
            places.append(int(start + adds.argmin()))
            cut = int(self.items[places[-1]])
        return float(rest[0, 0]), np.array(places)

    def up_to(self, paths: Iterable[Floats], most: float) -> ArcLists:
        """Return the stages with which each of some weighted paths may have at most some length."""
        found = self
        for path in paths:
            found = found._within(path, most)
        return found

    def _within(self, path: Floats, most: float) -> ArcLists:
        """Return the stages with which one weighted path may have at most some length."""
        room = int((self.end - self.start).sum())
        times, same = np.empty((3, room), self.times.dtype), self.surely is self.times
        start, end, items = np.empty_like(self.start), np.empty_like(self.end), np.empty(room, dtype=np.int32)
        within = ArcLists(start, end, items, times, times if same else np.empty_like(times))
        fill_least(self, path, np.empty((self.stages + 1, self.cuts)), most, within)
        count = int(end[-1, -1])
        times = times[:, :count].copy()
        surely = times if same else within.surely[:, :count].copy()
        return ArcLists(start, end, items[:count].copy(), times, surely)

    def beginning(self, borders: Ints) -> ArcLists:
        """Return the stages of the chains whose first cuts are given."""
        start, end = self.start.copy(), self.end.copy()
        for stage, (first, last) in enumerate(pairwise(borders.tolist())):
            place = self._place(stage, first, last)
            end[stage] = start[stage]
            if place >= 0:
                start[stage, first], end[stage, first] = place, place + 1
        return self._replace(start=start, end=end)

    def surely_of(self, places: Ints) -> Floats:
        """Return the times with sure transfers of the stages at some places, shape (stages, 3)."""
        return self.surely[:, places].T.astype(np.float64)

    def places(self, chains: Ints) -> Ints:
        """Return the places in `items` of the stages of chains, by their cuts, shape (k, stages + 1).

        Shape (k, stages); -1 for stages that are not open.
        """
        found = np.full((len(chains), self.stages), -1)
        for chain, stage in np.ndindex(*found.shape):
            found[chain, stage] = self._place(stage, *chains[chain, stage : stage + 2].tolist())
        return found

    def _place(self, stage: int, first: int, last: int) -> int:
        """Return the place in `items` of a stage between two cuts; -1 if it is not open."""
        start, end = int(self.start[stage, first]), int(self.end[stage, first])
        place = start + int(np.searchsorted(self.items[start:end], last))
        return place if place < end and self.items[place] == last else -1


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc"})
def fill_least(arcs: ArcLists, path: Floats, rest: Floats, most: float, within: ArcLists) -> None:
    """Find the least lengths of a weighted path, shape (stages, 3).

    Parameters
    ----------
    arcs
        The stages.
    rest
        Shape (stages + 1, m): filled with the least that the stages from each one on add, by the cut where
        they begin.
    most, within
        A length, and lists of the same shape that are filled with the stages of the chains of at most that
        length; not if they have no stages.
    """
    items, first, second, third = arcs.items, arcs.surely[0], arcs.surely[1], arcs.surely[2]
    rest[:] = np.inf
    rest[-1, -1] = 0.0
    for stage in range(len(path) - 1, -1, -1):
        one, two, three = path[stage]
        following = rest[stage + 1]
        for a in range(rest.shape[1]):
            best = np.inf
            for i in range(arcs.start[stage, a], arcs.end[stage, a]):  # in vectors of several stages
                cost = one * first[i] + two * second[i] + three * third[i]
                best = min(best, cost + following[items[i]])
            rest[stage, a] = best
    before, after = np.full(rest.shape[1], np.inf), np.empty(rest.shape[1])
    before[0], count = 0.0, 0
    for stage in range(len(within.start)):
        one, two, three = path[stage]
        following = rest[stage + 1]
        after[:] = np.inf
        for a in range(rest.shape[1]):
            within.start[stage, a] = count
            for i in range(arcs.start[stage, a], arcs.end[stage, a] if before[a] < np.inf else 0):
                c = items[i]
                length = before[a] + one * first[i] + two * second[i] + three * third[i]
                if length + following[c] <= most:
                    after[c] = min(after[c], length)
                    within.items[count] = c
                    for x in range(3):
                        within.times[x, count] = arcs.times[x, i]
                        within.surely[x, count] = arcs.surely[x, i]
                    count += 1
            within.end[stage, a] = count
        before, after = after, before


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

    def arcs(self, kinds: Kinds, bare: bool, open_: Bools, rough: bool) -> ArcLists:
        """Return a stage of some kinds between open cuts, with its times, see :meth:`least`.

        `open_` has shape (m, groups, m): from each cut the stages of the first group come first. `rough` says
        whether times take four bytes.
        """
        first, _, last = np.nonzero(open_)
        places = np.append(0, np.cumsum(open_.sum(axis=(1, 2))))[None]
        least = self.least(kinds, bare)
        if rough:
            times = np.stack([each[first, last].astype(np.float32) for each in least]) * np.float32(LESS)
        else:
            times = np.stack([each[first, last] for each in least])
        return ArcLists(places[:, :-1], places[:, 1:], last.astype(np.int32), times, times)

    def of_chain(self, dealing: Dealing, borders: Ints) -> Floats:
        """Return the times of the passes of a chain, shape (stages, 3).

        `borders`, shape (stages + 1,), are its cuts. All transfers are in its times if each device is of the
        only kind that it may be of; if not, those are missing that stages may share.
        """
        model, decided = self.model, is_decided(dealing)
        pairs = enumerate(zip(model.ranks.tolist(), pairwise(borders.tolist()), strict=True))
        found = np.stack(
            [
                self.least(dealing[rank], decided or stage in self.inner)[:, first, last]
                for stage, (rank, (first, last)) in pairs
            ]
        )
        if decided:
            found[:, :2] += self.transfers(dealing, model.cuts.stages(borders), model.problem.nets)
        return found

    def transfers(self, dealing: Dealing, stage: Ints, nets: Nets) -> Floats:
        """Return the transfers of some nets in both passes of each stage, shape (stages, 2).

        `stage`, shape (n,), is that of each supernode. Each device is of one kind.
        """
        model, moved = self.model, np.zeros((self.model.stages, 3, 2))
        if model.problem.communication == SEQUENTIAL:
            stage_transfers(stage, model.ranks, nets, moved)
        kinds = np.array([model.costs[kinds[0]].kind for kinds in dealing])[model.ranks]
        return np.asarray(moved.sum(axis=1) * model.problem.transfer_factor[kinds, None])

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
        forward, backward = costs.passes()
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
