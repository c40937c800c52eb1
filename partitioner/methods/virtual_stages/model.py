"""Pipelines of some devices with several stages each: loads, memory and rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from partitioner.methods.loads import part_loads
from partitioner.methods.method import Part
from partitioner.methods.virtual_stages._ways_core import slower_device
from partitioner.methods.virtual_stages.borders import held_by_rank
from partitioner.methods.virtual_stages.cut_costs import CutCosts, StageCuts
from partitioner.methods.virtual_stages.ways import DeviceWays, WayCosts, ways_on
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
    bare
        Whether no nets count in lower bounds of loads.
    """

    costs: Sequence[CutCosts]
    schedule: VirtualSchedule
    devices: int
    chunks: int
    bare: bool = False
    known: dict[bytes, list[DeviceWays]] = field(default_factory=dict)

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
        common = np.all([costs.runs for costs in self.costs], axis=0)
        total = np.array([costs.work[common].sum() for costs in self.costs])
        return total.min() / total if total.min() > 0 else np.ones(len(total))

    @cached_property
    def most_weight(self) -> Floats:
        """Shape (devices that there are + 1,): the most weight that so many ranks have together."""
        found = np.zeros(1)
        for kind in sorted({costs.kind for costs in self.costs}):
            pairs = [(w, c.degree) for w, c in zip(self.weight, self.costs, strict=True) if c.kind == kind]
            own = _most_weight(pairs, int(self.problem.count[kind]))
            joint = found[:, None] + own[None, :]
            ranks = np.add.outer(np.arange(len(found)), np.arange(len(own)))
            found = np.full(len(found) + len(own) - 1, -np.inf)
            np.maximum.at(found, ranks, joint)
        return found

    def room(self, devices: int) -> float:
        """Return the most weight that some ranks have together."""
        return float(self.most_weight[min(devices, len(self.most_weight) - 1)])

    def with_one(self, used: Used, place: int) -> Used | None:
        """Return the devices that are used after one more rank of a kind; None if they are too few."""
        kind, degree = self.costs[place].kind, self.costs[place].degree
        if used[kind] + degree > self.problem.count[kind]:
            return None
        return (*used[:kind], used[kind] + degree, *used[kind + 1 :])

    def used(self, kinds: Ints) -> Ints:
        """Return the devices of each kind of the problem that ranks of some kinds use."""
        found = np.zeros(len(self.problem.count), dtype=np.int64)
        for place in kinds.tolist():
            found[self.costs[place].kind] += self.costs[place].degree
        return found

    @property
    def none_used(self) -> Used:
        """No device of any kind."""
        return (0,) * len(self.problem.count)

    @cached_property
    def least_work(self) -> Floats:
        """Shape (m, m): the least processing between two cuts, each supernode's times its kind's weight."""
        each = [
            np.where(costs.runs, weight * costs.work, np.inf)
            for costs, weight in zip(self.costs, self.weight, strict=True)
        ]
        least = np.min(each, axis=0)
        between = self.cuts.sums(np.where(np.isfinite(least), least, 0.0))
        return np.where(self.cuts.nested | np.eye(len(self.cuts), dtype=bool), between, np.inf)

    @property
    def gap(self) -> int:
        """The fewest supernodes between two stages of a device; but for the last one of a V, where it is 0.

        Each stage between them holds one at least, unless others have been left out.
        """
        if self.cuts.loose:
            return 0
        return 2 if self.schedule.vee else self.devices - 1

    @cached_property
    def last_of_vee(self) -> Bools:
        """Shape (devices,): whether a device is the last one of a V, whose two stages follow each other."""
        return np.asarray(self.schedule.vee & (np.arange(self.devices) == self.devices - 1))

    @cached_property
    def shared(self) -> Bools:
        """Shape (nets,): the nets that two stages of a device may share, so that loads do not add up.

        The two stages of the last device of a V are next to one another; they count as one there.
        """
        if self.bare:
            return np.ones(len(self.problem.nets.cost), dtype=bool)
        return self.costs[0].shared_over(self.gap)

    @cached_property
    def adds_up(self) -> bool:
        """Whether the load of a device is always the sum over its stages."""
        return not self.shared.any() or self.chunks == 1

    @cached_property
    def low(self) -> list[Floats]:
        """By kind the terms of loads without the nets that stages may share; sums of them are lower bounds.

        They are infinite where the user's limits allow no stage.
        """
        if self.adds_up:
            terms = [each.alone for each in self.costs]
        elif self.chunks > 2:
            terms = [each.sure_terms(self.devices, self.chunks) for each in self.costs]
        else:
            terms = [each.terms(~self.shared) for each in self.costs]
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
        return any(costs.may_lack(most) for costs in self.costs)

    @property
    def chooses(self) -> bool:
        """Whether nodes run in the best of several ways."""
        return isinstance(self.costs[0], WayCosts)

    def parts(self, stages: DealtStages) -> list[Part]:
        """Return stages as parts on their devices."""
        each, dealt = self._nodes(stages.borders), [self.costs[place] for place in stages.kinds.tolist()]
        first = [
            sum(other.degree for other in dealt[:rank] if other.kind == one.kind)
            for rank, one in enumerate(dealt)
        ]
        return [
            Part(
                dealt[rank].kind,
                nodes,
                dealt[rank].degree,
                tuple(range(first[rank], first[rank] + dealt[rank].degree)),
            )
            for nodes, rank in zip(each, self.ranks.tolist(), strict=True)
        ]

    def _nodes(self, borders: Ints) -> list[Ints]:
        return [self.cuts.stage(a, b) for a, b in pairwise(borders.tolist())]

    def loads(self, stages: DealtStages) -> Floats:
        """Return the load of every device, shape (devices,)."""
        nodes = self._nodes(stages.borders)
        joined = [
            Part(
                self.costs[place].kind, np.concatenate([nodes[i] for i in np.flatnonzero(self.ranks == rank)])
            )
            for rank, place in enumerate(stages.kinds.tolist())
        ]
        if not self.chooses:
            return np.asarray(part_loads(self.problem, joined)[0])
        idle = replace(self.problem, time=np.zeros_like(self.problem.time))
        return np.asarray(part_loads(idle, joined)[0] + [each.time for each in self.ways(stages)])

    def ways(self, stages: DealtStages) -> list[DeviceWays]:
        """Return the best ways of the nodes of each device."""
        key = stages.borders.tobytes() + stages.kinds.tobytes()
        if key not in self.known:
            nodes, found = self._nodes(stages.borders), []
            for rank, place in enumerate(stages.kinds.tolist()):
                costs, own = self.costs[place], np.flatnonzero(self.ranks == rank)
                assert isinstance(costs, WayCosts)
                found.append(ways_on(costs, [nodes[i] for i in own], self.samples(rank)))
            self.known.clear()
            self.known[key] = found
        return self.known[key]

    def feasible(self, stages: DealtStages) -> bool:
        """Whether stages are allowed and the memory of every device suffices."""
        pairs = zip(stages.kinds[self.ranks].tolist(), pairwise(stages.borders.tolist()), strict=True)
        if not all(self.costs[place].allowed[pair] for place, pair in pairs):
            return False
        used = self.used(stages.kinds)
        if (used > self.problem.count).any() or not self.obeys(used.tolist()):
            return False
        if self.chooses:
            return all(np.isfinite(each.time) for each in self.ways(stages))
        return not self.scarce or bool((self._lacking(stages) <= 0).all())

    def obeys(self, used: Sequence[int]) -> bool:
        """Whether all devices of the kinds are used, if the user wants that; `used` is by kind."""
        kinds = {costs.kind for costs in self.costs}
        return not self.problem.limits.all_devices or all(used[k] == self.problem.count[k] for k in kinds)

    def excess(self, stages: DealtStages) -> float:
        """Return by how much devices exceed their memory, all together, in the ways that hold least."""
        return float(np.maximum(0.0, self._lacking(stages)).sum()) if self.scarce else 0.0

    @cached_property
    def _amounts(self) -> tuple[Floats, Floats, Floats]:
        """What stages hold once, for a sample and as workspace on each kind, shape (K, m, m) each."""
        names = "once", "kept", "workspace"
        once, kept, workspace = (np.stack([getattr(costs, name) for costs in self.costs]) for name in names)
        return once, kept, workspace

    def _lacking(self, stages: DealtStages) -> Floats:
        """Return by how much each device exceeds its memory, shape (devices,); negative if it has more."""
        of = stages.kinds[self.ranks], stages.borders[:-1], stages.borders[1:]
        batch = self.problem.pipeline.microbatches or 1
        held = held_by_rank(self.schedule, self.devices, self.chunks, batch)
        memory = np.array([costs.memory for costs in self.costs])
        found: Floats = held.memory(*(amount[of] for amount in self._amounts)) - memory[stages.kinds]
        return found

    def slower(self, stages: DealtStages) -> Floats:
        """Return what devices lose by modes that fit their memory, shape (devices,); infinity if none do."""
        if not (self.chooses and self.scarce):
            return np.zeros(self.devices)
        found = np.empty(self.devices)
        for rank, place in enumerate(stages.kinds.tolist()):
            first, end, modes = self.costs[place].modes
            own = np.flatnonzero(self.ranks == rank)
            pairs = stages.borders[own], stages.borders[own + 1]
            given = modes, first[pairs], end[pairs], self.samples(rank).astype(np.float64)
            found[rank] = slower_device(*given, self.costs[place].memory)
        return found


def _most_weight(pairs: list[tuple[float, int]], count: int) -> Floats:
    """Return the most weight of so many ranks of a kind, shape (count + 1,).

    `pairs` has the weight and the number of devices of each sort of rank; `count` is that of all devices.

    Examples
    --------
    >>> _most_weight([(1.0, 1), (3.0, 2)], 3).tolist()
    [0.0, 3.0, 4.0, 3.0]
    """
    if all(degree == 1 for _, degree in pairs):
        return np.arange(count + 1) * np.float64(max(weight for weight, _ in pairs))
    best, found = np.zeros(count + 1), [0.0]  # by the number of devices
    for _ in range(count):
        wider = np.full(count + 1, -np.inf)
        for weight, degree in pairs:
            if degree <= count:
                wider[degree:] = np.maximum(wider[degree:], best[: count + 1 - degree] + weight)
        best = wider
        found.append(float(best.max()))
    return np.array(found)


def schedule_of(problem: PipelineProblem) -> tuple[VirtualSchedule, int]:
    """Return the schedule of a problem, and how many stages each device has."""
    assert problem.pipeline.schedule is not None
    schedule = VIRTUAL[problem.pipeline.schedule]
    return schedule, schedule.chunks_for(problem.pipeline.virtual_stages)
