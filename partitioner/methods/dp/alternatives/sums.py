"""The least sum of the loads of stages of which none exceeds a threshold, by devices and copies used.

Stages are laid from the last to the first. A state of an ideal is a number of devices and, where memory
depends on it, the number of copies of the stages behind.
"""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.dp.alternatives.decision import mark_members, stage_members
from partitioner.methods.dp.alternatives.stage_load import stage_load


@njit(cache=True, nogil=True)
def lay(  # type: ignore[no-untyped-def]
    lattice, pairs, choices, shapes, memory, threshold, place, first_ideal, end_ideal,
    total, before, by, loads,
):  # fmt: skip
    """Extend the states of some ideals by all stages with a load of at most `threshold`.

    Parameters
    ----------
    lattice, pairs, choices, shapes, memory
        The model, see :mod:`partitioner.methods.dp.alternatives.model`.
    threshold
        Of every load.
    place
        Shape (D, copies behind): where the load of a stage of a shape is kept.
    first_ideal, end_ideal
        The ideals whose states are extended; those of smaller ideals are complete.
    total, before, by
        Shape (ideals, devices + 1, copies): the least sum of loads of a state, the ideal from which it is
        reached, and the shape of the stage between. With one number of copies these are not told apart.
    loads
        Shape (stages, places): the least loads that are known; NaN for others.
    """
    n, devices, behind = len(lattice.rank), total.shape[1] - 1, total.shape[2]
    inside, below = np.zeros((2, n), np.bool_)
    fixed = np.full(len(choices.start) - 1, -1)
    way = fixed.copy()
    none = np.empty(0, np.int64)
    for ideal in range(first_ideal, end_ideal):
        mark_members(ideal, lattice, below, True)
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
                    load = loads[pair, place[d, c]]
                    if np.isnan(load):
                        if not len(members):
                            members = stage_members(target, lattice, below, inside)
                        load = stage_load(
                            members, inside, d, shapes.in_flight[d, c], pairs.cut[pair], np.inf, choices,
                            shapes, memory, False, fixed, way,
                        )  # fmt: skip
                        loads[pair, place[d, c]] = load
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
        mark_members(ideal, lattice, below, False)
