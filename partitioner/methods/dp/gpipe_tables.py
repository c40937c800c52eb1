"""The tables over one lattice for chains with a load in each of two passes, and how they are filled.

The named arrays that the compiled walk over chains with two passes reads.

There are K kinds, n supernodes, E nets, S states and I ideals. Pass 0 is the forward pass, 1 the backward
pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partitioner.methods.bounds.relaxation import SLACK, Relaxation
from partitioner.methods.dp._gpipe_core import SUM, PassSearchSpec, PassTerms, new_tally, sweep
from partitioner.methods.dp._walk_core import new_path
from partitioner.methods.dp.bracket import TableFilling
from partitioner.methods.dp.chain import has_earlier_pin
from partitioner.methods.dp.lattice import Lattice, easiest_followers, remaining_weights, weights_above
from partitioner.methods.dp.pipeline_tables import StateSpace, new_table, stages_in
from partitioner.methods.dp.stages import (
    costs_by_pass,
    is_bound,
    read_of_node,
    stage_limits_of,
    work_by_pass,
)
from partitioner.methods.loads import part_loads
from partitioner.methods.method import Part
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.problem import Problem
from partitioner.problem.variants import ChainProblem


@dataclass(frozen=True, eq=False)
class _Pins:
    """Every pair of a supernode and a net of it, as arrays in the order of `Nets.of_node`.

    Parameters
    ----------
    owner, net, read
        The supernode, the net, and the first pass in which the supernode reads it.
    makes
        Whether the supernode produces the tensor.
    """

    owner: Ints
    net: Ints
    read: Ints
    makes: Bools


def growth_by_pass(problem: Problem) -> Floats:
    """Return by how much a supernode may raise the loads of a stage that takes it, shape (2, K, n).

    It is finite only if no load of a later stage can grow in either pass, so that a stage that can take the
    supernode need not end before it. Where the user's limits are about stages it is infinite.
    """
    work = work_by_pass(problem)
    if is_bound(problem):
        return np.full(work.shape, np.inf)
    nets = problem.nets.of_node
    owner = nets.owners()
    pins = _Pins(owner, nets.items, read_of_node(problem), problem.nets.source[nets.items] == owner)
    transfer_factor = problem.transfer_factor[:, None]
    gain = work if problem.communication == "sequential" else np.zeros_like(work)
    harmless = (gain >= transfer_factor * _rise(problem, pins)[:, None]).all(axis=(0, 1))
    due = np.where(pins.makes, problem.nets.made[pins.net], pins.read)
    total = _summed(problem, pins, np.array([due == 0, due == 1]))
    return np.asarray(np.where(harmless, work + transfer_factor * total[:, None], np.inf))


def _summed(problem: Problem, pins: _Pins, chosen: Bools) -> Floats:
    """Return the cost of the chosen nets of every supernode, shape (2, n); `chosen` has shape (2, pairs)."""
    cost = problem.nets.cost[pins.net]
    return np.array([np.bincount(pins.owner, cost * row, problem.n) for row in chosen])


def _rise(problem: Problem, pins: _Pins) -> Floats:
    """Return the most by which a later stage pays more in each pass without a supernode, shape (2, n).

    A net with a pin among the supernode's predecessors is cut with or without the supernode, so the stage
    pays the same for it, unless the pass changes because the net's producer or only forward reader left.
    """
    nets = problem.nets
    cut, makes = has_earlier_pin(problem, pins.owner), pins.makes
    made = nets.made[pins.net]
    read_late = (pins.read == 1) & ~makes
    late = np.bincount(pins.net, read_late, len(nets.cost))[pins.net] - read_late
    early = np.bincount(pins.net, (pins.read == 0) & ~makes, len(nets.cost))[pins.net] - (
        (pins.read == 0) & ~makes
    )
    leaves_alike = cut & makes & (problem.communication != "duplex")
    rises = [
        others_read & ~steady & ~(leaves_alike & (made == w))
        for w, others_read, steady in (
            (0, (early > 0) | (~makes & (made == 0)), cut & ~makes),
            (1, (late > 0) | (~makes & (made == 1)), cut & ~makes & (pins.read == 1)),
        )
    ]
    return _summed(problem, pins, np.array(rises))


class PassTables:
    """The data that all fillings over one lattice share.

    Parameters
    ----------
    problem, lattice
        A problem whose measure has two passes, and a lattice over its supernodes.
    relaxation
        The relaxation with those of each pass, whose weights bound what the supernodes outside an ideal need.
    """

    def __init__(self, problem: ChainProblem, relaxation: Relaxation, lattice: Lattice) -> None:
        self.problem, self.relaxation, self.lattice = problem, relaxation, lattice
        self.space = StateSpace(problem)
        self.terms = PassTerms(
            costs_by_pass(problem), stage_limits_of(problem), problem.size, problem.memory
        )  # fmt: skip
        growth = growth_by_pass(problem)
        self.growth = np.concatenate((growth, growth.sum(axis=0, keepdims=True)))
        self.easiest = easiest_followers(lattice, self.growth[SUM])
        self.relaxations = (*relaxation.passes, relaxation)
        after, weights = problem.successors, [each.weight for each in self.relaxations]
        self.remaining = [remaining_weights(lattice, weight) for weight in weights]
        self.above = [weights_above(after.start, after.items, weight, lattice.linear) for weight in weights]

    def limited(self, least: int, limits: Sequence[float]) -> LimitedTables:
        """Return the source of tables for the least largest load of a number, with limits on all loads."""
        return LimitedTables(self, least, tuple(limits))

    def largest_loads(self, stages: Sequence[Part]) -> tuple[float, float, float]:
        """Return the largest forward load, backward load, and sum of both of stages that hold all."""
        loads = part_loads(self.problem, stages)
        forward, backward, total = np.stack((*loads, loads.sum(axis=0))).max(axis=1).tolist()
        return forward, backward, total


@dataclass(frozen=True, eq=False)
class LimitedTables:
    """The source of tables for the largest load in one pass, or of the sums of both, with limits on all.

    Parameters
    ----------
    shared
        The problem and the lattice.
    least, limits
        The number of the load that is minimised, and the largest loads allowed in the forward pass, in the
        backward pass, and of both together.
    """

    shared: PassTables
    least: int
    limits: tuple[float, ...]

    @property
    def lattice(self) -> Lattice:
        """The lattice."""
        return self.shared.lattice

    def filling(self, threshold: float, floor: float) -> PassFilling:
        """Return an empty table for a threshold, in which values up to the floor count as equal."""
        limits = np.array(self.limits)
        limits[self.least] = threshold
        return PassFilling(self, self.spec(limits, floor))

    def clipped(self, limits: Floats) -> PassTerms:
        """Return the terms for limits, with those of nets that no stage can transfer clipped.

        A very large cost, such as one that stands for "never", would leave a rounding error behind when it is
        subtracted again.
        """
        problem, terms = self.shared.problem, self.shared.terms
        cheapest = problem.transfer_factor[problem.pays].min(initial=1.0)
        cost = np.minimum(problem.nets.cost, 2 * limits.max() / cheapest)
        return terms._replace(costs=terms.costs._replace(enter=cost, leave=cost))

    def spec(self, limits: Floats, floor: float) -> PassSearchSpec:
        """Return the arguments of the sweep for limits and a floor."""
        shared = self.shared
        room, remaining, above = np.zeros((3, 1))
        for w, (limit, relaxation) in enumerate(zip(limits.tolist(), shared.relaxations, strict=True)):
            capacity = relaxation.capacity(limit, shared.space.free, shared.problem.memory)
            capacity += SLACK * (relaxation.weight.sum() + capacity)
            share = 1 / capacity[0] if 0 < capacity[0] < np.inf else 0.0
            room = np.maximum(room, share * capacity)
            remaining = np.maximum(remaining, share * shared.remaining[w])
            above = np.maximum(above, share * shared.above[w])
        return PassSearchSpec(
            least=self.least,
            limits=limits,
            floor=floor,
            capacity=np.broadcast_to(room, len(shared.space.free)).copy(),
            remaining=np.broadcast_to(remaining, shared.lattice.size).copy(),
            above=np.broadcast_to(above, shared.problem.n).copy(),
            growth=shared.growth,
            easiest=shared.easiest,
        )


class PassFilling(TableFilling):
    """The table of chains within limits on the loads of both passes.

    Parameters
    ----------
    tables
        The problem, the lattice, and the limits on loads.
    spec
        The chains to look for.
    """

    def __init__(self, tables: LimitedTables, spec: PassSearchSpec) -> None:
        self.tables, self.spec = tables, spec
        space, nodes = tables.shared.space, tables.shared.problem.n
        self.table = new_table(tables.lattice.size, space.count)
        self.table.value[0, 0] = 0.0
        self.tally = new_tally(tables.clipped(spec.limits), space.states, spec, self.table)
        self.path, self.covered = new_path(nodes), np.zeros(nodes, dtype=np.bool_)

    def _sweep(self, budget: int) -> tuple[int, int]:
        found: tuple[int, int] = sweep(
            self.tables.lattice, self.tally, self.path, self.covered, self.ideal, budget
        )
        return found

    def best(self) -> tuple[float, list[Part]] | None:
        """Return the largest load and the stages of the best chain; None if there is none."""
        shared = self.tables.shared
        last = np.where(shared.space.final, self.table.value[-1], np.inf)
        state = int(last.argmin())
        if np.isinf(last[state]):
            return None
        stages = stages_in(self.table, shared, shared.lattice.size - 1, state)
        return shared.largest_loads(stages)[self.tables.least], stages
