"""The transfers of a growing stage in each pass, compiled."""

from __future__ import annotations

from partitioner.base.compiled import njit

INTO, LEAVING, STAYING = range(3)


@njit(cache=True, inline="always")
def count_net(net, sign, pins, cost, made, before, inside, early, holds, transfer):  # type: ignore[no-untyped-def]
    """Add `sign` times what the stage transfers for a net to `transfer`, shape (2, 3).

    A tensor leaves in the pass in which it is made. It arrives in the forward pass if the stage holds an
    `early` reader, one that reads it forward. `STAYING` is what every larger stage with the same start
    transfers in that pass, too.
    """
    if inside[net] == 0 or inside[net] == pins[net]:
        return
    amount = sign * cost[net]
    if holds[net]:
        way, pass_ = LEAVING, made[net]
    else:
        way, pass_ = INTO, 0 if early[net] > 0 else 1
    transfer[pass_, way] += amount
    if before[net] > 0 and pass_ == made[net]:
        transfer[pass_, STAYING] += amount


@njit(cache=True, inline="always")
def add_nets(  # type: ignore[no-untyped-def]
    net_start, net_of, read, pins, cost, source, made, before, inside, early, holds, v, transfer, depth
):
    """Add `v` to the nets of the stage, and write the transfers of the stage at `depth` + 1."""
    for w in range(2):
        for way in range(3):
            transfer[depth + 1, w, way] = transfer[depth, w, way]
    for i in range(net_start[v], net_start[v + 1]):
        net = net_of[i]
        count_net(net, -1.0, pins, cost, made, before, inside, early, holds, transfer[depth + 1])
        inside[net] += 1
        if source[net] == v:
            holds[net] = True
        elif read[i] == 0:
            early[net] += 1
        count_net(net, 1.0, pins, cost, made, before, inside, early, holds, transfer[depth + 1])


@njit(cache=True, inline="always")
def remove_nets(net_start, net_of, read, source, inside, early, holds, v):  # type: ignore[no-untyped-def]
    """Remove `v` from the nets of the stage."""
    for i in range(net_start[v], net_start[v + 1]):
        net = net_of[i]
        inside[net] -= 1
        if source[net] == v:
            holds[net] = False
        elif read[i] == 0:
            early[net] -= 1
