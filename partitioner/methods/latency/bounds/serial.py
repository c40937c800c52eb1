"""The serial bound: a graph that is nearly a series cannot avoid the costs of its cuts.

Take separators s_0, ..., s_m such that every path between two of them that the weakened graph keeps
passes those between. In any layout let U_1, ..., U_r be, in order, the subgraphs and single nodes that
hold separators. A subgraph is contiguous, so it holds a run s_a .. s_b of separators, all inner nodes of
the blocks between them, an ideal of the block after s_b and the complement of an ideal of the block
before s_a. It lasts for all its work and for the nets that are cut there; the next one starts after it
has finished, and after every path through the nodes between the two, which run elsewhere: their
subgraphs cannot hold a separator, or they would hold one of the two as well. So the latency is at least
the length of the whole sequence, and the shortest sequence whose subgraphs each fit a device's memory,
found by a dynamic program over separators and ideals, is a lower bound. Dropping nodes, edges or
transfers loses no layout. A node that no separator precedes but that one of these nodes reads (an
embedding, say) is in the same subgraph as its reader, where it takes memory, or its net is moved in.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import joint_load
from partitioner.methods.latency.bounds.blocks import Block, block_of
from partitioner.methods.latency.bounds.flow import Flow
from partitioner.methods.latency.bounds.spine import Spine, with_group_members
from partitioner.methods.method import Settings
from partitioner.problem.arrays import Floats
from partitioner.problem.variants import SampleProblem
from partitioner.workload.devices import COMMUNICATION_MODELS

SMALLEST = 0.01  # share of a device's memory below which a node off the spine is ignored
MOST_SIDES = 5
BYTES = 48  # for each pair of separators, including temporary arrays


def serial_bound(problem: SampleProblem, flow: Flow, spine: Spine, settings: Settings) -> float:
    """Return the length of the shortest sequence along a spine; 0 if its sums would take too much memory.

    Raises
    ------
    OutOfTimeError
        If the run should end.
    """
    if len(spine.separators) ** 2 * BYTES > settings.memory_budget:
        return 0.0
    flow = with_group_members(flow, spine, settings)
    far, leaving, coming = _far_nets(flow, spine, settings)
    additive = problem.communication == "sequential"
    blocks = (block_of(flow, spine, k, far, additive) for k in settings.watched(range(len(spine.inner))))
    paid, free, size = (each[spine.separators] for each in (flow.paid, flow.free, flow.size))
    memory = problem.memory[problem.pays & (problem.count > 0)].max(initial=0.0) * (1 + 1e-12)
    if not (problem.pays & (problem.count > 0)).any():
        paid = np.full(len(paid), np.inf)
    sides = _sides(flow, spine, memory)
    return _walk(blocks, (paid, free, size), (leaving, coming), sides, memory, problem.communication)


def _sides(flow: Flow, spine: Spine, memory: float) -> dict[int, list[Floats]]:
    """Return choices for the largest nodes off the spine, by the position of their first reader.

    The two rows of a choice are added to the transfers in, work and size of the reader's subgraph: if the
    node's net is moved in, and if the node is in the subgraph.
    """
    place = spine.places(len(flow.size))
    moved: dict[tuple[int, int], float] = {}
    for source, readers, cost in flow.nets:
        first = min((int(place[v]) for v in readers if place[v] >= 0), default=-1)
        if place[source] < 0 <= first and flow.size[source] > SMALLEST * memory:
            moved[source, first] = moved.get((source, first), 0.0) + cost
    chosen = sorted(moved, key=lambda side: -flow.size[side[0]])[:MOST_SIDES]
    sides: dict[int, list[Floats]] = {}
    for source, first in {source: (source, first) for source, first in reversed(chosen)}.values():
        choice = np.array([[moved[source, first], 0, 0], [0, flow.paid[source], flow.size[source]]])
        sides.setdefault(first, []).append(choice)
    return sides


def _with_sides(start: Floats, sides: list[Floats]) -> Floats:
    """Return every row combined with each of the choices."""
    for choice in sides:
        rows = np.repeat(start, 2, axis=0)
        rows[:, 1:4] += np.tile(choice, (len(start), 1))
        start = rows
    return start


def _far_nets(flow: Flow, spine: Spine, settings: Settings) -> tuple[set[int], Floats, Floats]:
    """Return the nets that pass over a separator, and the sums of them that a run of separators must move.

    Row a and column b of the sums stand for a subgraph from separator a to b: nets made in it and read
    beyond the next separator leave it, and nets read in it and made before the previous one enter it.
    """
    place = spine.places(len(flow.size)).tolist()
    m = len(spine.separators)
    far, leaving, coming = set(), np.zeros((m, m)), np.zeros((m, m))
    first, last = np.arange(m)[:, None], np.arange(m)[None, :]
    for e, (source, readers, cost) in settings.watched(enumerate(flow.nets)):
        made, read = place[source], max((place[v] for v in readers), default=-1)
        if made >= 0 and read > made // 2 * 2 + 2:
            far.add(e)
            leaving += cost * ((2 * first <= made) & (made <= 2 * last) & (read > 2 * last + 1))
            coming += cost * ((2 * first <= read) & (read <= 2 * last) & (made < 2 * first - 1))
    return far, leaving, coming


def _walk(
    blocks: Iterator[Block],
    separators: tuple[Floats, Floats, Floats],
    far: tuple[Floats, Floats],
    sides: dict[int, list[Floats]],
    memory: float,
    communication: str,
) -> float:
    (paid, free, size), (leaving, coming) = separators, far
    model = COMMUNICATION_MODELS.index(communication)
    m = len(paid)
    start = np.zeros((1, 5))  # value, transfers in, work, size, first separator
    alone = free[0]
    for b in range(m):
        start[:, 2] += paid[b]
        start[:, 3] += size[b]
        start = _with_sides(start, sides.get(2 * b, []))
        start = start[(start[:, 3] <= memory) & (start[:, 2] < np.inf)]
        block = next(blocks, None)
        end = np.zeros((1, 3))
        if block is not None:
            end = np.stack((block.work, block.size, block.cut), axis=1)
            end[~block.ends, 1] = np.inf
        first = start[:, 4].astype(np.int64)
        value = np.full(len(end), np.inf)
        _ends(start, leaving[first, b], coming[first, b], end, memory, model, value)
        if block is None:
            break
        new, alone = _over(block, value, alone, free[b + 1], b + 1)
        start[:, 2] += block.work[-1]
        start[:, 3] += block.size[-1]
        start = np.concatenate((_with_sides(start, sides.get(2 * b + 1, [])), new))
    return float(min(value[0], alone))


def _over(block: Block, value: Floats, alone: float, free: float, first: int) -> tuple[Floats, float]:
    """Return the subgraphs that begin in the block, and when the next separator ends if it runs alone."""
    before = value.copy()
    before[0] = min(before[0], alone)
    reached = (before[:, None] + block.between).min(axis=0)
    new = np.zeros((len(reached), 5))
    new[:, 0] = reached
    new[:, 1] = block.cut
    new[:, 2] = block.rest
    new[:, 3] = block.size[-1] - block.size
    new[:, 4] = first
    new = new[np.isfinite(reached) & np.isfinite(new[:, 2]) & block.begins]
    return new, float(reached[-1] + free)


@njit(cache=True, nogil=True)
def _ends(
    start: Floats, leaving: Floats, coming: Floats, end: Floats, memory: float, model: int, value: Floats
) -> None:
    """Lower `value`, shape (ideals,), to the least finish of a subgraph that ends with each ideal."""
    for i in range(len(start)):
        for j in range(len(end)):
            if start[i, 3] + end[j, 1] > memory:
                continue
            work = start[i, 2] + end[j, 0]
            into, out = start[i, 1] + coming[i], end[j, 2] + leaving[i]
            value[j] = min(value[j], start[i, 0] + joint_load(work, into, out, model))
