"""Whether there are stages whose loads are at most a limit: labels over ideals, devices and copies.

Stages are laid from the last to the first. A label of an ideal is a number of devices with the least number
of copies that its stages can have: fewer of either are never worse, since the samples that a copy holds rise
with the copies behind it (Piper's program: ``algo.cpp``). So of the numbers of copies that a stage may have
behind a label, only the least one that keeps to the limit counts.
"""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.dp.alternatives.stage_load import stage_load

FAR = np.int32(2**31 - 1)  # more copies than there are
ROUNDING = 1e-6  # of sums of work, in devices


@njit(cache=True, nogil=True)
def spread(  # type: ignore[no-untyped-def]
    lattice, pairs, choices, shapes, memory, greedy, limit, most_copies, work, first_ideal, end_ideal,
    copies, before, by, good, bad,
):  # fmt: skip
    """Extend the labels of some ideals by all stages with a load of at most `limit`.

    Parameters
    ----------
    lattice, pairs, choices, shapes, memory, greedy
        The model, see :mod:`partitioner.methods.dp.alternatives.model`, and the rule for ways.
    limit
        Of every load.
    most_copies
        How many copies all stages may have.
    work
        Shape (ideals,): the least time of all devices together for the supernodes outside of each ideal.
    first_ideal, end_ideal
        The ideals whose labels are extended; those of smaller ideals are complete.
    copies, before, by
        Shape (ideals, devices + 1): the least number of copies for a number of devices, the ideal from which
        it is reached, and the shape of the stage between.
    good, bad
        Shape (stages, D): for how many samples in flight a stage is known to have ways within the limit, and
        for how many it is known to have none.
    """
    n, devices = len(lattice.rank), copies.shape[1] - 1
    used, held = np.empty(devices + 1, np.int64), np.empty(devices + 1, np.int64)
    inside, below = np.zeros((2, n), np.bool_)
    fixed = np.full(len(choices.start) - 1, -1)
    way = fixed.copy()
    for ideal in range(first_ideal, end_ideal):
        labels, least = 0, FAR
        for p in range(devices + 1):
            if copies[ideal, p] < least:
                least = copies[ideal, p]
                used[labels], held[labels] = p, least
                labels += 1
        if not labels:
            continue
        mark_members(ideal, lattice, below, True)
        for pair in range(pairs.start[ideal], pairs.start[ideal + 1]):
            target, ready = pairs.to[pair], False
            members = held[:0]
            needed = work[target] / limit
            for first in range(len(shapes.copies)):
                degree = shapes.degree[first]
                if first and degree == shapes.degree[first - 1]:
                    continue
                able = first  # the shape of the fewest copies whose load can be within the limit
                while able < len(shapes.copies) and pairs.least[pair, able] > limit:
                    able += 1
                for k in range(labels):
                    for d in range(able, len(shapes.copies)):
                        p, total = used[k] + degree * shapes.copies[d], held[k] + shapes.copies[d]
                        if shapes.degree[d] != degree or p + needed > devices + ROUNDING:
                            break
                        if total > most_copies or copies[target, p] <= total:
                            break
                        y = shapes.in_flight[d, held[k]]
                        if pairs.least[pair, d] > limit or y >= bad[pair, d]:
                            continue
                        if y > good[pair, d]:
                            if not ready:
                                members = stage_members(target, lattice, below, inside)
                                ready = True
                            load = stage_load(
                                members, inside, d, y, pairs.cut[pair], limit, choices, shapes, memory,
                                greedy, fixed, way,
                            )  # fmt: skip
                            if load > limit:
                                bad[pair, d] = y
                                continue
                            good[pair, d] = y
                        copies[target, p], before[target, p], by[target, p] = total, ideal, d
                        break  # more copies would take more devices, too
            if ready:
                inside[:] = False
        mark_members(ideal, lattice, below, False)


@njit(cache=True)
def mark_members(ideal, lattice, flags, value):  # type: ignore[no-untyped-def]
    """Set the flags of the supernodes of an ideal to a value."""
    while ideal > 0:
        flags[lattice.added[ideal]] = value
        ideal = lattice.parent[ideal]


@njit(cache=True)
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
