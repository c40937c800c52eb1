"""The transfers of a growing stage in each pass, compiled."""

from __future__ import annotations

from partitioner.base.compiled import njit

INTO, LEAVING, STAYING = 0, 2, 4  # each for the forward pass; the backward pass is the next number
AMOUNTS = 6


@njit(cache=True)
def add_nets(  # type: ignore[no-untyped-def]
    net_start, net_of, read, pins, cost, source, made, before, inside, early, holds, v, transfer, depth
):
    """Add `v` to the nets of the stage, and write the transfers of the stage at `depth` + 1.

    A tensor leaves in the pass in which it is made. It arrives in the forward pass if the stage holds an
    `early` reader, one that reads it forward. `STAYING` is the cost of what every larger stage with the same
    start transfers in that pass, too.
    """
    above = depth + 1
    for amount in range(AMOUNTS):
        transfer[above, amount] = transfer[depth, amount]
    for i in range(net_start[v], net_start[v + 1]):
        net, fresh = net_of[i], inside[net_of[i]] == 0
        due, old = made[net], 0 if early[net] > 0 else 1
        inside[net] += 1
        if source[net] == v:
            holds[net] = True
            transfer[above, LEAVING + due] += cost[net]
            if not fresh:
                transfer[above, INTO + old] -= cost[net]
            if before[net] > 0 and (fresh or old != due):
                transfer[above, STAYING + due] += cost[net]
        else:
            early[net] += 1 - read[i]
            if not holds[net] and (fresh or (read[i] == 0 and old == 1)):
                transfer[above, INTO + read[i]] += cost[net]
                if not fresh:
                    transfer[above, INTO + 1] -= cost[net]
                if before[net] > 0 and read[i] == due:
                    transfer[above, STAYING + due] += cost[net]
        if inside[net] == pins[net]:
            transfer[above, LEAVING + due] -= cost[net]


@njit(cache=True)
def remove_nets(net_start, net_of, read, source, inside, early, holds, v):  # type: ignore[no-untyped-def]
    """Remove `v` from the nets of the stage."""
    for i in range(net_start[v], net_start[v + 1]):
        net = net_of[i]
        inside[net] -= 1
        if source[net] == v:
            holds[net] = False
        else:
            early[net] -= 1 - read[i]
