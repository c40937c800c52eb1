"""The compiled list of the stages whose load may keep to a threshold, by the groups of their neighbours."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import joint_load
from partitioner.methods.dp._crossing_core import joint_transfers
from partitioner.methods.dp._stages_core import (
    DEPTH,
    DONE,
    WEIGHTS,
    list_stages,
    new_walk,
    spread,
    takes,
)

LOADS_A_STEP = 8  # a step takes about as long as this number of loads


@njit(cache=True, nogil=True)
def list_within(lattice, model, demand, target, found, first, last, budget):
    """List the stages that begin at ideals `first`, `first` + 1, ... up to `last` - 1.

    Parameters
    ----------
    lattice, model, demand, target
        See :func:`partitioner.methods.dp._stages_core.list_stages`.
    found
        The list of stages, which is written; those of ideals before `first` are known.
    first, last
        The ideal to start with, and the one before which to end, the full one.
    budget
        Return after the ideal at which this many steps have been walked.

    Returns
    -------
    tuple
        The next ideal to start with, and whether there was no room for its stages.
    """
    ends, memory_model, layer_of = model.ends, model.memory, model.limits.layer
    kinds, groups = len(memory_model.memory), len(ends.link)
    walk, rows = new_walk(
        len(memory_model.size), kinds, len(model.costs.pins), layer_of.max() + 1 if len(layer_of) else 0, True
    )
    load = np.empty((groups, groups), np.float64)
    moved = np.empty((ends.real, groups, groups, 2), np.float64)  # in and out, by the group of the stage
    known = np.empty(ends.real, np.bool_)
    steps = 0
    for start in range(first, last):
        if steps > budget:
            return start, False
        count = found.first[start]
        more = True
        while more:
            listed, walked = list_stages(lattice, model, demand, start, target, walk, rows)
            more = walk.at[DEPTH] != DONE
            steps += walked
            for i in range(listed):
                known[:] = False
                goes = 1 if rows.to[i] == last else groups
                count, some = _add_stage(
                    model,
                    demand,
                    rows,
                    i,
                    1 if start == 0 else groups,
                    goes,
                    load,
                    moved,
                    known,
                    found,
                    count,
                )
                if count < 0:
                    return start, True
                steps += some
        found.first[start + 1] = count
    return last, False


@njit(cache=True, _nrt=False)
def _add_stage(model, demand, rows, i, froms, goes, load, moved, known, found, count):
    """Write listed stage `i` on every kind and number of devices; return the new count, and the steps taken.

    The count is -1 if there is no room.
    """
    costs, ends, memory_model = model.costs, model.ends, model.memory
    threshold, widest, communication = demand.threshold, demand.widest, costs.communication
    in_flight, versions, memory = memory_model.in_flight, memory_model.versions, memory_model.memory
    most_behind, sum_of, steps = len(in_flight) - 1, rows.sums[i], 0
    crossing = rows.crossing[rows.first[i] : rows.first[i + 1]]
    for k in range(len(memory)):
        if rows.load[i, k] == np.inf:
            continue
        here, factor = ends.group[k], costs.transfer_factor[k]
        if not known[here]:
            steps += froms * goes * len(crossing) // LOADS_A_STEP
            joint_transfers(crossing, ends, here, froms, goes, moved[here])
            known[here] = True
        for p in range(froms):
            for q in range(goes):
                load[p, q] = rows.busy[i, k]
                if factor > 0.0:
                    load[p, q] = joint_load(
                        rows.busy[i, k], factor * moved[here, p, q, 0], factor * moved[here, p, q, 1],
                        communication,
                    )  # fmt: skip
        for r in range(max(1, rows.pinned[i]), widest[k] + 1):
            behind = -1
            while behind < most_behind and takes(
                sum_of, in_flight[behind + 1, r], versions[behind + 1, r], memory[k], 0.0, 0.0, 0.0, 0.0
            ):
                behind = behind + 1 if memory_model.staged else most_behind
            if count == len(found.to):
                return -1, steps
            some = 0
            for p in range(froms):
                bits = 0
                for q in range(goes):
                    spread_load = spread(load[p, q], sum_of[WEIGHTS], r, costs.bandwidth[k], costs.added)
                    if spread_load <= threshold:
                        bits |= 1 << q
                found.mask[count, p] = bits
                some |= bits
            if some and behind >= 0:
                found.to[count], found.kind[count] = rows.to[i], k
                found.copies[count], found.behind[count] = r, behind
                found.group[count] = here + ends.real * (rows.length[i] <= ends.window)
                count += 1
    return count, steps
