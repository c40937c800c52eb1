"""The compiled longest path through the passes of a batch."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit


@njit(cache=True, nogil=True)
def path_ends(stage, direction, before, sender, length, sent, fetched, end, via):
    """Return the last pass of the longest path; fill `end` and `via`.

    Parameters
    ----------
    stage, direction, before, sender
        See :class:`partitioner.methods.virtual_stages.pass_graph.PassGraph`.
    length
        Shape (stages, 3): how long the device is busy with each kind of pass.
    sent, fetched
        Shape (stages, 3): how long a pass on another device waits after it, and before it, in addition.
    end, via
        Shape (n,): when each pass ends, and the pass that it waits for last, or -1.
    """
    last = 0
    for k in range(len(stage)):
        i, j = before[k], sender[k]
        start = 0.0 if i < 0 else end[i]
        via[k] = i
        if j >= 0:
            arrival = end[j] + sent[stage[j], direction[j]] + fetched[stage[k], direction[k]]
            if arrival > start:
                start = arrival
                via[k] = j
        end[k] = start + length[stage[k], direction[k]]
        if end[k] > end[last]:
            last = k
    return last


@njit(cache=True, nogil=True)
def count_passes(stage, direction, via, last, stages):
    """Return how many passes of each stage and kind are on a path, shape (stages, 3)."""
    found = np.zeros((stages, 3))
    k = last
    while k >= 0:
        found[stage[k], direction[k]] += 1.0
        k = via[k]
    return found
