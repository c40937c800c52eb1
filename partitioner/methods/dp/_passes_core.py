"""The compiled sums of the transfers of a stage in each of two passes.

A tensor leaves a stage in the pass in which it is made. It arrives in the forward pass if the stage holds an
*early* reader, one that reads it forward, else in the backward pass. Pass 0 is the forward pass, 1 the
backward pass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.problem.arrays import Bools, Floats, Ints

INTO, LEAVING, STAYING = 0, 2, 4  # columns of `moved`; those of the backward pass are the next ones
AMOUNTS = 6


class PassNets(NamedTuple):
    """The tensors of the current stage of a walk; at depth d it has d supernodes.

    Parameters
    ----------
    inside, early, before
        Shape (E,): the pins of each net in the stage, its early readers there, and its pins in the ideal at
        which the stage begins.
    holds
        Shape (E,): whether the stage makes the tensor.
    moved
        Shape (n + 2, 6): by depth, the costs of what comes in, what goes out, and what every larger stage
        with the same start transfers too, in each pass.
    """

    inside: Ints
    early: Ints
    before: Ints
    holds: Bools
    moved: Floats


def new_nets(nodes: int, nets: int) -> PassNets:
    """Return the tensors of an empty stage."""
    inside, early, before = (np.zeros(nets, np.int64) for _ in range(3))
    return PassNets(inside, early, before, np.zeros(nets, np.bool_), np.zeros((nodes + 2, AMOUNTS)))


@njit(cache=True, inline="always")
def add_pass_nets(costs, nets, v, depth):  # type: ignore[no-untyped-def]
    """Add `v` to the nets of the stage, and write the transfers of the stage at `depth` + 1."""
    net_of, read, pins, cost, source = costs.net, costs.read, costs.pins, costs.enter, costs.source
    inside, early, holds, moved, above = nets.inside, nets.early, nets.holds, nets.moved, depth + 1
    for amount in range(AMOUNTS):
        moved[above, amount] = moved[depth, amount]
    for i in range(costs.net_start[v], costs.net_start[v + 1]):
        net, fresh = net_of[i], inside[net_of[i]] == 0
        due, old = costs.made[net], 0 if early[net] > 0 else 1
        inside[net] += 1
        if source[net] == v:
            holds[net] = True
            moved[above, LEAVING + due] += cost[net]
            if not fresh:
                moved[above, INTO + old] -= cost[net]
            if nets.before[net] > 0 and (fresh or old != due):
                moved[above, STAYING + due] += cost[net]
        else:
            early[net] += 1 - read[i]
            if not holds[net] and (fresh or (read[i] == 0 and old == 1)):
                moved[above, INTO + read[i]] += cost[net]
                if not fresh:
                    moved[above, INTO + 1] -= cost[net]
                if nets.before[net] > 0 and read[i] == due:
                    moved[above, STAYING + due] += cost[net]
        if inside[net] == pins[net]:
            moved[above, LEAVING + due] -= cost[net]


@njit(cache=True, inline="always")
def remove_pass_nets(costs, nets, v):  # type: ignore[no-untyped-def]
    """Remove `v` from the nets of the stage."""
    for i in range(costs.net_start[v], costs.net_start[v + 1]):
        net = costs.net[i]
        nets.inside[net] -= 1
        if costs.source[net] == v:
            nets.holds[net] = False
        else:
            nets.early[net] -= 1 - costs.read[i]
