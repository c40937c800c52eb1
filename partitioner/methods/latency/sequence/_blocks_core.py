"""The walk over the blocks of a sequence, compiled: all blocks that start at one ideal, depth first.

The block grows by one supernode for each step down the lattice, and loses it on the way back. Its costs at
every depth stay in arrays, so that nothing of them is computed twice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit
from partitioner.methods.dp.lattice import Lattice, first_later_cover
from partitioner.methods.latency.sequence.chains import BlockCosts
from partitioner.problem.arrays import Floats, Ints


class BlockWalk(NamedTuple):
    """The block that a walk has come to, and the costs of the blocks on the way to it, by their supernodes.

    Parameters
    ----------
    cursor, end
        Shape (n + 2,): the next edge of the lattice to follow from each depth, and the end of its edges.
    size, compute, transfer
        Shapes (n + 2,), (n + 2, K, 2) and (n + 2, 4): memory; processing by kind and pass; transfers in and
        out of the forward pass, then of the backward pass.
    present
        Shape (N,): whether a node is in the block.
    inside, holds
        Shapes (E, 2) and (E,): how many halves of a net are in the block, by pass; and 1 plus the pass of the
        half that makes the tensor if the block holds that half, else 0.
    """

    cursor: Ints
    end: Ints
    size: Floats
    compute: Floats
    transfer: Floats
    present: NDArray[np.bool_]
    inside: Ints
    holds: Ints


@njit(cache=True, inner=True)
def new_walk(costs: BlockCosts) -> BlockWalk:
    """Return a walk with no supernode in its block."""
    depths, kinds, nets = len(costs.size) + 2, len(costs.memory), len(costs.pins)
    return BlockWalk(
        np.empty(depths, np.int64),
        np.empty(depths, np.int64),
        np.zeros(depths),
        np.zeros((depths, kinds, 2)),
        np.zeros((depths, 4)),
        np.zeros(len(costs.backward), np.bool_),
        np.zeros((nets, 2), np.int64),
        np.zeros(nets, np.int64),
    )


@njit(cache=True, inner=True)
def next_block(lattice: Lattice, costs: BlockCosts, walk: BlockWalk, depth: int) -> int:
    """Add the next supernode to a block of `depth`; return how many it follows, -1 if no block is left."""
    node, cursor, end = lattice.node, walk.cursor, walk.end
    while depth >= 0 and cursor[depth] == end[depth]:
        depth -= 1
        if depth >= 0:
            leave(costs, walk, node[cursor[depth] - 1])
    if depth >= 0:
        _enter(costs, walk, node[cursor[depth]], depth)
        cursor[depth] += 1
    return depth


@njit(cache=True, inline="always")
def deepen(lattice: Lattice, walk: BlockWalk, depth: int) -> int:
    """Let the supernode that was added to a block of `depth` stay; return the depth of the block with it."""
    start, node, cursor = lattice.start, lattice.node, walk.cursor
    e = cursor[depth] - 1
    ideal = lattice.to[e]
    walk.end[depth + 1] = start[ideal + 1]
    cursor[depth + 1] = first_later_cover(start, node, lattice.rank, ideal, node[e])
    return depth + 1


@njit(cache=True, inline="always")
def _enter(costs: BlockCosts, walk: BlockWalk, v: int, depth: int) -> None:
    """Add supernode `v` to the block of `depth`, and write the costs to the next depth."""
    net_start, nets, passes, makes = costs.net_start, costs.net, costs.backward_pin, costs.makes
    inside, holds, pins, cost = walk.inside, walk.holds, costs.pins, costs.cost
    here, there = walk.transfer[depth], walk.transfer[depth + 1]
    into0, out0, into1, out1 = here[0], here[1], here[2], here[3]
    for i in range(net_start[v], net_start[v + 1]):
        net, p = nets[i], passes[i]
        price = cost[net]
        inside[net, p] += 1
        if makes[i]:
            holds[net] = 1 + p
            into = price if inside[net, p] > 1 else 0.0
            out = price if inside[net, p] < pins[net] else 0.0
            if p == 0:
                into0 -= into
                out0 += out
            else:
                into1 -= into
                out1 += out
        elif holds[net] == 1 + p:
            if inside[net, p] == pins[net]:
                if p == 0:
                    out0 -= price
                else:
                    out1 -= price
        elif inside[net, p] == 1:
            if p == 0:
                into0 += price
            else:
                into1 += price
    there[0], there[1], there[2], there[3] = into0, out0, into1, out1
    walk.size[depth + 1] = walk.size[depth] + costs.size[v]
    work, compute = costs.work, walk.compute
    for k in range(len(work)):
        for w in range(2):
            compute[depth + 1, k, w] = compute[depth, k, w] + work[k, w, v]
    node_start, node, present = costs.node_start, costs.node, walk.present
    for i in range(node_start[v], node_start[v + 1]):
        present[node[i]] = True


@njit(cache=True, inline="always")
def leave(costs: BlockCosts, walk: BlockWalk, v: int) -> None:
    """Remove supernode `v` from the block."""
    net_start, net, passes, makes = costs.net_start, costs.net, costs.backward_pin, costs.makes
    node_start, node, present, inside, holds = (
        costs.node_start, costs.node, walk.present, walk.inside, walk.holds,
    )  # fmt: skip
    for i in range(net_start[v], net_start[v + 1]):
        inside[net[i], passes[i]] -= 1
        if makes[i]:
            holds[net[i]] = 0
    for i in range(node_start[v], node_start[v + 1]):
        present[node[i]] = False
