"""The plain chain: the table of the dynamic program for one threshold, and how it is filled.

With c the numbers of devices in use by kind, I and J ideals, and loads of at most the threshold,

    value[J, c + 1 of k] = min over I of max(value[I, c], load of the stage J - I on kind k)

For three nodes in a row that take 1, 2 and 3 on two devices of one kind, value[{1, 2}, 1] = 3 and
value[{1, 2, 3}, 2] = max(3, 3) = 3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partitioner.methods.bounds.relaxation import SLACK, Relaxation
from partitioner.methods.dp._chain_core import ChainSearchSpec, ChainTable, StageModel, new_tally, sweep
from partitioner.methods.dp._walk_core import new_path
from partitioner.methods.dp.bracket import TableFilling
from partitioner.methods.dp.lattice import (
    Lattice,
    easiest_followers,
    remaining_weights,
    weights_above,
)
from partitioner.methods.loads import value_of
from partitioner.methods.method import Part
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.problem import Problem
from partitioner.workload.devices import COMMUNICATION_MODELS

BYTES_PER_STATE = 14


def state_bytes(problem: Problem) -> int:
    """Return the bytes that the table takes for each ideal."""
    return BYTES_PER_STATE * problem.states


def used_devices(problem: Problem) -> tuple[Ints, Ints, Ints]:
    """Return the vectors of used devices, in mixed radix.

    Returns
    -------
    tuple of arrays
        Shape (K,): by how much the number of a vector rises with one more device of a kind. Shape (S, K): how
        many devices each vector leaves, and the vector with one more in use, -1 if none is left.
    """
    radix = problem.count + 1
    stride = np.concatenate((np.ones(1, np.int64), np.cumprod(radix)[:-1]))
    states = np.arange(problem.states)
    left = problem.count - (states[:, None] // stride) % radix
    return stride, left, np.where(left > 0, states[:, None] + stride, -1)


class ChainTables:
    """The data that all fillings over one lattice share.

    Parameters
    ----------
    problem, lattice
        A problem, and a lattice over its supernodes.
    relaxation
        The relaxation of the problem, whose weights bound what the supernodes outside an ideal need.
    """

    def __init__(self, problem: Problem, relaxation: Relaxation, lattice: Lattice) -> None:
        self.problem, self.relaxation, self.lattice = problem, relaxation, lattice
        self.stride, self.left, self.following = used_devices(problem)
        self.model = stage_model(problem)
        self.growth = growth_of(problem)
        self.easiest = easiest_followers(lattice, self.growth)
        self.remaining = remaining_weights(lattice, relaxation.weight)
        after = problem.successors
        self.above = weights_above(after.start, after.items, relaxation.weight, lattice.linear)

    def filling(self, threshold: float, floor: float) -> ChainFilling:
        """Return an empty table for a threshold, in which largest loads up to the floor count as equal."""
        return ChainFilling(self, threshold, floor)

    def search(self, threshold: float, floor: float) -> ChainSearchSpec:
        """Return the arguments of the sweep for a threshold and a floor."""
        capacity = self.relaxation.capacity(threshold, self.left, self.problem.memory)
        return ChainSearchSpec(
            threshold=threshold,
            floor=floor,
            following=self.following,
            capacity=capacity + SLACK * (self.relaxation.weight.sum() + capacity),
            remaining=self.remaining,
            above=self.above,
            growth=self.growth,
            easiest=self.easiest,
        )


class ChainFilling(TableFilling):
    """The table of chains of one threshold.

    Parameters
    ----------
    tables
        The problem and the lattice.
    threshold
        Only chains in which no load exceeds this are found.
    floor
        Largest loads up to this one count as equal.
    """

    def __init__(self, tables: ChainTables, threshold: float, floor: float) -> None:
        self.tables = tables
        search, model = tables.search(threshold, floor), clipped(tables.model, threshold)
        shape = tables.lattice.size, len(tables.left)
        self.table = ChainTable(np.full(shape, np.inf), np.empty(shape, np.int32), np.empty(shape, np.int16))
        self.table.value[0, 0] = 0.0
        self.tally, self.path = new_tally(model, search, self.table), new_path(tables.problem.n)

    def _sweep(self, budget: int) -> tuple[int, int]:
        found: tuple[int, int] = sweep(self.tables.lattice, self.tally, self.path, self.ideal, budget)
        return found

    def best(self) -> tuple[float, list[Part]] | None:
        """Return the value and the stages of the best chain that holds all; None if there is none."""
        state = int(self.table.value[-1].argmin())
        if np.isinf(self.table.value[-1, state]):
            return None
        stages, ideal = [], self.tables.lattice.size - 1
        while ideal:
            kind = int(self.table.kind[ideal, state])
            before = int(self.table.origin[ideal, state])
            stages.append(Part(kind, self.tables.lattice.difference(ideal, before)))
            ideal = before
            state -= int(self.tables.stride[kind])
        return value_of(self.tables.problem, stages), stages[::-1]


def stage_model(problem: Problem) -> StageModel:
    """Return the costs of stages of a problem."""
    nets = problem.nets
    return StageModel(
        work=problem.work(),
        size=problem.size,
        memory=problem.memory,
        transfer_factor=problem.transfer_factor,
        communication=COMMUNICATION_MODELS.index(problem.communication),
        net_start=nets.of_node.start,
        net=nets.of_node.items,
        pins=np.diff(nets.pins.start),
        cost=nets.cost,
        source=nets.source,
    )


def clipped(model: StageModel, threshold: float) -> StageModel:
    """Return the model for a threshold, with costs clipped to twice the threshold.

    A very large cost, such as one that stands for "never", would leave a rounding error behind when it is
    subtracted again.
    """
    cheapest = model.transfer_factor[model.transfer_factor > 0].min(initial=1.0)
    return model._replace(cost=np.minimum(model.cost, 2 * threshold / cheapest))


def growth_of(problem: Problem) -> Floats:
    """Return by how much a supernode may raise the load of a stage that takes it, shape (K, n).

    It is finite only if no load of a later stage can grow. The later stages lose the supernode's time. Of its
    nets, those with a pin among its predecessors are cut for them already, the others perhaps only now. So on
    every kind that pays, the supernode's time must be at least the cost of these others. Where sending and
    receiving overlap, a net that it produces is one of these, too: a later stage that sent it may receive it.
    """
    nets = problem.nets
    owner = nets.of_node.owners()
    cost = nets.cost[nets.of_node.items]
    total = np.bincount(owner, cost, problem.n)
    alike = has_earlier_pin(problem, owner)
    if problem.communication == "duplex":
        alike &= nets.source[nets.of_node.items] != owner
    fresh = np.bincount(owner, cost * ~alike, problem.n)
    work = problem.work()
    gain = work if problem.communication == "sequential" else np.zeros_like(work)
    transfer_factor = problem.transfer_factor[:, None]
    harmless = (gain >= transfer_factor * fresh).all(axis=0)
    growth = np.where(harmless, work + transfer_factor * total, np.inf)
    return np.asarray(growth)


def has_earlier_pin(problem: Problem, owner: Ints) -> NDArray[np.bool_]:
    """Return for each pair of a supernode and a net of it whether the net holds a predecessor of it."""
    pins, before, net = problem.nets.pins, problem.predecessors, problem.nets.of_node.items
    n = problem.n
    key = before.owners() * n + before.items
    found = np.isin(owner * n + problem.nets.source[net], key)  # usually the maker
    left = np.flatnonzero(~found)
    members, earlier = [set(row) for row in pins.lists()], before.lists()
    pairs = zip(left.tolist(), owner[left].tolist(), net[left].tolist(), strict=True)
    others = [i for i, v, e in pairs if not members[e].isdisjoint(earlier[v])]
    found[np.array(others, dtype=np.int64)] = True
    return found
