"""Bounds from the problem in which all links are as fast as inside a group."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp.ideals import Lattice, chain_lattice, ideal_lattice
from partitioner.methods.dp.pipeline.levels.layout import GroupLayout
from partitioner.methods.dp.pipeline.levels.search_target import Outside
from partitioner.methods.dp.pipeline.tables import PipelineTables
from partitioner.methods.dp.pipeline.turned import turned
from partitioner.methods.dp.stages import least_memory
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import PipelineProblem

UNENDING = 2**62


def without_levels(problem: PipelineProblem) -> PipelineProblem:
    """Return the problem with all devices in one group, in which no pipeline costs more."""
    pipeline = problem.pipeline
    group = pipeline.group[:0]
    return replace(problem, pipeline=replace(pipeline, group=group, slowdown=pipeline.slowdown[:0]))


class Remainders:
    """The source of the least values of stages outside an ideal, by the groups that are left.

    The stages are placed from the other end, on links as fast as inside a group, with the least memory.

    Parameters
    ----------
    problem, relaxation, lattice
        The problem, its relaxation and the lattice of its ideals.
    layout
        The groups of devices.
    """

    def __init__(
        self, problem: PipelineProblem, relaxation: Relaxation, lattice: Lattice, layout: GroupLayout
    ) -> None:
        self.layout = layout
        pipeline = problem.pipeline
        limits = replace(pipeline.limits, stages=0, all_devices=False)
        flat = without_levels(replace(problem, size=least_memory(problem)))
        flat = replace(flat, pipeline=replace(flat.pipeline, schedule=None, limits=limits))
        other = turned(flat)
        opposite = _opposite(other, lattice)
        mirrored = replace(relaxation, weight=relaxation.weight[::-1].copy())
        self.tables = PipelineTables(other, mirrored, opposite)
        self.tables.easiest[:] = -1
        self.complement = _complements(lattice, opposite)
        self.used = problem.count - self.tables.space.free

    def outside(self, threshold: float, limit: float, floor: float, summed: bool) -> Outside:
        """Return the least values of stages outside every ideal, as far as they are within the limits."""
        tables = self.tables
        filling = tables.summing(threshold, limit) if summed else tables.filling(threshold, floor)
        filling.advance(UNENDING)
        return Outside(filling.table.value[self.complement], self.used)

    def by_groups(self, outside: Outside) -> Floats:
        """Return the least value outside each ideal by the number of groups, shape (groups + 1, I)."""
        ideals = np.arange(len(outside.value))
        groups = range(self.layout.groups + 1)
        return np.array([outside.least(ideals, number * self.layout.size) for number in groups])


def _opposite(other: PipelineProblem, lattice: Lattice) -> Lattice:
    """Return the lattice of the turned problem, whose ideals are the complements of those of a lattice."""
    if lattice.linear:
        return chain_lattice(other.n - 1 - np.argsort(lattice.rank)[::-1])
    opposite = ideal_lattice(other, lattice.size, 2**31 - 1)
    assert opposite is not None
    return opposite


def _complements(lattice: Lattice, opposite: Lattice) -> Ints:
    """Return the ideal of the turned problem that is the complement of each ideal, shape (I,).

    Sets are compared by sums of random numbers modulo 2**64.
    """
    n = len(lattice.rank)
    mark = np.random.default_rng(0).integers(0, 2**63, n).astype(np.uint64)
    outside = mark.sum(dtype=np.uint64) - _sums(lattice.parent, lattice.added, mark)
    inside = _sums(opposite.parent, opposite.added, mark[::-1].copy())
    order = np.argsort(inside)
    return np.asarray(order[np.searchsorted(inside[order], outside)])


@njit(cache=True)
def _sums(parent, added, mark):  # type: ignore[no-untyped-def]
    """Return the sum of the marks of the supernodes of every ideal, shape (I,)."""
    total = np.zeros(len(parent), np.uint64)
    for ideal in range(1, len(parent)):
        total[ideal] = total[parent[ideal]] + mark[added[ideal]]
    return total
