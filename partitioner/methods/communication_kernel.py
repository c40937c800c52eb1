"""Compiled: loads under each model of communication (paper, Appendix H.1), and what ways of nodes pay more.

A model is given by its number.
"""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

from partitioner.base.compiled import njit
from partitioner.workload.devices import COMMUNICATION_MODELS

SEQUENTIAL = COMMUNICATION_MODELS.index("sequential")
OVERLAPPED = COMMUNICATION_MODELS.index("overlapped")


@njit(cache=True, inner=True, _nrt=False)
def joint_load(busy, into, out, communication):
    """Return the load of a device that processes, receives and sends for these times."""
    if communication == SEQUENTIAL:
        return busy + into + out
    if communication == OVERLAPPED:
        return max(busy, into + out)
    return max(busy, max(into, out))


@njit(cache=True, inner=True)
def way_surcharge(ways, c, w, inside):
    """Return the extra time of way `w` of choice `c` for tensors to and from supernodes that are not inside.

    It is that of all copies together. `ways` has the fields of
    :class:`partitioner.problem.ways.NodeWays` for them.
    """
    extra = 0.0
    for k in range(ways.link_start[c], ways.link_start[c + 1]):
        if not inside[ways.link[k]]:
            extra += ways.link_cost[k, w - ways.start[c]]
    return extra


@njit(cache=True, inner=True, _nrt=False)
def growing_load(busy, into, out, stay, transfer_factor, communication):
    """Return a stage's load, and a bound below the load of every larger stage with the same start.

    Processing only grows, and so does `stay`, the cost of the nets with a supernode before the stage and one
    inside it.
    """
    if transfer_factor == 0.0:
        return busy, busy
    into, out, stay = transfer_factor * into, transfer_factor * out, transfer_factor * stay
    if communication == SEQUENTIAL:
        return busy + into + out, busy + stay
    if communication == OVERLAPPED:
        return max(busy, into + out), max(busy, stay)
    return max(busy, max(into, out)), max(busy, 0.5 * stay)
