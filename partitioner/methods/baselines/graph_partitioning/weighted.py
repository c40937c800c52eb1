"""What a graph partitioner is given: an undirected graph with whole numbers as weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.methods.list_scheduling.ranks import mean_transfer
from partitioner.problem.arrays import Floats, Ints, rows_of
from partitioner.problem.problem import Nets
from partitioner.problem.tasks import Tasks

TOTAL = 2**28  # sums of weights stay far below what 32 bits hold


class Weighted(NamedTuple):
    """An undirected graph; every edge stands in the rows of both its ends.

    Parameters
    ----------
    weight
        Shape (n,): work of each vertex.
    start, neighbour, cost
        Row v of the neighbours is ``neighbour[start[v]:start[v + 1]]``, likewise the edges' costs (>= 1).
    """

    weight: Ints
    start: Ints
    neighbour: Ints
    cost: Ints

    @property
    def n(self) -> int:
        """How many vertices there are."""
        return len(self.weight)

    def renumbered(self, order: Ints) -> Weighted:
        """Return the same graph; vertex i of the new one is ``order[i]`` of this one."""
        owner = np.repeat(np.arange(self.n), np.diff(self.start))
        place = np.argsort(order)
        return _collected(self.weight[order], place[owner], place[self.neighbour], self.cost)


def weighted(work: Floats, ends: Ints, cost: Floats) -> Weighted:
    """Scale the weights to whole numbers and add up edges between the same vertices.

    Parameters
    ----------
    work
        Shape (n,): of each vertex.
    ends
        Shape (m, 2): the vertices that each edge joins; loops are left out.
    cost
        Shape (m,).

    Examples
    --------
    >>> graph = weighted(np.array([1.0, 3.0]), np.array([[0, 1], [1, 0]]), np.array([0.5, 0.5]))
    >>> graph.weight.tolist() == [TOTAL // 4, TOTAL // 4 * 3], graph.neighbour.tolist()
    (True, [1, 0])
    """
    joins = (ends[:, 0] != ends[:, 1]) & (cost > 0)
    low, high = ends[joins].min(axis=1), ends[joins].max(axis=1)
    pairs, number = np.unique(np.column_stack((low, high)), axis=0, return_inverse=True)
    total = np.bincount(number.ravel(), cost[joins], len(pairs)).astype(np.float64)
    whole = np.maximum(_whole(total), 1)
    owner, other = np.concatenate((pairs, pairs[:, ::-1])).reshape(-1, 2).T
    return _collected(_whole(work), owner, other, np.tile(whole, 2))


def of_nets(work: Floats, nets: Nets) -> Weighted:
    """Supernodes as vertices; a net is a star from the supernode that makes the tensor.

    The paper's code does the same: a tensor counts once for each reader, wherever readers end up.
    """
    source = np.repeat(nets.source, np.diff(nets.pins.start))
    ends = np.column_stack((source, nets.pins.items))
    return weighted(work, ends, np.repeat(nets.cost, np.diff(nets.pins.start)))


def of_tasks(work: Floats, tasks: Tasks) -> Weighted:
    """Groups of tasks as vertices; a tensor counts once for each group that reads it.

    Parameters
    ----------
    work
        Shape (groups,).
    tasks
        The tasks; what a transfer costs is its mean over all pairs of devices.
    """
    maker, reader = tasks.group[tasks.before.owners()], tasks.group[tasks.before.items]
    once = np.unique(np.column_stack((tasks.before_tensor, reader, maker)), axis=0)
    return weighted(work, once[:, 1:], mean_transfer(tasks)[once[:, 0]])


def _whole(weights: Floats) -> Ints:
    """Whole numbers in proportion; all 1 where all are 0."""
    total = weights.sum()
    if total <= 0:
        return np.ones(len(weights), dtype=np.int64)
    return np.asarray(np.rint(weights / total * TOTAL), dtype=np.int64)


def _collected(weight: Ints, owner: Ints, other: Ints, cost: Ints) -> Weighted:
    """Rows in order of the owners, within a row of the neighbours."""
    order = np.lexsort((other, owner))
    rows = rows_of(owner[order], other[order], len(weight))
    return Weighted(weight, rows.start, rows.items, cost[order])
