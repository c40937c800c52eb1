"""Blocks of long linear orders, which are cut only where that is cheap, or near cuts of a known chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from partitioner.methods.method import Part, part_numbers
from partitioner.problem.arrays import Floats, Ints, rows_of
from partitioner.problem.precedence import relabelled
from partitioner.problem.problem import Nets, Problem
from partitioner.problem.variants import ChainProblem, PipelineProblem

MOST_BLOCKS = 3000
LATE_BLOCKS = 500  # if no time is left
Chain = TypeVar("Chain", bound=ChainProblem)


def blocks_of(problem: Problem, order: Ints, cuts: Sequence[int], late: bool = False) -> Ints | None:
    """Return a division of a linear order into at most about `MOST_BLOCKS` runs of supernodes.

    Parameters
    ----------
    problem, order
        The supernodes and their order.
    cuts
        Places at which a known chain is cut; half of the blocks are single supernodes near these.
    late
        True for at most about `LATE_BLOCKS` instead.

    Returns
    -------
    Ints or None
        Shape (n,): the number of each supernode's block; None if the order is short enough without blocks.
    """
    n, most = problem.n, LATE_BLOCKS if late else MOST_BLOCKS
    if n <= most:
        return None
    half = most // 2
    opened = _open_cost(problem, order)
    window = np.arange(1, n) * half // n
    cheapest = np.lexsort((opened[1:n], window))
    first = np.unique(window[cheapest], return_index=True)[1]
    starts = np.zeros(n, dtype=bool)
    starts[1 + cheapest[first]] = True
    reach = half // max(2 * len(cuts), 1)
    for cut in cuts:
        starts[max(cut - reach, 1) : cut + reach + 1] = True
    allowed = problem.allowed[:, order]
    starts[1:] |= (allowed[:, 1:] != allowed[:, :-1]).any(axis=0)
    block = np.empty(n, dtype=np.int64)
    block[order] = np.cumsum(starts)
    return block


def merged(problem: Chain, block: Ints) -> Chain:
    """Return the problem with each block as one supernode, numbered in the order of the blocks."""
    count = int(block.max()) + 1
    time = np.array([[np.bincount(block, row, count) for row in rows] for rows in problem.time])
    allowed = np.array([np.bincount(block, ~row, count) == 0 for row in problem.allowed])
    pairs = relabelled(np.stack((problem.successors.owners(), problem.successors.items), axis=1), block)
    size: Floats = np.bincount(block, problem.size, count).astype(np.float64)
    blocks = replace(
        problem,
        time=time,
        size=size,
        allowed=allowed,
        successors=rows_of(pairs[:, 0], pairs[:, 1], count),
        predecessors=rows_of(pairs[:, 1], pairs[:, 0], count),
        nets=_merged_nets(problem, block, count),
        member=block[problem.member],
        relaxed_size=size,
        relaxed_allowed=allowed,
        coarser=None,
        output=np.zeros(0),
    )
    if isinstance(blocks, PipelineProblem):
        return replace(blocks, pipeline=blocks.pipeline.merged(block, count), relaxed_pipeline=None)
    return blocks


def split_blocks(stages: Sequence[Part], block: Ints) -> list[Part]:
    """Return the stages of blocks as stages of supernodes."""
    stage = part_numbers(stages, int(block.max()) + 1)
    members = rows_of(stage[block], np.arange(len(block)), len(stages))
    return [replace(part, nodes=members.row(number)) for number, part in enumerate(stages)]


def _open_cost(problem: Problem, order: Ints) -> Floats:
    """Return the total cost of the nets that a cut before each place of the order cuts, shape (n + 1,)."""
    place = np.empty(problem.n, dtype=np.int64)
    place[order] = np.arange(problem.n)
    nets = problem.nets
    change = np.zeros(problem.n + 2)
    if len(nets.cost):
        pins = place[nets.pins.items]
        np.add.at(change, np.minimum.reduceat(pins, nets.pins.start[:-1]) + 1, nets.cost)
        np.add.at(change, np.maximum.reduceat(pins, nets.pins.start[:-1]) + 1, -nets.cost)
    return np.asarray(np.cumsum(change)[: problem.n + 1])


def _merged_nets(problem: Problem, block: Ints, count: int) -> Nets:
    nets = problem.nets
    key, place = np.unique(nets.pins.owners() * count + block[nets.pins.items], return_inverse=True)
    read = np.ones(len(key), dtype=np.int64)
    np.minimum.at(read, place, nets.read)
    owner, pin = np.divmod(key, count)
    cut = np.bincount(owner, minlength=len(nets.cost)) > 1
    read = read[cut[owner]]
    owner, pin = (np.cumsum(cut) - 1)[owner[cut[owner]]], pin[cut[owner]]
    return Nets(
        pins=rows_of(owner, pin, int(cut.sum())),
        of_node=rows_of(pin, owner, count),
        cost=nets.cost[cut],
        source=block[nets.source[cut]],
        made=nets.made[cut],
        read=read,
    )
