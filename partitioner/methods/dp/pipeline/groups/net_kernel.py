"""Transfers of a growing stage whose other ends are in a neighbouring stage for sure, compiled."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import joint_load

IN_BEFORE, OUT_BEFORE = range(2)
SUMS = 2
NOWHERE = -1


@njit(cache=True, inline="always")
def add_sure(net_start, net_of, pins, source, enter, leave, inside, near, below, upper, v, sure, depth):  # type: ignore[no-untyped-def]
    """Add the transfers of `v` from and to the stage before, and write their costs at `depth` + 1.

    `inside` already counts `v`. `below` is a supernode that the stage before holds, and `near` marks its
    nets. If values are upper bounds, a tensor that leaves counts only if there is no other reader.
    """
    into, out = sure[depth, IN_BEFORE], sure[depth, OUT_BEFORE]
    for i in range(net_start[v], net_start[v + 1]):
        net = net_of[i]
        if near[net]:
            if inside[net] == 1 and source[net] == below:
                into += enter[net]
            if source[net] == v and (not upper or pins[net] == 2):
                out += leave[net]
    sure[depth + 1, IN_BEFORE], sure[depth + 1, OUT_BEFORE] = into, out


@njit(cache=True, inline="always")
def sure_after(net_start, net_of, pins, source, enter, leave, inside, held, near, above, upper):  # type: ignore[no-untyped-def]
    """Return the costs of transfers from and to the next stage, which holds the supernode `above`.

    `held` says which supernodes the stage holds. What :func:`add_sure` counts is left out.
    """
    into, out = 0.0, 0.0
    if above == NOWHERE:
        return into, out
    for i in range(net_start[above], net_start[above + 1]):
        net = net_of[i]
        if inside[net] == 0:
            continue
        if source[net] == above:
            into += enter[net]
        elif held[source[net]] and not near[net] and (not upper or pins[net] == 2):
            out += leave[net]
    return into, out


@njit(cache=True, inline="always")
def linked_load(busy, into, out, before, after, link_before, link_after, unknown, factor, communication):  # type: ignore[no-untyped-def]
    """Return the load of a stage.

    `into` and `out` are the costs of all its transfers, `before` and `after` those from and to the stages
    next to it, (into, out) each, whose links have the factors `link_before` and `link_after`.
    """
    if factor == 0.0:
        return busy
    rest = max(0.0, into - before[0] - after[0])
    arriving = before[0] * link_before + after[0] * link_after + rest * unknown
    rest = max(0.0, out - before[1] - after[1])
    leaving = before[1] * link_before + after[1] * link_after + rest * unknown
    return joint_load(busy, factor * arriving, factor * leaving, communication)


@njit(cache=True)
def mark_nets(net_start, net_of, near, v, value):  # type: ignore[no-untyped-def]
    """Set `near` to a value for the nets of a supernode, if there is one."""
    if v != NOWHERE:
        for i in range(net_start[v], net_start[v + 1]):
            near[net_of[i]] = value


@njit(cache=True)
def only_neighbours(start, node, to, size):  # type: ignore[no-untyped-def]
    """Return the only supernode below and the only one above every ideal, -1 if there are several or none."""
    count, one_below = np.zeros(size, np.int64), np.full(size, NOWHERE, np.int64)
    one_above = np.full(size, NOWHERE, np.int64)
    for ideal in range(size):
        if start[ideal + 1] - start[ideal] == 1:
            one_above[ideal] = node[start[ideal]]
        for e in range(start[ideal], start[ideal + 1]):
            count[to[e]] += 1
            one_below[to[e]] = node[e] if count[to[e]] == 1 else NOWHERE
    return one_below, one_above
