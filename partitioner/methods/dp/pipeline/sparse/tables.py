"""The data that all searches over one lattice share, where a table of all sets of devices is too large."""

from __future__ import annotations

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp.ideals import Lattice
from partitioner.methods.dp.pipeline.arrays import DeviceStates, StageCosts
from partitioner.methods.dp.pipeline.groups.arrays import LinkCosts
from partitioner.methods.dp.pipeline.groups.net_kernel import only_neighbours
from partitioner.methods.dp.pipeline.groups.tables import unknown_factors
from partitioner.methods.dp.pipeline.loads import largest_copies
from partitioner.methods.dp.pipeline.model import costs_of, memory_model_of, stage_limits_of
from partitioner.methods.dp.pipeline.sparse.arrays import DeviceCounts, packed
from partitioner.methods.dp.pipeline.states import state_count
from partitioner.methods.dp.pipeline.tables import clipped
from partitioner.methods.dp.weights import remaining_weights, weights_above
from partitioner.problem.measure import Measure
from partitioner.problem.problem import Problem
from partitioner.problem.variants import PipelineProblem

MOST_STATES, MOST_GROUPS = 20_000, 60  # states and pairs of groups of a table; groups in a mask
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
        self.memory_model = memory_model_of(problem, _ends(problem))
        self.stage_limits = stage_limits_of(problem)
        self.remaining = remaining_weights(lattice, relaxation.weight)
        after = problem.successors
        self.above = weights_above(after.start, after.items, relaxation.weight, lattice.linear)
        self.links = self._links()
        self.counts = _counts(problem, self.links.group)

    def clipped(self, threshold: float) -> StageCosts:
        """Return the costs for a threshold; replicas exchange weights on the links of their group."""
        costs = clipped(self.problem, costs_of(self.problem), threshold)
        own = self.links.link.diagonal()[self.links.group]
        return costs._replace(bandwidth=costs.bandwidth / own)

    def _links(self) -> LinkCosts:
        problem, lattice = self.problem, self.lattice
        below, above = only_neighbours(lattice.start, lattice.node, lattice.to, lattice.size)
        if not len(problem.pipeline.link):
            one = np.ones((1, 1))
            return LinkCosts(np.zeros(len(problem.count), np.int64), one, one[0], self.upper, below, above)
        group, unknown = problem.pipeline.held.argmax(axis=0), unknown_factors(problem)[int(self.upper)]
        return LinkCosts(group, problem.pipeline.link, unknown, self.upper, below, above)


class LowerSparseTables(SparseTables):
    """The same, with loads that are lower bounds on those of all stages."""

    upper = False


def is_large(problem: PipelineProblem) -> bool:
    """Whether a table of all sets of devices is too large, and the search without one can take its place."""
    levels = len(problem.pipeline.slowdown) > 0
    many = len(problem.pipeline.link) > MOST_GROUPS
    return problem.measure is not Measure.BATCH and not (levels or many) and has_many_states(problem)


def has_many_states(problem: PipelineProblem) -> bool:
    """Whether a table of all sets of devices, and of pairs of groups, is too large."""
    return state_count(problem) * max(1, len(problem.pipeline.link)) ** 2 > MOST_STATES


def ideal_bytes(_: Problem) -> int:
    """Return the bytes that a search takes for each ideal, about."""
    return BYTES_PER_IDEAL


def _ends(problem: PipelineProblem) -> DeviceStates:
    """Return the states in which no device and every device is in use."""
    none = np.zeros_like(problem.count)
    return DeviceStates(
        left=np.stack((largest_copies(problem), none)),
        stride=none,
        hop=0,
        behind=np.array([0, int(problem.count.sum())]),
        dominance=True,
    )


def _counts(problem: PipelineProblem, group: np.ndarray[tuple[int], np.dtype[np.int64]]) -> DeviceCounts:
    limits = problem.limits
    most = np.append(problem.count, limits.stages)
    return packed(most, group, bool(limits.all_devices or limits.stages))
