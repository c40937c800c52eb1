"""Pipelines of some devices with several stages each: loads, memory and rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from partitioner.methods.loads import part_loads
from partitioner.methods.method import Part
from partitioner.methods.virtual_stages.borders import held_by_rank
from partitioner.methods.virtual_stages.cut_costs import CutCosts, StageCuts
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.virtual_stages.in_flight import samples_by_chunk
from partitioner.workload.virtual_stages.schedules import VIRTUAL, VirtualSchedule


class DealtStages(NamedTuple):
    """Stages between cuts, dealt to devices.

    Parameters
    ----------
    borders
        Shape (stages + 1,): the cuts between the stages.
    kinds
        Shape (devices,): for each device the position of its costs in :attr:`VirtualModel.costs`.
    """

    borders: Ints
    kinds: Ints


class StagesFound(NamedTuple):
    """The result of a search for stages below a limit.

    Parameters
    ----------
    stages
        The stages; None if there are none below the limit.
    bound
        A lower bound on the largest load of all stages between these cuts; 0 if none is proven.
    complete
        Whether the search was not cut short, so that `bound` is proven.
    """

    stages: DealtStages | None
    bound: float
    complete: bool


Used = tuple[int, ...]  # devices of each kind of the problem


@dataclass(frozen=True, eq=False)
class VirtualModel:
    """Pipelines of `devices` devices, of any kinds and in any order, with `chunks` stages each.

    Parameters
    ----------
    costs
        The costs of stages on each of K kinds.
    schedule
        Where stages are, and how many samples are in flight.
    devices, chunks
        How many devices there are, and stages on each.
    """

    costs: Sequence[CutCosts]
    schedule: VirtualSchedule
    devices: int
    chunks: int

    @property
    def problem(self) -> PipelineProblem:
        """The problem."""
        return self.costs[0].problem

    @property
    def cuts(self) -> StageCuts:
        """The cuts."""
        return self.costs[0].cuts

    @property
    def stages(self) -> int:
        """How many stages there are."""
        return self.devices * self.chunks

    @cached_property
    def ranks(self) -> Ints:
        """Shape (stages,): the device of every stage."""
        return np.array(self.schedule.ranks(self.devices, self.chunks))

    @cached_property
    def weight(self) -> Floats:
        """Shape (K,): the speed of each kind, 1 for the fastest one.

        The mean of the loads with these weights is a bound on the largest load, as with any other weights.
        """
        common = self.problem.allowed[[costs.kind for costs in self.costs]].all(axis=0)
        total = np.array([costs.work[common].sum() for costs in self.costs])
        return total.min() / total if total.min() > 0 else np.ones(len(total))

    @cached_property
    def pool(self) -> Floats:
        """Shape (devices that there are,): their weights, the largest first."""
        best = dict[int, float]()
        for costs, weight in zip(self.costs, self.weight.tolist(), strict=True):
            best[costs.kind] = max(best.get(costs.kind, 0.0), weight)
        counts = [int(self.problem.count[kind]) for kind in best]
        return -np.sort(-np.repeat(list(best.values()), counts))

    def room(self, devices: int) -> float:
        """Return the most weight that some devices have together."""
        return float(self.pool[:devices].sum())

    def with_one(self, used: Used, place: int) -> Used | None:
        """Return the devices that are used after one more of a kind; None if there is no more."""
        kind = self.costs[place].kind
        if used[kind] >= self.problem.count[kind]:
            return None
        return (*used[:kind], used[kind] + 1, *used[kind + 1 :])

    @property
    def none_used(self) -> Used:
        """No device of any kind."""
        return (0,) * len(self.problem.count)

    @cached_property
    def least_work(self) -> Floats:
        """Shape (m, m): the least processing between two cuts, each supernode's times its kind's weight."""
        each = [
            np.where(costs.problem.allowed[costs.kind], weight * costs.work, np.inf)
            for costs, weight in zip(self.costs, self.weight, strict=True)
        ]
        least = np.min(each, axis=0)
        between = self.cuts.sums(np.where(np.isfinite(least), least, 0.0))
        return np.where(self.cuts.nested | np.eye(len(self.cuts), dtype=bool), between, np.inf)

    @cached_property
    def shared(self) -> Bools:
        """Shape (nets,): the nets that two stages of a device may share, so that loads do not add up.

        The two stages of the last device of a V are next to one another; they count as one there.
        """
        return self.costs[0].shared_over(2 if self.schedule.vee else self.devices - 1)

    @cached_property
    def adds_up(self) -> bool:
        """Whether the load of a device is always the sum over its stages."""
        return not self.shared.any() or self.chunks == 1

    @cached_property
    def low(self) -> list[Floats]:
        """By kind the terms of loads without the nets that stages may share; sums of them are lower bounds.

        They are infinite where the user's limits allow no stage.
        """
        terms = [each.alone if self.adds_up else each.terms(~self.shared) for each in self.costs]
        return [np.where(each.allowed, low, np.inf) for each, low in zip(self.costs, terms, strict=True)]

    @cached_property
    def least(self) -> Floats:
        """Shape (terms, m, m): the least of :attr:`low` times the kind's weight."""
        return np.asarray(np.min([w * low for w, low in zip(self.weight, self.low, strict=True)], axis=0))

    @cached_property
    def alone(self) -> Floats:
        """Shape (K, terms, m, m): the terms of loads with all nets."""
        return np.stack([costs.alone for costs in self.costs])

    @cached_property
    def allowed(self) -> Bools:
        """Shape (m, m): whether the limits of the user allow a stage between two cuts on some kind."""
        return np.asarray(np.any([costs.allowed for costs in self.costs], axis=0))

    def quick_loads(self, stages: DealtStages) -> Floats:
        """Return the loads of the devices, shape (devices,), as if stages shared no tensor."""
        borders, kinds = stages
        terms = self.alone[kinds[self.ranks], :, borders[:-1], borders[1:]]
        found = np.zeros((self.devices, terms.shape[1]))
        np.add.at(found, self.ranks, terms)
        if self.schedule.vee:
            found[-1] = self.alone[kinds[-1], :, borders[self.devices - 1], borders[self.devices + 1]]
        loads: Floats = found.max(axis=1)
        return loads

    def samples(self, rank: int) -> Ints:
        """Return the combinations of samples in flight on a device, shape (combinations, chunks)."""
        batch = self.problem.pipeline.microbatches
        assert batch is not None
        return np.array(samples_by_chunk(self.schedule.name, rank, self.devices, self.chunks, batch))

    @cached_property
    def scarce(self) -> bool:
        """Whether memory may not suffice for some stages."""
        most = max(int(self.samples(rank).max()) for rank in range(self.devices))
        return any(
            costs.once[0, -1] + most * costs.kept[0, -1] + costs.workspace.max(initial=0.0) > costs.memory
            for costs in self.costs
        )

    def parts(self, stages: DealtStages) -> list[Part]:
        """Return stages as parts on their devices."""
        each = [self.cuts.stage(a, b) for a, b in pairwise(stages.borders.tolist())]
        kinds = [self.costs[place].kind for place in stages.kinds.tolist()]
        index = [kinds[:rank].count(kind) for rank, kind in enumerate(kinds)]
        return [
            Part(kinds[rank], nodes, devices=(index[rank],))
            for nodes, rank in zip(each, self.ranks.tolist(), strict=True)
        ]

    def loads(self, stages: DealtStages) -> Floats:
        """Return the load of every device, shape (devices,)."""
        parts = self.parts(stages)
        own = [np.flatnonzero(self.ranks == rank) for rank in range(self.devices)]
        joined = [
            Part(parts[rank].kind, np.concatenate([parts[i].nodes for i in each]))
            for rank, each in enumerate(own)
        ]
        loads: Floats = part_loads(self.problem, joined)[0]
        return loads

    def feasible(self, stages: DealtStages) -> bool:
        """Whether stages are allowed and the memory of every device suffices."""
        pairs = zip(stages.kinds[self.ranks].tolist(), pairwise(stages.borders.tolist()), strict=True)
        if not all(self.costs[place].allowed[pair] for place, pair in pairs):
            return False
        return not self.scarce or all(self.fits(rank, stages) for rank in range(self.devices))

    def fits(self, rank: int, stages: DealtStages) -> bool:
        """Whether the memory of a device suffices for its stages."""
        return self._lacking(rank, stages) <= 0

    def _lacking(self, rank: int, stages: DealtStages) -> float:
        """Return by how much a device exceeds its memory; negative if it has more than it needs."""
        own, costs = np.flatnonzero(self.ranks == rank), self.costs[int(stages.kinds[rank])]
        pairs = stages.borders[own], stages.borders[own + 1]
        held = (self.samples(rank) @ costs.kept[pairs]).max()
        memory = float(costs.once[pairs].sum() + held + costs.workspace[pairs].max())
        return memory - costs.memory

    def excess(self, stages: DealtStages) -> float:
        """Return by how much devices exceed their memory, all together."""
        if not self.scarce:
            return 0.0
        return float(np.maximum(0.0, self._memory(stages.borders) - self._room[stages.kinds]).sum())

    @cached_property
    def _room(self) -> Floats:
        """Shape (K,): the memory of a device of each kind."""
        return np.array([costs.memory for costs in self.costs])

    def _memory(self, borders: Ints) -> Floats:
        """Return the memory that each device holds, shape (devices,)."""
        costs, pairs = self.costs[0], (borders[:-1], borders[1:])
        batch = self.problem.pipeline.microbatches or 1
        held = held_by_rank(self.schedule, self.devices, self.chunks, batch)
        return held.memory(costs.once[pairs], costs.kept[pairs], costs.workspace[pairs])


def schedule_of(problem: PipelineProblem) -> tuple[VirtualSchedule, int]:
    """Return the schedule of a problem, and how many stages each device has."""
    assert problem.pipeline.schedule is not None
    schedule = VIRTUAL[problem.pipeline.schedule]
    return schedule, schedule.chunks_for(problem.pipeline.virtual_stages)
