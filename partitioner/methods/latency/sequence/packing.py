"""The assignment of a sequence of blocks to devices, and their order on each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partitioner.methods.latency.layout import SubgraphLayout
from partitioner.methods.latency.sequence.effort import EFFORT
from partitioner.methods.method import Part
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import SampleProblem


def is_counted(problem: SampleProblem) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return the kinds on which blocks use up devices, shape (K,).

    A kind that does not pay for transfers and has no memory limit runs all its blocks on its first device,
    where nodes run on as many cores as needed.
    """
    return np.asarray(problem.pays | np.isfinite(problem.memory))


def packed(problem: SampleProblem, member: Ints, blocks: Sequence[Part]) -> SubgraphLayout | None:
    """Return a layout with at most `problem.subgraphs` blocks on every device; None if none is found.

    Parameters
    ----------
    problem, member
        A problem for latency, and the supernode of each of its nodes.
    blocks
        The supernodes of every block, in the order of the forward pass.
    """
    sizes = np.bincount(member, problem.size)
    device, first = np.zeros(len(blocks), dtype=np.int64), np.cumsum(problem.count) - problem.count
    for k, counted in enumerate(is_counted(problem).tolist()):
        mine = np.array([i for i, block in enumerate(blocks) if block.kind == k], dtype=np.int64)
        bins = np.zeros(len(mine), dtype=np.int64)
        if counted and len(mine):
            loads = np.array([sizes[blocks[i].nodes].sum() for i in mine])
            found = bins_of(loads, int(problem.count[k]), float(problem.memory[k]), problem.subgraphs)
            if found is None:
                return None
            bins = found
        device[mine] = first[k] + bins
    return _layout(problem, member, blocks, device)


def _layout(problem: SampleProblem, member: Ints, blocks: Sequence[Part], device: Ints) -> SubgraphLayout:
    number = np.empty(int(member.max()) + 1, dtype=np.int64)
    for i, block in enumerate(blocks):
        number[block.nodes] = i
    turn = np.array([(device[:i] == device[i]).sum() for i in range(len(blocks))], dtype=np.int64)
    last = np.bincount(device, minlength=len(blocks) + 1)[device] - 1
    block_of = number[member]
    slot = np.where(problem.backward, (last - turn)[block_of], turn[block_of])
    return SubgraphLayout(device[block_of], slot)


def bins_of(sizes: Floats, count: int, memory: float, most: int) -> Ints | None:
    """Return a bin for each size, with at most `most` sizes in each of `count` bins; None if none is found.

    If there are enough bins, each size has its own. Else a backtracking search tries the fullest bin first,
    and a limited number of bins in all.

    Examples
    --------
    >>> bins_of(np.array([2.0, 3.0, 2.0, 3.0]), 2, 5.0, 2).tolist()
    [0, 0, 1, 1]
    """
    if len(sizes) <= count:
        return np.arange(len(sizes)) if (sizes <= memory).all() else None
    order = np.argsort(-sizes, kind="stable").tolist()
    place, load, held = [-1] * len(order), [0.0] * count, [0] * count
    attempts = 0

    def put(i: int) -> bool:
        nonlocal attempts
        if i == len(order):
            return True
        size, tried = float(sizes[order[i]]), set[tuple[float, int]]()
        for b in sorted(range(count), key=lambda b: -load[b]):
            attempts += 1
            if (load[b], held[b]) in tried or held[b] == most or attempts > EFFORT.attempts:
                continue
            tried.add((load[b], held[b]))
            if load[b] + size <= memory:
                before = load[b]
                load[b], held[b], place[order[i]] = before + size, held[b] + 1, b
                if put(i + 1):
                    return True
                load[b], held[b] = before, held[b] - 1
        return False

    return np.array(place, dtype=np.int64) if put(0) else None
