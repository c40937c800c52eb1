"""Compiled: what the blocks that begin at one ideal are made of, and the walk over them.

A block is the difference of two ideals; :func:`partitioner.methods.dp._walk_core.walk_of` walks over those of
one start. What a block is made of is kept by depth, so that a supernode is taken out again at no cost. The
two searches for sequences read each block with a tally of their own.
"""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit
from partitioner.methods.latency.sequence.chains import BlockCosts
from partitioner.problem.arrays import Floats, Ints

INTO, OUT, EACH = 0, 1, 2  # columns of `moved`: those of the forward pass, then those of the backward pass


class BlockSums(NamedTuple):
    """The current block of a walk; at depth d it has d supernodes.

    Parameters
    ----------
    size, compute, moved
        Shapes (n + 2,), (n + 2, K, 2) and (n + 2, 4): by depth its memory, its times by kind and pass, and
        its transfers in and out, first those of the forward pass.
    inside, holds
        Shapes (E, 2) and (E,): how many of a net's halves it holds by pass; 1 + the pass of the half that
        makes the tensor, if it holds that one.
    present
        Shape (N,): whether it holds the node.
    """

    size: Floats
    compute: Floats
    moved: Floats
    inside: Ints
    holds: Ints
    present: NDArray[np.bool_]


def empty_block(costs: BlockCosts) -> BlockSums:
    """Return a block without supernodes."""
    depths, nets = len(costs.size) + 2, len(costs.pins)
    return BlockSums(
        size=np.zeros(depths),
        compute=np.zeros((depths, len(costs.memory), 2)),
        moved=np.zeros((depths, 4)),
        inside=np.zeros((nets, 2), dtype=np.int64),
        holds=np.zeros(nets, dtype=np.int64),
        present=np.zeros(len(costs.backward), dtype=bool),
    )


@njit(cache=True, inline="always")
def add(costs, block, v, depth):
    """Add supernode `v` to the block of `depth` supernodes, except for the times of its nodes."""
    deeper, moved, inside, holds = depth + 1, block.moved, block.inside, block.holds
    for i in range(4):
        moved[deeper, i] = moved[depth, i]
    for i in range(costs.net_start[v], costs.net_start[v + 1]):
        net, p = costs.net[i], costs.backward_pin[i]
        price = costs.cost[net]
        inside[net, p] += 1
        if costs.makes[i]:
            holds[net] = 1 + p
            moved[deeper, EACH * p + INTO] -= price if inside[net, p] > 1 else 0.0
            moved[deeper, EACH * p + OUT] += price if inside[net, p] < costs.pins[net] else 0.0
        elif holds[net] == 1 + p:
            if inside[net, p] == costs.pins[net]:
                moved[deeper, EACH * p + OUT] -= price
        elif inside[net, p] == 1:
            moved[deeper, EACH * p + INTO] += price
    block.size[deeper] = block.size[depth] + costs.size[v]
    for i in range(costs.node_start[v], costs.node_start[v + 1]):
        block.present[costs.node[i]] = True


@njit(cache=True, inline="always")
def remove(costs, block, v):
    """Remove the supernode that was added last from the block."""
    for i in range(costs.net_start[v], costs.net_start[v + 1]):
        block.inside[costs.net[i], costs.backward_pin[i]] -= 1
        if costs.makes[i]:
            block.holds[costs.net[i]] = 0
    for i in range(costs.node_start[v], costs.node_start[v + 1]):
        block.present[costs.node[i]] = False


def leave(tally, v):
    remove(tally.costs, tally.block, v)


def reach(tally, start, ideal, depth, target):
    return 0  # a block is read when its last supernode is added, which says whether a larger one is wanted


def lost(tally, v):
    return 0.0
