"""The load of a stage of a shape whose ways are chosen within the memory of a device."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.dp.alternatives.knapsack import least_sum
from partitioner.methods.dp.alternatives.stage_pairs import way_surcharge


@njit(cache=True, nogil=True)
def stage_load(  # type: ignore[no-untyped-def]
    members, inside, d, in_flight, cut, cutoff, choices, shapes, memory, greedy, fixed, way
):
    """Return the load of a stage, infinity if it has no ways within the memory or exceeds `cutoff`.

    Parameters
    ----------
    members, inside
        The supernodes of the stage, ascending in the order that is not turned; shape (n,): whether each
        supernode is one of these.
    d, in_flight, cut
        The shape, the samples that a copy holds, and the cost of the tensors that the stage shares.
    cutoff
        The load that matters: a result of at most `cutoff` need not be the least one unless it is infinite.
    choices, shapes, memory
        The model, and the memory of a device.
    greedy
        Whether ways are chosen by Piper's rule.
    fixed
        Shape (C,): the way that a choice must have, -1 for any.
    way
        Shape (C,): gets the chosen ways of Piper's rule; nothing else is said of it.
    """
    count, rows = 0, 0
    for v in members:
        for c in range(choices.of_node[v], choices.of_node[v + 1]):
            count += 1
            rows += choices.start[c + 1] - choices.start[c]
    start, of = np.empty(count + 1, np.int64), np.empty(count, np.int64)
    value, held, source, chosen = (
        np.empty(rows),
        np.empty(rows),
        np.empty(rows, np.int64),
        np.empty(count, np.int64),
    )
    best, outside = np.inf, cut / shapes.copies[d]
    for cap in choices.caps:
        count, rows = 0, 0
        start[0] = 0
        for v in members:
            for c in range(choices.of_node[v], choices.of_node[v + 1]):
                of[count] = c
                for w in range(choices.start[c], choices.start[c + 1]):
                    allowed = fixed[c] < 0 or fixed[c] == w
                    if allowed and choices.degree[w] == shapes.degree[d] and choices.workspace[w] <= cap:
                        extra = way_surcharge(c, w, choices, inside)
                        value[rows] = choices.value[d, w] + extra / shapes.copies[d]
                        held[rows] = choices.each[w] * in_flight + choices.once[w]
                        source[rows] = w
                        rows += 1
                count += 1
                start[count] = rows
        found = outside + least_sum(count, start, value, held, memory - cap, cutoff - outside, greedy, chosen)
        if found < best:
            best = found
            for k in range(count):
                way[of[k]] = source[chosen[k]]
        if best <= cutoff < np.inf:
            break
    return best
