"""The data that all searches over one lattice share, where a table of all sets of devices is too large."""

from __future__ import annotations

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp.ideals import Lattice
from partitioner.methods.dp.pipeline.arrays import DeviceStates
from partitioner.methods.dp.pipeline.groups.tables import unknown_factors
from partitioner.methods.dp.pipeline.loads import largest_copies
from partitioner.methods.dp.pipeline.sparse.arrays import DeviceCounts, packed
from partitioner.methods.dp.pipeline.states import state_count
from partitioner.methods.dp.pipeline.tables import clipped
from partitioner.methods.dp.stages import (
    StageCosts,
    StageTerms,
    TensorEnds,
    costs_of,
    memory_model_of,
    one_group,
    stage_limits_of,
)
from partitioner.methods.dp.weights import remaining_weights, weights_above
from partitioner.problem.arrays import Ints
from partitioner.problem.measure import Measure
from partitioner.problem.problem import Problem
from partitioner.problem.variants import PipelineProblem

MOST_STATES, MOST_GROUPS = 20_000, 30  # states and pairs of groups of a table; groups in a mask
MOST_WINDOW = 6  # supernodes of a short stage
BYTES_PER_IDEAL = 40_000


class SparseTables:
    """The data that all searches over one lattice share.

    Loads are upper bounds on those of the stages found, as in
    :class:`partitioner.methods.dp.pipeline.groups.tables.GroupTables`.

    Parameters
    ----------
    problem, relaxation, lattice
        As for :class:`partitioner.methods.dp.pipeline.tables.PipelineTables`; each kind is in one group.
    """

    upper = True

    def __init__(self, problem: PipelineProblem, relaxation: Relaxation, lattice: Lattice) -> None:
        self.problem, self.relaxation, self.lattice = problem, relaxation, lattice
        self.widest = largest_copies(problem)
        self.remaining = remaining_weights(lattice, relaxation.weight)
        after = problem.successors
        self.above = weights_above(after.start, after.items, relaxation.weight, lattice.linear)
        self.open = np.ones(problem.n, dtype=bool)
        self.counts = _counts(problem)
        memory = memory_model_of(problem, _extremes(problem))
        self.lightest = np.stack((memory.least_in_flight[0], memory.least_versions[0]), axis=1)
        self.model = StageTerms(costs_of(problem), self._ends(), memory, stage_limits_of(problem))

    def clipped(self, threshold: float) -> StageCosts:
        """Return the costs for a threshold; replicas exchange weights on the links of their group."""
        costs, ends = clipped(self.problem, self.model.costs, threshold), self.model.ends
        own = ends.link.diagonal()[ends.group]
        return costs._replace(bandwidth=costs.bandwidth / own)

    def _ends(self) -> TensorEnds:
        problem, lattice, pins = self.problem, self.lattice, self.problem.nets.pins
        link, unknown, group = np.ones((1, 1)), np.ones(1), np.zeros(len(problem.count), np.int64)
        if len(problem.pipeline.link):
            link, group = problem.pipeline.link, problem.pipeline.held.argmax(axis=0)
            unknown = unknown_factors(problem)[int(self.upper)]
        window = _window(problem, lattice) if len(link) > 1 else 0
        size = problem.n - remaining_weights(lattice, np.ones(problem.n))
        below, above = _closures(problem, lattice)
        return one_group(len(problem.count))._replace(
            listed=True, group=group, link=np.tile(link, (2, 2)) if window else link, unknown=unknown,
            real=len(link), window=window, pin_start=pins.start, pin=pins.items,
            size=np.rint(size).astype(np.int64), below=below, above=above,
        )  # fmt: skip


class LowerSparseTables(SparseTables):
    """The same, with loads that are lower bounds on those of all stages."""

    upper = False


def is_large(problem: PipelineProblem) -> bool:
    """Whether a table of all sets of devices is too large, and the search without one can take its place."""
    return can_do_without(problem) and has_many_states(problem)


def can_do_without(problem: PipelineProblem) -> bool:
    """Whether there is a search without a table of all sets of devices."""
    levels, many = len(problem.pipeline.slowdown) > 0, len(problem.pipeline.link) > MOST_GROUPS
    return problem.measure is not Measure.BATCH and not (levels or many)


def has_many_states(problem: PipelineProblem) -> bool:
    """Whether a table of all sets of devices, and of pairs of groups, is too large."""
    return state_count(problem) * max(1, len(problem.pipeline.link)) ** 2 > MOST_STATES


def ideal_bytes(_: Problem) -> int:
    """Return the bytes that a search takes for each ideal, about."""
    return BYTES_PER_IDEAL


def _extremes(problem: PipelineProblem) -> DeviceStates:
    """Return the states in which no device and every device is in use."""
    none = np.zeros_like(problem.count)
    return DeviceStates(
        left=np.stack((largest_copies(problem), none)),
        stride=none,
        hop=0,
        behind=np.array([0, int(problem.count.sum())]),
        dominance=True,
    )


def _counts(problem: PipelineProblem) -> DeviceCounts:
    limits = problem.limits
    return packed(np.append(problem.count, limits.stages), bool(limits.all_devices or limits.stages))


def _window(problem: PipelineProblem, lattice: Lattice) -> int:
    """Return how many supernodes the longest tensor passes over that passes over few of them."""
    pins = problem.nets.pins
    if not len(pins.items):
        return 0
    rank = lattice.rank[pins.items]
    span = np.maximum.reduceat(rank, pins.start[:-1]) - np.minimum.reduceat(rank, pins.start[:-1]) - 1
    return int(span[span <= MOST_WINDOW].max(initial=0))


def _closures(problem: PipelineProblem, lattice: Lattice) -> tuple[Ints, Ints]:
    """Return how many supernodes each one needs, and how many need it, itself included, shape (n,) each."""
    n = problem.n
    if lattice.linear:
        return lattice.rank + 1, n - lattice.rank
    before, after = [1 << v for v in range(n)], [1 << v for v in range(n)]
    for v in range(n):
        for u in problem.predecessors.row(v).tolist():
            before[v] |= before[u]
    for v in range(n - 1, -1, -1):
        for w in problem.successors.row(v).tolist():
            after[v] |= after[w]
    counts = [np.array([each.bit_count() for each in sets], dtype=np.int64) for sets in (before, after)]
    return counts[0], counts[1]
