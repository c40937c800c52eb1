"""The compiled fills of the tables of stages with a choice among alternatives.

With the labels ``copies``, by ideal and number of devices, a limit on loads is decided; with ``total`` the
least sum of loads within one is found:

    copies[J, p + degree * r] = min over I of copies[I, p] + r    of the stages J - I with a load of <= limit
    total[J, p + degree * r]  = min over I of total[I, p] + load of the stage J - I on r copies
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.dp._alternatives_stages_core import StageMembers, WayRule, stage_load
from partitioner.methods.dp.lattice import mark
from partitioner.problem.arrays import Floats, Ints

FAR = np.int32(2**31 - 1)  # more copies than there are
ROUNDING = 1e-6  # of sums of work, in devices


class LoadLimit(NamedTuple):
    """The stages that a table of largest loads may have.

    Parameters
    ----------
    load
        The largest load of a stage.
    copies
        How many copies all stages may have.
    work
        Shape (ideals,): the least time of all devices together for the supernodes outside of each ideal.
    greedy
        Whether ways are chosen by Piper's rule.
    """

    load: float
    copies: int
    work: Floats
    greedy: bool


class LabelTable(NamedTuple):
    """What is known of the stages that hold an ideal on a number of devices.

    Parameters
    ----------
    least
        Shape (ideals, devices + 1): the least number of copies; or (ideals, devices + 1, copies): the least
        sum of loads by the number of copies, which with a single one are not told apart.
    before, by
        Of the same shape: the ideal from which it is reached, and the shape of the stage between.
    """

    least: Any
    before: Any
    by: Any


class KnownAnswers(NamedTuple):
    """What is known of stages whatever the limit that is decided now.

    Parameters
    ----------
    good, bad
        Shape (stages, D): for how many samples in flight a stage is known to have ways within the limit, and
        for how many it is known to have none.
    """

    good: Any
    bad: Any


class KnownLoads(NamedTuple):
    """The least loads that are known.

    Parameters
    ----------
    place
        Shape (D, copies behind): where the load of a stage of a shape is kept.
    load
        Shape (stages, places): NaN where it is not known.
    """

    place: Ints
    load: Floats


@njit(cache=True, inner=True)
def stage_members(ideal, lattice, below, inside):  # type: ignore[no-untyped-def]
    """Return the supernodes of an ideal that are not `below`, by descending rank; mark them in `inside`."""
    found, count = np.empty(len(lattice.rank), np.int64), 0
    while ideal > 0:
        v = lattice.added[ideal]
        if not below[v]:
            found[count] = v
            inside[v] = True
            count += 1
        ideal = lattice.parent[ideal]
    return found[:count]


@njit(cache=True, nogil=True)
def spread(lattice, pairs, terms, limit, first_ideal, end_ideal, table, known):  # type: ignore[no-untyped-def]
    """Extend the labels of some ideals by all stages with a load of at most that of `limit`.

    Parameters
    ----------
    lattice, pairs, terms
        The ideals, the stages between them, and the model of stages, see
        :mod:`partitioner.methods.dp.alternatives_stages`.
    limit
        What stages must keep to, a :class:`LoadLimit`.
    first_ideal, end_ideal
        The ideals whose labels are extended; those of smaller ideals are complete.
    table, known
        The least numbers of copies, and the answers that are known; both are written.
    """
    shapes, copies, good, bad = terms.shapes, table.least, known.good, known.bad
    n, devices = len(lattice.rank), copies.shape[1] - 1
    used, held = np.empty(devices + 1, np.int64), np.empty(devices + 1, np.int64)
    inside, below = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    fixed = np.full(len(terms.choices.start) - 1, -1)
    rule = WayRule(limit.greedy, fixed, fixed.copy())
    for ideal in range(first_ideal, end_ideal):
        # the labels that no other one of the ideal dominates: fewer copies on more devices
        labels, least = 0, FAR
        for p in range(devices + 1):
            if copies[ideal, p] < least:
                least = copies[ideal, p]
                used[labels], held[labels] = p, least
                labels += 1
        if not labels:
            continue
        mark(ideal, True, lattice.parent, lattice.added, below)
        for pair in range(pairs.start[ideal], pairs.start[ideal + 1]):
            target, ready = pairs.to[pair], False
            members = held[:0]
            needed = limit.work[target] / limit.load
            for first in range(len(shapes.copies)):
                degree = shapes.degree[first]
                if first and degree == shapes.degree[first - 1]:
                    continue
                able = first  # the shape of the fewest copies whose load can be within the limit
                while able < len(shapes.copies) and pairs.least[pair, able] > limit.load:
                    able += 1
                for k in range(labels):
                    for d in range(able, len(shapes.copies)):
                        p, total = used[k] + degree * shapes.copies[d], held[k] + shapes.copies[d]
                        if shapes.degree[d] != degree or p + needed > devices + ROUNDING:
                            break
                        if total > limit.copies or copies[target, p] <= total:
                            break
                        y = shapes.in_flight[d, held[k]]
                        if pairs.least[pair, d] > limit.load or y >= bad[pair, d]:
                            continue
                        # the ways of the stage are chosen only if its answer is not known for `y` samples
                        if y > good[pair, d]:
                            if not ready:
                                members = stage_members(target, lattice, below, inside)
                                ready = True
                            stage = StageMembers(members, inside, pairs.cut[pair])
                            if stage_load(terms, stage, d, y, limit.load, rule) > limit.load:
                                bad[pair, d] = y
                                continue
                            good[pair, d] = y
                        copies[target, p], table.before[target, p], table.by[target, p] = total, ideal, d
                        break  # more copies would take more devices, too
            if ready:
                inside[:] = False
        mark(ideal, False, lattice.parent, lattice.added, below)


@njit(cache=True, nogil=True)
def lay(lattice, pairs, terms, threshold, first_ideal, end_ideal, table, known):  # type: ignore[no-untyped-def]
    """Extend the states of some ideals by all stages with a load of at most `threshold`.

    Parameters
    ----------
    lattice, pairs, terms, first_ideal, end_ideal
        As for :func:`spread`.
    threshold
        Of every load.
    table, known
        The least sums of loads, and the loads that are known; both are written.
    """
    shapes, total, before, by = terms.shapes, table.least, table.before, table.by
    n, devices, behind = len(lattice.rank), total.shape[1] - 1, total.shape[2]
    inside, below = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    fixed = np.full(len(terms.choices.start) - 1, -1)
    rule = WayRule(False, fixed, fixed.copy())
    none = np.empty(0, np.int64)
    for ideal in range(first_ideal, end_ideal):
        mark(ideal, True, lattice.parent, lattice.added, below)
        for pair in range(pairs.start[ideal], pairs.start[ideal + 1]):
            target, members = pairs.to[pair], none
            for d in range(len(shapes.copies)):
                if pairs.least[pair, d] > threshold:
                    continue
                taken = shapes.degree[d] * shapes.copies[d]
                step = shapes.copies[d] if behind > 1 else 0
                for c in range(behind - step):
                    reached = False
                    for p in range(devices - taken + 1):
                        if total[ideal, p, c] < np.inf:
                            reached = True
                            break
                    if not reached:
                        continue
                    # a load is computed when a state first needs it
                    load = known.load[pair, known.place[d, c]]
                    if np.isnan(load):
                        if not len(members):
                            members = stage_members(target, lattice, below, inside)
                        stage = StageMembers(members, inside, pairs.cut[pair])
                        load = stage_load(terms, stage, d, shapes.in_flight[d, c], np.inf, rule)
                        known.load[pair, known.place[d, c]] = load
                    if load > threshold:
                        break  # with more copies behind a copy holds no fewer samples
                    for p in range(devices - taken + 1):
                        sum_of_loads = total[ideal, p, c] + load
                        if sum_of_loads < total[target, p + taken, c + step]:
                            total[target, p + taken, c + step] = sum_of_loads
                            before[target, p + taken, c + step] = ideal
                            by[target, p + taken, c + step] = d
            if len(members):
                inside[:] = False
        mark(ideal, False, lattice.parent, lattice.added, below)
