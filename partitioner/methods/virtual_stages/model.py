"""The loads and the memory of stages between cuts, for given devices and chunks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from partitioner.methods.dp.lattice import ideal_lattice
from partitioner.methods.loads import joint_terms, part_loads
from partitioner.methods.method import Part, Settings
from partitioner.methods.virtual_stages.kernel import CutNets, cut_transfers
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.virtual_stages.in_flight import samples_by_chunk
from partitioner.workload.virtual_stages.schedules import VIRTUAL, VirtualSchedule


class StagesFound(NamedTuple):
    """The result of a search for stages below a limit.

    Parameters
    ----------
    borders
        Shape (stages + 1,): the cuts between the stages; None if there are none below the limit.
    bound
        A lower bound on the largest load of all stages between these cuts; 0 if none is proven.
    complete
        Whether the search was not cut short, so that `bound` is proven.
    """

    borders: Ints | None
    bound: float
    complete: bool


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


@dataclass(frozen=True, eq=False)
class CutCosts:
    """What a stage between two cuts costs on a device of its own; each array has shape (m, m).

    Parameters
    ----------
    problem, kind, cuts
        The problem, the kind of all devices, and the cuts.
    """

    problem: PipelineProblem
    kind: int
    cuts: StageCuts

    @cached_property
    def busy(self) -> Floats:
        """The processing time; infinity where there is no stage."""
        found = self.cuts.sums(self.problem.work()[self.kind])
        return np.where(self.cuts.nested, found, np.inf)

    @cached_property
    def allowed(self) -> Bools:
        """Whether the limits of the user allow a stage between two cuts."""
        limits, pipeline, cuts = self.problem.limits, self.problem.pipeline, self.cuts
        found = cuts.nested & _within(cuts.sums(pipeline.nodes.astype(float)), limits.nodes)
        if limits.neighbours:  # no edge may lead over the stage
            near = np.zeros((self.problem.n, self.problem.n))
            near[pipeline.adjacent.owners(), pipeline.adjacent.items] = 1.0
            found &= (cuts.member @ near > 0).astype(float) @ (~cuts.member).T.astype(float) == 0
        if limits.layers != type(limits)().layers:
            layers = np.zeros((self.problem.n, int(pipeline.layers.items.max(initial=-1)) + 1))
            layers[pipeline.layers.owners(), pipeline.layers.items] = 1.0
            count = sum((cuts.sums(layer) > 0).astype(float) for layer in layers.T)
            found &= _within(np.asarray(count), limits.layers)
        return np.asarray(found)

    @cached_property
    def alone(self) -> Floats:
        """The terms of the loads with all nets, as :meth:`terms` returns them."""
        return self.terms(np.ones(len(self.problem.nets.cost), dtype=bool))

    def terms(self, nets: Bools) -> Floats:
        """Return the terms of the loads of stages with these nets, shape (terms, m, m).

        The load of a device is the largest term, each summed over its stages. Terms are infinite where there
        is no stage.
        """
        into, out = self._transfers(nets)
        parts = joint_terms(self.problem.communication, [self.busy], [into], [out])
        found = np.stack([np.sum(part, axis=0) for part in parts])
        return np.where(self.cuts.nested, found, np.inf)

    def _transfers(self, nets: Bools) -> tuple[Floats, Floats]:
        of_nets, found = self.nets(nets), np.zeros((2, len(self.cuts), len(self.cuts)))
        sent_last = np.ones(len(of_nets.cost), dtype=np.int64)
        cut_transfers(self.cuts.nested, of_nets, of_nets.held, sent_last, found)
        return found[0], found[1]

    def nets(self, which: Bools) -> CutNets:
        """Return some nets, seen from all cuts."""
        found, member = self.problem.nets, self.cuts.member
        pins = np.zeros((self.problem.n, len(found.cost)))
        pins[found.pins.items, found.pins.owners()] = 1.0
        held = np.ascontiguousarray((member @ pins[:, which]).astype(np.int64))
        sent = np.ascontiguousarray(member[:, found.source[which]].astype(np.int64))
        cost = found.cost[which] * self.problem.transfer_factor[self.kind]
        return CutNets(held, sent, np.diff(found.pins.start)[which], cost)

    def shared_over(self, gap: int) -> Bools:
        """Return which nets two stages can share that have `gap` stages between them, shape (nets,).

        They can if at least `gap` supernodes fit between two pins.
        """
        cuts, pins = self.cuts, self.problem.nets.pins
        below = np.where(cuts.member, cuts.size[:, None], self.problem.n).min(axis=0)
        above = np.where(cuts.member, 0, cuts.size[:, None]).max(axis=0)
        found = np.zeros(len(self.problem.nets.cost), dtype=bool)
        for e, row in enumerate(pins.lists()):
            between = above[row][None, :] - below[row][:, None]
            np.fill_diagonal(between, -1)
            found[e] = len(row) > 1 and between.max() >= gap
        return found

    @cached_property
    def once(self) -> Floats:
        """The memory that does not depend on the samples in flight, without workspace."""
        return self.cuts.sums(self.problem.size + self.problem.pipeline.parameters)

    @cached_property
    def kept(self) -> Floats:
        """The activations of one sample."""
        return self.cuts.sums(self.problem.pipeline.activations)

    @cached_property
    def workspace(self) -> Floats:
        """The largest workspace of a supernode."""
        workspace, found = self.problem.pipeline.workspace, np.zeros((len(self.cuts), len(self.cuts)))
        for amount in np.unique(workspace[workspace > 0]).tolist():  # ascending, so that the largest stays
            within = self.cuts.sums((workspace == amount).astype(float)) > 0
            found[within & self.cuts.nested] = amount
        return found


def _within(count: Floats, limits: tuple[int, int]) -> Bools:
    return np.asarray((count >= limits[0]) & (count <= limits[1]))


@dataclass(frozen=True, eq=False)
class VirtualModel:
    """Pipelines of `devices` devices with `chunks` stages each.

    Parameters
    ----------
    costs
        The costs of stages.
    schedule
        Where stages are, and how many samples are in flight.
    devices, chunks
        How many devices there are, and stages on each.
    """

    costs: CutCosts
    schedule: VirtualSchedule
    devices: int
    chunks: int

    @property
    def stages(self) -> int:
        """How many stages there are."""
        return self.devices * self.chunks

    @cached_property
    def ranks(self) -> Ints:
        """Shape (stages,): the device of every stage."""
        return np.array(self.schedule.ranks(self.devices, self.chunks))

    @cached_property
    def shared(self) -> Bools:
        """Shape (nets,): the nets that two stages of a device may share, so that loads do not add up.

        The two stages of the last device of a V are next to one another; they count as one there.
        """
        return self.costs.shared_over(2 if self.schedule.vee else self.devices - 1)

    @cached_property
    def adds_up(self) -> bool:
        """Whether the load of a device is always the sum over its stages."""
        return not self.shared.any() or self.chunks == 1

    @cached_property
    def low(self) -> Floats:
        """The terms of loads without the nets that stages may share; sums of them are lower bounds.

        They are infinite where the user's limits allow no stage.
        """
        costs = self.costs
        found = costs.alone if self.adds_up else costs.terms(~self.shared)
        return np.where(costs.allowed, found, np.inf)

    def quick_loads(self, borders: Ints) -> Floats:
        """Return the loads of the devices, shape (devices,), as if stages shared no tensor."""
        terms = self.costs.alone[:, borders[:-1], borders[1:]].T
        found = np.zeros((self.devices, terms.shape[1]))
        np.add.at(found, self.ranks, terms)
        if self.schedule.vee:
            found[-1] = self.costs.alone[:, borders[self.devices - 1], borders[self.devices + 1]]
        loads: Floats = found.max(axis=1)
        return loads

    def samples(self, rank: int) -> Ints:
        """Return the combinations of samples in flight on a device, shape (combinations, chunks)."""
        batch = self.costs.problem.pipeline.microbatches
        assert batch is not None
        return np.array(samples_by_chunk(self.schedule.name, rank, self.devices, self.chunks, batch))

    @cached_property
    def limit(self) -> float:
        """The memory of a device."""
        return float(self.costs.problem.memory[self.costs.kind])

    @cached_property
    def scarce(self) -> bool:
        """Whether memory may not suffice for some stages."""
        costs = self.costs
        most = max(int(self.samples(rank).max()) for rank in range(self.devices))
        everything = costs.once[0, -1] + most * costs.kept[0, -1] + costs.workspace.max(initial=0.0)
        return bool(everything > self.limit)

    def parts(self, borders: Ints) -> list[Part]:
        """Return the stages between cuts, shape (stages + 1,), as parts on their devices."""
        stages = [self.costs.cuts.stage(a, b) for a, b in pairwise(borders.tolist())]
        ranks = self.ranks.tolist()
        return [
            Part(self.costs.kind, nodes, devices=(rank,)) for nodes, rank in zip(stages, ranks, strict=True)
        ]

    def loads(self, borders: Ints) -> Floats:
        """Return the load of every device, shape (devices,)."""
        parts = self.parts(borders)
        joined = [
            Part(self.costs.kind, np.concatenate([part.nodes for part in parts if part.devices == (rank,)]))
            for rank in range(self.devices)
        ]
        loads: Floats = part_loads(self.costs.problem, joined)[0]
        return loads

    def feasible(self, borders: Ints) -> bool:
        """Whether stages are allowed and the memory of every device suffices."""
        first, last = borders[:-1], borders[1:]
        if not self.costs.allowed[first, last].all():
            return False
        return not self.scarce or all(self.fits(rank, borders) for rank in range(self.devices))

    def fits(self, rank: int, borders: Ints) -> bool:
        """Whether the memory of a device suffices for its stages."""
        return self.memory(rank, borders) <= self.limit

    def memory(self, rank: int, borders: Ints) -> float:
        """Return the memory that a device holds."""
        own = np.flatnonzero(self.ranks == rank)
        pairs = borders[own], borders[own + 1]
        held = (self.samples(rank) @ self.costs.kept[pairs]).max()
        return float(self.costs.once[pairs].sum() + held + self.costs.workspace[pairs].max())

    def excess(self, borders: Ints) -> float:
        """Return by how much devices exceed their memory, all together."""
        if not self.scarce:
            return 0.0
        return sum(max(0.0, self.memory(rank, borders) - self.limit) for rank in range(self.devices))


def schedule_of(problem: PipelineProblem) -> tuple[VirtualSchedule, int]:
    """Return the schedule of a problem, and how many stages each device has."""
    assert problem.pipeline.schedule is not None
    schedule = VIRTUAL[problem.pipeline.schedule]
    return schedule, schedule.chunks_for(problem.pipeline.virtual_stages)
