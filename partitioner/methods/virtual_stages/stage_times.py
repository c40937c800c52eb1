"""The times of the passes of all stages, from the supernodes of each stage."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit


@njit(cache=True, nogil=True)
def stage_transfers(stage, rank, pin_start, pins, cost, source, made, read, into, out):
    """Add to `into` and `out`, shape (stages, 2), the transfers of the forward and backward passes.

    A device sends a tensor once, and fetches it once, in the first of its passes that reads it.

    Parameters
    ----------
    stage, rank
        Shape (supernodes,): the stage of each, and shape (stages,): the number of its device.
    pin_start, pins, cost, source, made, read
        The nets, see :class:`partitioner.problem.problem.Nets`.
    """
    stages, devices = len(rank), rank.max() + 1
    first = np.full(devices, 2 * stages, np.int64)
    for e in range(len(cost)):
        home = rank[stage[source[e]]]
        cut = False
        for i in range(pin_start[e], pin_start[e + 1]):
            s = stage[pins[i]]
            d = rank[s]
            if d != home:
                cut = True
                first[d] = min(first[d], s if read[i] == 0 else 2 * stages - 1 - s)
        if not cut:
            continue
        out[stage[source[e]], made[e]] += cost[e]
        for d in range(devices):
            if first[d] < stages:
                into[first[d], 0] += cost[e]
            elif first[d] < 2 * stages:
                into[2 * stages - 1 - first[d], 1] += cost[e]
            first[d] = 2 * stages


@njit(cache=True, nogil=True)
def cut_transfers(nested, held, readers, sent, pins, cost, made, found):
    """Add to `found`, shape (2, m, m), the transfers in and out of both passes of the stages between cuts.

    Parameters
    ----------
    nested
        Shape (m, m): whether there is a stage between two cuts.
    held, readers, sent
        Shape (m, nets): how many pins of a net are before each cut, how many of these read it in the forward
        pass, and whether its source is among them.
    pins, cost, made
        Shape (nets,): how many pins a net has, its cost, and the pass in which it is produced.
    """
    m = len(nested)
    for a in range(m):
        for b in range(m):
            if not nested[a, b]:
                continue
            for e in range(len(cost)):
                inside = held[b, e] - held[a, e]
                if inside == 0 or inside == pins[e]:
                    continue
                if sent[b, e] - sent[a, e] > 0:
                    found[made[e], a, b] += cost[e]
                elif readers[b, e] - readers[a, e] > 0:
                    found[0, a, b] += cost[e]
                else:
                    found[1, a, b] += cost[e]
