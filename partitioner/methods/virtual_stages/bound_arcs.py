"""The times of all stages that may lie between two cuts, and the best stages at given prices of passes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from partitioner.methods.virtual_stages.kernel import CutNets, cut_transfers
from partitioner.methods.virtual_stages.model import VirtualModel
from partitioner.problem.arrays import Bools, Floats, Ints

SEQUENTIAL = "sequential"


@dataclass(frozen=True, eq=False)
class StageArcs:
    """The times of the passes of the stages between `m` cuts; each stage number may have its own times.

    Parameters
    ----------
    times
        Shape (3, m, m): the least times of the forward pass, and of the backward pass or its two halves;
        infinity where there is no stage. Transfers that occupy the device are included.
    bare
        The same without transfers.
    inner
        Stages that may send tensors to a neighbour on the same device, whose times are `bare`.
    stages
        How many stages there are.
    """

    times: Floats
    bare: Floats
    inner: tuple[int, ...]
    stages: int

    def of(self, stage: int) -> Floats:
        """Return the times of a stage by its number, shape (3, m, m)."""
        return self.bare if stage in self.inner else self.times

    def stage_times(self, borders: Ints) -> Floats:
        """Return the times of the passes of stages between cuts, shape (stages, 3)."""
        pairs = enumerate(pairwise(borders.tolist()))
        return np.stack([self.of(stage)[:, first, last] for stage, (first, last) in pairs])

    def costs(self, path: Floats, open_: Bools) -> list[Floats]:
        """Return what every stage adds to a weighted path, shape (m, m) for each; infinity if it is closed.

        `path` has shape (stages, 3), `open_` shape (stages, m, m).
        """
        found = []
        for stage, prices in enumerate(path):
            times = self.of(stage)
            cost = sum((price * part for price, part in zip(prices, times, strict=True) if price), 0.0)
            found.append(np.where(open_[stage], cost, np.inf))
        return found

    def least(self, path: Floats, open_: Bools) -> tuple[float, Ints | None]:
        """Return the least length of a weighted path, and the borders with it; None if there are none."""
        costs = self.costs(path, open_)
        rest = self.rest(costs)
        if not np.isfinite(rest[0][0]):
            return np.inf, None
        borders = [0]
        for stage, cost in enumerate(costs):
            borders.append(int(np.argmin(cost[borders[-1]] + rest[stage + 1])))
        return float(rest[0][0]), np.array(borders)

    def through(self, path: Floats, open_: Bools) -> Floats:
        """Return the least length of a weighted path with every stage, shape (stages, m, m)."""
        costs = self.costs(path, open_)
        rest, to = self.rest(costs), self.before(costs)
        return np.stack([to[s][:, None] + cost + rest[s + 1][None, :] for s, cost in enumerate(costs)])

    def before(self, costs: list[Floats]) -> list[Floats]:
        """Return the least cost of all stages before each one, and of all, by the cut at which they end."""
        found = [_unit(len(costs[0]), 0)]
        for cost in costs:
            found.append((found[-1][:, None] + cost).min(axis=0))
        return found

    def rest(self, costs: list[Floats], last: int = -1) -> list[Floats]:
        """Return the least cost of all stages from each one on, and of none, by the cut where they begin.

        The last stage ends at cut `last`, by default where there are no more supernodes.
        """
        found = [_unit(len(costs[0]), last)]
        for cost in reversed(costs):
            found.append((cost + found[-1][None, :]).min(axis=1))
        return found[::-1]


def _unit(count: int, place: int) -> Floats:
    found = np.full(count, np.inf)
    found[place] = 0.0
    return found


def stage_arcs(model: VirtualModel, input_share: float, halves: bool) -> StageArcs:
    """Return the least times of the passes of stages, without tensors that stages of a device may share.

    Parameters
    ----------
    model
        The devices and stages; the nets of its problem distinguish the passes.
    input_share
        The fraction of a backward pass that its first half takes.
    halves
        Whether backward passes are in halves.
    """
    costs, problem = model.costs, model.costs.problem
    forward, backward = (costs.cuts.sums(problem.time[costs.kind, w]) for w in (0, 1))
    share = input_share if halves else 1.0
    bare = np.stack((forward, backward * share, backward * (1 - share)))
    bare = np.where(costs.cuts.nested, bare, np.inf)
    times = bare
    if problem.communication == SEQUENTIAL:
        times = bare.copy()
        times[:2] += _transfers(model)
    inner = (model.devices - 1, model.devices) if model.schedule.vee else ()
    return StageArcs(times, bare, inner, model.stages)


def _transfers(model: VirtualModel) -> Floats:
    """Return the transfers of both passes of the stages between two cuts, shape (2, m, m)."""
    costs, nets, which = model.costs, model.costs.problem.nets, ~model.shared
    owner, member = nets.pins.owners(), costs.cuts.member
    reads = (nets.read == 0) & (nets.pins.items != nets.source[owner])
    readers = np.zeros((costs.problem.n, len(nets.cost)))
    readers[nets.pins.items[reads], owner[reads]] = 1.0
    early = np.ascontiguousarray((member @ readers[:, which]).astype(np.int64))
    found = np.zeros((2, len(member), len(member)))
    cut_transfers(costs.cuts.nested, costs.nets(which), early, nets.made[which], found)
    return found


def joint_nets(model: VirtualModel) -> list[CutNets]:
    """Return for each device the nets that are not in the times of its stages; none if they cost no time."""
    sequential = model.costs.problem.communication == SEQUENTIAL
    every, none = np.full_like(model.shared, sequential), np.zeros_like(model.shared)
    shared = model.costs.nets(model.shared if sequential else none)
    found = [shared] * model.devices
    if model.schedule.vee:
        found[-1] = model.costs.nets(every)
    return found
