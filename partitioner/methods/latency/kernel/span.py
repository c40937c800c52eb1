"""The longest path over units that wait for one another, compiled."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import joint_load
from partitioner.methods.latency.kernel.arrays import BUSY, INTO, OUT


@njit(cache=True, inline="always")
def length_of(ledger, u, communication):
    """Return how long a unit of an accelerator runs: its processing and its transfers."""
    return joint_load(ledger[u, BUSY], ledger[u, INTO], ledger[u, OUT], communication)


@njit(cache=True, inline="always")
def span(
    place, unit, ledger, head, following, outer, time, home, after_start, after, communication, missing,
    ready, behind, stack,
):  # fmt: skip
    """Return the last finish and the sum of all lengths; infinity for both if units wait in a cycle.

    A unit waits for those that make what it reads, and for the previous one on its device (paper,
    Appendix A). Afterwards `ready` holds the start of every unit.
    """
    n, units = len(place), len(ledger)
    top, last, done, latest, total = 0, -1, 0, 0.0, 0.0
    for u in range(units):
        if head[u] >= 0:
            missing[u], ready[u], behind[u] = outer[u], 0.0, -1
            if last >= 0 and home[last] == home[u]:
                missing[u] += 1
                behind[last] = u
            last = u
            if missing[u] == 0:
                stack[top] = u
                top += 1
    for v in range(n):
        u = unit[v]
        if u >= units:
            missing[u], ready[u], behind[u] = outer[u], 0.0, -1
            if missing[u] == 0:
                stack[top] = u
                top += 1
    while top > 0:
        top -= 1
        u = stack[top]
        length = length_of(ledger, u, communication) if u < units else time[u - units, place[u - units]]
        finish = ready[u] + length
        latest, total = max(latest, finish), total + length
        v = head[u]
        while v >= 0:
            done += 1
            for i in range(after_start[v], after_start[v + 1]):
                w = unit[after[i]]
                if w != u:
                    ready[w] = max(ready[w], finish)
                    missing[w] -= 1
                    if missing[w] == 0:
                        stack[top] = w
                        top += 1
            v = following[v]
        w = behind[u]
        if w >= 0:
            ready[w] = max(ready[w], finish)
            missing[w] -= 1
            if missing[w] == 0:
                stack[top] = w
                top += 1
    if done < n:
        return np.inf, np.inf
    return latest, total


@njit(cache=True, nogil=True)
def timed(model, state, scratch):
    """Return the last finish and the sum of all lengths of a state."""
    return span(
        state.place, state.unit, state.ledger, state.head, state.following, state.outer, model.time,
        model.home, model.after_start, model.after, model.communication, scratch.missing, scratch.ready,
        scratch.behind, scratch.stack,
    )  # fmt: skip
