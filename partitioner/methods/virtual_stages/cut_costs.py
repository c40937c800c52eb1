"""The cuts between which stages lie, and what the stages between two of them cost on a kind of device."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from partitioner.methods.dp.lattice import ideal_lattice
from partitioner.methods.dp.reduced import Reduced
from partitioner.methods.loads import joint_terms
from partitioner.methods.method import Settings
from partitioner.methods.virtual_stages.kernel import CutNets, Modes, NetReach, cut_transfers
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
    loose
        Whether a stage may hold none of these supernodes, since others have been left out.
    """

    member: Bools
    complete: bool
    loose: bool = False

    def __len__(self) -> int:
        return len(self.member)

    @cached_property
    def size(self) -> Ints:
        """Shape (m,): how many supernodes are before each cut."""
        return np.asarray(self.member.sum(axis=1))

    @cached_property
    def nested(self) -> Bools:
        """Shape (m, m): whether a stage may lie between the two cuts, as the second comes after the first."""
        shared = self.member.astype(np.float64) @ self.member.T.astype(np.float64)
        found = (shared == self.size[:, None]) & (self.size[:, None] < self.size[None, :])
        return np.asarray(found | (np.eye(len(self), dtype=bool) & self.loose))

    @cached_property
    def reach(self) -> tuple[Ints, Ints]:
        """Shape (n,) each: the size of the least cut with each supernode, and of the largest without it."""
        below = np.where(self.member, self.size[:, None], self.member.shape[1]).min(axis=0)
        above = np.where(self.member, 0, self.size[:, None]).max(axis=0)
        return below, above

    def sums(self, amount: Floats) -> Floats:
        """Return the sum of an amount over the supernodes between two cuts, shape (m, m); `amount`: (n,)."""
        total = self.member @ amount
        return np.asarray(total[None, :] - total[:, None])

    def stages(self, borders: Ints) -> Ints:
        """Return the stage of every supernode, shape (n,), by the cuts at borders, shape (stages + 1,)."""
        return np.asarray((~self.member[borders[1:-1]]).sum(axis=0))

    def stage(self, first: int, last: int) -> Ints:
        """Return the supernodes between two cuts."""
        return np.flatnonzero(self.member[last] & ~self.member[first])


def cuts_of(problem: PipelineProblem, settings: Settings, most: int = MOST_CUTS) -> StageCuts:
    """Return all ideals if there are at most `most`, else the prefixes of the topological order."""
    limit = min(most, settings.memory_budget // 2**16)
    lattice = ideal_lattice(problem, limit + 1, COVERS_PER_CUT * most, lambda: settings.expired)
    if lattice is None or lattice.size > limit:
        return StageCuts(np.tri(problem.n + 1, problem.n, -1, dtype=bool), complete=False)
    return StageCuts(lattice.membership(), complete=True)


class StageModes(NamedTuple):
    """The modes of the stages between two cuts: those from ``first[a, b]`` to ``end[a, b]`` of `modes`."""

    first: Ints
    end: Ints
    modes: Modes


@dataclass(frozen=True, eq=False)
class CutCosts:
    """What a stage between two cuts costs on a device of its own; each array has shape (m, m).

    Parameters
    ----------
    problem, kind, cuts
        The problem, the kind of the device, and the cuts.
    degree
        How many devices of the kind run a stage together.
    fewer
        What the problem leaves out of the whole one; None if that is nothing.
    """

    problem: PipelineProblem
    kind: int
    cuts: StageCuts
    known: dict[bytes, Floats] = field(default_factory=dict)
    degree: int = 1
    fewer: Reduced | None = None

    @property
    def memory(self) -> float:
        """The memory of the device."""
        return float(self.problem.memory[self.kind])

    @property
    def runs(self) -> Bools:
        """Shape (n,): which supernodes may run on the kind."""
        return np.asarray(self.problem.allowed[self.kind])

    @property
    def work(self) -> Floats:
        """Shape (n,): the time of every supernode, 0 for those that may not run on the kind."""
        return np.where(self.runs, self.problem.time[self.kind].sum(axis=0), 0.0)

    @cached_property
    def possible(self) -> Bools:
        """Whether there is a stage between two cuts, whose supernodes may all run on the kind."""
        refused = (~self.runs).astype(float)
        return np.asarray(self.cuts.nested & (self.cuts.sums(refused) == 0))

    @cached_property
    def busy(self) -> Floats:
        """The processing time; infinity where there is no stage."""
        return np.where(self.possible, self.cuts.sums(self.work), np.inf)

    def passes(self) -> Floats:
        """Return the processing times of both passes, with what is left out between others; (2, m, m)."""
        time = np.where(self.runs, self.problem.time[self.kind], 0.0)
        found = np.stack([self.cuts.sums(time[way]) for way in (0, 1)])
        if self.fewer is not None:
            light, before, behind = self.fewer.between.T
            open_ = (~self.cuts.member[:, before]).astype(np.float64)
            held = self.cuts.member[:, behind].T.astype(np.float64)
            found += np.stack([(open_ * time) @ held for time in self.fewer.whole.time[self.kind][:, light]])
        return found

    @cached_property
    def allowed(self) -> Bools:
        """Whether the limits of the user allow a stage between two cuts."""
        limits, pipeline, cuts = self.problem.limits, self.problem.pipeline, self.cuts
        found = self.possible & _within(cuts.sums(pipeline.nodes.astype(float)), limits.nodes)
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

    @property
    def alone(self) -> Floats:
        """The terms of the loads with all nets, as :meth:`terms` returns them."""
        return self.terms(np.ones(len(self.problem.nets.cost), dtype=bool))

    def terms(self, nets: Bools) -> Floats:
        """Return the terms of the loads of stages with these nets, shape (terms, m, m).

        The load of a device is the largest term, each summed over its stages. Terms are infinite where there
        is no stage.
        """
        key = nets.tobytes()
        if key not in self.known:
            of_nets = self.nets(nets)
            self.known[key] = self._terms(of_nets, NetReach.alone(of_nets))
        return self.known[key]

    def sure_terms(self, devices: int, chunks: int) -> Floats:
        """Return terms as :meth:`terms` does, whose sums over stages of a device are no more than its load.

        Stages go round the devices, so that two of a device have at least `devices` - 1 others between them.
        """
        nets = self.nets(np.ones(len(self.problem.nets.cost), dtype=bool))
        return self._terms(nets, self._reach(devices, chunks))

    def _reach(self, devices: int, chunks: int) -> NetReach:
        """Return which pins outside of stages may be in other stages of the device."""
        (below, above), cuts, gap = self.cuts.reach, self.cuts, devices - 1
        pins, count = self.problem.nets.pins.lists(), len(self.problem.nets.cost)
        before, after = np.zeros((2, len(cuts), count)), np.zeros((2, len(cuts), count))
        part = np.ones(count)
        for e, row in enumerate(pins):
            inside = cuts.member[:, row]
            room = np.where(inside, cuts.size[:, None] - below[row], -1)
            behind = np.where(inside, -1, above[row] - cuts.size[:, None])
            none = self.problem.n
            before[:, :, e] = room.max(axis=1), np.where(inside, room, none).min(axis=1)
            after[:, :, e] = behind.max(axis=1), np.where(inside, none, behind).min(axis=1)
            span = int((above[row][None, :] - below[row][:, None]).max())
            part[e] = 1 / max(1, min(chunks, len(row), (span + devices + 1) // devices))
        if self.problem.communication == "duplex":  # in and out are not one sum
            part[:] = 0.0
        far, near = (before[0] >= gap, after[0] >= gap), (before[1] < gap, after[1] < gap)
        return NetReach(*far, *near, part)

    def _terms(self, nets: CutNets, reach: NetReach) -> Floats:
        """Return the terms of the loads, with what stages pay wherever other pins of nets are."""
        moved, sent_last = np.zeros((2, len(self.cuts), len(self.cuts))), np.ones(len(nets.cost), np.int64)
        cut_transfers(self.cuts.nested, nets, reach, nets.held, sent_last, moved)
        parts = joint_terms(self.problem.communication, [self.busy], [moved[0]], [moved[1]])
        return np.where(self.possible, np.stack([np.sum(part, axis=0) for part in parts]), np.inf)

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
        (below, above), pins = self.cuts.reach, self.problem.nets.pins
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

    def may_lack(self, samples: int) -> bool:
        """Whether the memory may not suffice for stages with some samples in flight."""
        held = self.once[0, -1] + samples * self.kept[0, -1] + self.workspace.max(initial=0.0)
        return bool(held > self.memory)

    @cached_property
    def least_modes(self) -> StageModes:
        """One mode for every stage, no worse than any of its modes."""
        first = np.arange(self.once.size).reshape(self.once.shape)
        amounts = (each.ravel() for each in (self.once, self.kept, self.workspace))
        return StageModes(first, first + 1, Modes(np.zeros(first.size), *amounts))

    @property
    def modes(self) -> StageModes:
        """The modes of the stages."""
        return self.least_modes


def _within(count: Floats, limits: tuple[int, int]) -> Bools:
    return np.asarray((count >= limits[0]) & (count <= limits[1]))
